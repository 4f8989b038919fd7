"""`prepare_features`: what is done before the epochs of a network that trains on features."""

from facepairs.fisher.fit import fit_mixture, precompute, start_projection
from facepairs.fisher.network import FisherNetwork
from facepairs.pipeline.memory import MemoryStore
from facepairs.support import console
from facepairs.training.distribution import Workers
from facepairs.training.inputs.data import TrainingData
from facepairs.training.stop import ShouldStop, TrainingInterrupted


def prepare_features(
    data: TrainingData,
    network: FisherNetwork,
    is_new: bool,
    workers: Workers,
    should_stop: ShouldStop,
) -> MemoryStore:
    """Compute the backbone's features of all images; a new training first fits the backbone.

    It then also starts the projection from the features. The chief fits; every worker computes all
    features.

    Args:
        data: The images.
        network: Its weights are set in a new training.
        is_new: Whether training starts from random weights.
        workers: The workers.
        should_stop: Returns whether to stop.

    Raises:
        TrainingInterrupted: Nothing is saved: a resumed training begins here again.
    """
    images, seed = data.images, data.config.seed
    if is_new:
        if workers.is_chief:
            with console.waiting("fitting local descriptors"):
                fit_mixture(network, data.store, images, seed)
        workers.share(network.head.variables)

    def stop_if_asked() -> None:
        if workers.any(should_stop()):
            raise TrainingInterrupted

    console.log(f"computing the features of {len(data.index):,} images")
    features = precompute(network, data.store, len(data.index), stop_if_asked)
    if is_new:
        if workers.is_chief:
            console.log("starting the projection at principal components")
            start_projection(network, features, images, seed)
        workers.share(network.head.variables)
    return features
