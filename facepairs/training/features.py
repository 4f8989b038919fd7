"""Choose the input of a network, images or precomputed features, and prepare it."""

from facepairs.fisher.fit import fit_mixture, precompute, start_projection
from facepairs.fisher.network import FisherNetwork
from facepairs.models.network import Network
from facepairs.pipeline.dataset import Store
from facepairs.support import console
from facepairs.training.distribution import Workers
from facepairs.training.inputs.data import TrainingData
from facepairs.training.progress import Progress
from facepairs.training.stop import ShouldStop, TrainingInterrupted


def prepare_source(
    data: TrainingData,
    network: Network,
    progress: Progress,
    workers: Workers,
    should_stop: ShouldStop,
) -> Store:
    """Return the images; for a Fisher network their features, which are computed now.

    A new training of it first fits the backbone, and starts the projection from the features.
    Every worker does all of that, as waiting for another one would look like a lost worker; then
    the chief's weights count.

    Args:
        data: The images.
        network: Its weights are set in a new training.
        progress: How far the training has got.
        workers: The workers.
        should_stop: Returns whether to stop.

    Raises:
        TrainingInterrupted: Nothing is saved: a resumed training begins here again.
    """
    if not isinstance(network, FisherNetwork):
        return data.store
    images, seed, weights = data.images, data.config.seed, network.head.variables
    is_new = not (progress.history or data.config.start)
    if is_new:
        with console.waiting("fitting local descriptors"):
            fit_mixture(network, data.store, images, seed)
        workers.share(weights)

    def stop_if_asked() -> None:
        if workers.any(should_stop()):
            raise TrainingInterrupted

    console.log(f"computing the features of {len(data.index):,} images")
    features = precompute(network, data.store, len(data.index), stop_if_asked)
    if is_new:
        console.log("starting the projection at principal components")
        start_projection(network, features, images, seed)
        workers.share(weights)
    return features
