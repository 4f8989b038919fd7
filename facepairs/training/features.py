"""`prepare_features`: what is done before the epochs of a network that trains on features."""

from facepairs.fisher.fit import fit_mixture, precompute, start_projection
from facepairs.fisher.network import FisherNetwork
from facepairs.pipeline.memory import MemoryStore
from facepairs.support import console
from facepairs.training.loop import ShouldStop, TrainingInterrupted
from facepairs.training.training import Training


def prepare_features(
    training: Training, network: FisherNetwork, should_stop: ShouldStop
) -> MemoryStore:
    """Compute the backbone's features of all images; a new training first fits the backbone.

    It then also starts the projection from the features. The chief fits; every worker computes all
    features.

    Raises:
        TrainingInterrupted: Nothing is saved: a resumed training begins here again.
    """
    data, context = training.data, training.context
    images, seed = data.images, data.config.seed
    if training.is_new:
        if context.is_chief:
            with console.waiting("fitting local descriptors"):
                fit_mixture(network, data.store, images, seed)
        context.broadcast_variables(network.head.variables)

    def stop_if_asked() -> None:
        if context.any(should_stop()):
            raise TrainingInterrupted

    console.log(f"computing the features of {len(data.index):,} images")
    features = precompute(network, data.store, len(data.index), stop_if_asked)
    if training.is_new:
        if context.is_chief:
            console.log("starting the projection at principal components")
            start_projection(network, features, images, seed)
        context.broadcast_variables(network.head.variables)
    return features
