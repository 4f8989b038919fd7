"""Fit the Fisher tower's frozen part to faces, describe all images, and start its projection."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.sampler import raw_words
from facepairs.models.fisher.tower import (
    DESCRIBE,
    DIMENSIONS,
    FisherVector,
    folded,
    set_projection,
    signs,
)
from facepairs.models.network import FrozenBackboneNetwork
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.pipeline.features import FeatureStore, Share
from facepairs.support.atomic import scratch_folder
from facepairs.training.distributed.context import Team

SAMPLE_IMAGES, SAMPLE_A_FACE = 2_000, 25  # 50,000 descriptors tell the mixture
MOST_VECTORS = 12_000  # to start the projection from
ITERATIONS, SMALLEST_VARIANCE = 12, 1e-2
VECTORS = "vectors-*.npy"  # in the run folder, while training
BATCH = 64
STREAM = 9  # of the counter-based generator

Floats = npt.NDArray[np.float32]
Images = npt.NDArray[np.int64]


def fit_mixture(network: FrozenBackboneNetwork, store: Store, images: Images, seed: int) -> None:
    """Set the components and the Gaussians from training images, int64[N] numbers."""
    layer = _fisher_layer(network)
    sample, places = _descriptors(network, store, _some(images, SAMPLE_IMAGES, seed), seed)
    both = folded(sample)
    bases, offset = _components(both, layer.components // 2)
    projected = np.einsum("nsj,sjc->nsc", both, bases)
    projected[:, 0] -= offset
    points = np.concatenate([projected.reshape(len(sample), -1), places], axis=1, dtype=np.float32)
    mixture = _mirrored_mixture(points, signs(layer.components), layer.gaussians // 2, seed)
    layer.set_mixture(bases, offset, *mixture)


def _components(both: Floats, count: int) -> tuple[Floats, Floats]:
    """Find what sums and differences vary in most: float32[2, 64, count], the sums' mean [count].

    With mirror images among the descriptors, the two do not vary together and differences are 0 on
    average, so that these are principal components of them all. Their mean variance becomes one.
    """
    from sklearn.decomposition import PCA

    sums, differences = both[:, 0], both[:, 1]
    around = PCA(count, svd_solver="covariance_eigh").fit(sums)
    centred = np.concatenate([differences, -differences])
    aside = PCA(count, svd_solver="covariance_eigh").fit(centred)
    variances = np.concatenate([around.explained_variance_, aside.explained_variance_])
    found = [pca.components_.T / np.sqrt(variances.mean()) for pca in (around, aside)]
    return np.stack(found), around.mean_ @ found[0]


def _mirrored_mixture(
    points: Floats, signs: Floats, half: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Fit `half` Gaussians and their mirror images: means and variances [half, C + 2], priors.

    Mirrored points beside the points, and mirrored Gaussians to start from, stay so at each step.
    """
    from sklearn.cluster import kmeans_plusplus
    from sklearn.mixture import GaussianMixture

    one_side = np.where(points[:, -1:] < 0, points * signs, points)
    start, _ = kmeans_plusplus(one_side, half, random_state=seed)
    mixture = GaussianMixture(
        2 * half,
        covariance_type="diag",
        weights_init=np.full(2 * half, 0.5 / half),
        means_init=np.concatenate([start, start * signs]),
        precisions_init=np.full((2 * half, points.shape[1]), 1 / SMALLEST_VARIANCE),
        max_iter=ITERATIONS,
        tol=0,
        reg_covar=SMALLEST_VARIANCE,
        random_state=seed,
    )
    _fit_quietly(mixture, np.concatenate([points, points * signs]))
    priors = mixture.weights_[:half] / (2 * mixture.weights_[:half].sum())
    return mixture.means_[:half], mixture.covariances_[:half], priors


def _fit_quietly(mixture: object, points: Floats) -> None:
    """Run the iterations that are set; that they do not converge is what `max_iter` says."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(points)  # type: ignore[attr-defined]


def describe_images(
    network: FrozenBackboneNetwork,
    store: Store,
    count: int,
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
    team: Team | None = None,
) -> FeatureStore:
    """Give the vectors of all images, kept in `folder` under the digest of the frozen weights.

    Several workers describe a share each and pass it on, to the same vectors bit for bit. Nothing
    is kept then, since all must describe or none: what does not fit in memory lies in a temporary
    folder. All must come here, and `progress` must end all of them or none.
    """
    frozen = network.head.get_layer(DESCRIBE)
    shape = (count, int(frozen.output_shape[-1]))
    if team and team.workers > 1:
        share = Share(team.worker, team.workers, lambda some: team.sum(some, np.float16))
        with scratch_folder("facepairs-vectors") as aside:  # what is mapped needs no name
            path = aside / VECTORS.replace("*", "shared")
            return FeatureStore.build(store, shape, network.described, path, progress, say, share)
    digest = hashlib.sha256(b"".join(np.asarray(w).tobytes() for w in frozen.weights))
    path = folder / VECTORS.replace("*", digest.hexdigest()[:16])
    return FeatureStore.build(store, shape, network.described, path, progress, say)


def start_projection(
    network: FrozenBackboneNetwork, vectors: FeatureStore, images: Images, seed: int
) -> None:
    """Start from whitened principal components of the training images' vectors.

    Each direction has the variance 1 / 128, so that an embedding's length is about one.
    """
    from sklearn.decomposition import PCA

    chosen = _some(images, MOST_VECTORS, seed)
    points = np.asarray(vectors.vectors[chosen], np.float32)
    count = min(DIMENSIONS, max(1, len(points) - 1))
    pca = PCA(count, svd_solver="randomized", iterated_power=2, random_state=seed).fit(points)
    spread = np.sqrt(pca.explained_variance_ * DIMENSIONS)
    real = spread > 1e-3 * spread[0]
    set_projection(network.head, pca.mean_, (pca.components_ / spread[:, None])[real])


def _fisher_layer(network: FrozenBackboneNetwork) -> FisherVector:
    layers = network.head.get_layer(DESCRIBE).layers
    (layer,) = [layer for layer in layers if isinstance(layer, FisherVector)]
    return layer


def _some(images: Images, most: int, seed: int) -> Images:
    """Draw image numbers from the seed, all of them where they are few; sorted."""
    order = np.argsort(raw_words(seed, STREAM, 0, 0, len(images)), kind="stable")
    return np.sort(images[order[:most]])


def _descriptors(
    network: FrozenBackboneNetwork, store: Store, images: Images, seed: int
) -> tuple[Floats, Floats]:
    """Draw descriptors and their places: float32[S, 128], float32[S, 2]."""
    from keras import Model

    describe = network.head.get_layer(DESCRIBE)
    layer = _fisher_layer(network)
    patches = Model(describe.input, layer.input)
    compiled = tf.function(lambda pixels: patches(network.preprocess(pixels)), autograph=False)
    places = layer.places
    a_face = min(SAMPLE_A_FACE * max(1, SAMPLE_IMAGES // len(images)), len(places))
    drawn, where = [], []
    number = 0
    for batch in image_batches(store, images, BATCH):
        for found in compiled(store.pixels(batch)).numpy():
            order = np.argsort(raw_words(seed, STREAM, 1, number, len(places)))[:a_face]
            drawn.append(found[order])
            where.append(places[order])
            number += 1
    return np.concatenate(drawn), np.concatenate(where)
