"""Everything of the Fisher network's training that is not gradient descent.

Before the epochs `fit_mixture` fits the backbone, `precompute` computes its features of all images
and `start_projection` starts the projection; after them `fit_cohort` sets the cohort.

References:
    Simonyan, Parkhi, Vedaldi and Zisserman, *Fisher Vector Faces in the Wild*, BMVC 2013.
"""

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from facepairs.errors import NotEnough
from facepairs.fisher.descriptors import describe
from facepairs.fisher.embedding import DIMENSIONS
from facepairs.fisher.network import FisherNetwork
from facepairs.fisher.tower import (
    BACKBONE,
    COHORT,
    PROJECTOR,
    FisherMember,
    fold_descriptors,
    mirror_signs,
)
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.pipeline.files import photos_named
from facepairs.pipeline.memory import MemoryStore, zeros
from facepairs.support import console
from facepairs.support.random_streams import Stream, raw_words

SAMPLE_IMAGES, DESCRIPTORS_PER_IMAGE = 2_000, 25  # 50,000 descriptors determine the mixture
PROJECTION_IMAGES = 12_000  # whose features the projection starts from
ITERATIONS, MIN_VARIANCE = 12, 1e-2
COHORT_PEOPLE = 4  # training people for each member of the cohort, at least
BATCH_SIZE = 64

Floats = npt.NDArray[np.float32]
Images = npt.NDArray[np.int64]


def fit_mixture(
    network: FisherNetwork,
    store: Store,
    images: Images,
    seed: int,
) -> None:
    """Fit the backbone: for each member, components of local descriptors and Gaussians.

    Args:
        network: The network, whose backbone is set.
        store: The images' pixels.
        images: int64[N], numbers of the training images, rising.
        seed: Seed of the samples and of the mixture's start.
    """
    images = _sample_images(images, SAMPLE_IMAGES, seed)
    for member in network.head.get_layer(BACKBONE).members:
        sample, positions = _sample_descriptors(network, member, store, images, seed)
        both = fold_descriptors(sample)
        bases, offset = _components(both, member.components // 2)
        projected = np.einsum("nsj,sjc->nsc", both, bases)
        projected[:, 0] -= offset
        flat = projected.reshape(len(sample), -1)
        points = np.concatenate([flat, positions], axis=1, dtype=np.float32)
        signs = mirror_signs(member.components)
        member.set_mixture(
            bases, offset, *_mirrored_mixture(points, signs, member.gaussians // 2, seed)
        )


def _components(both: Floats, count: int) -> tuple[Floats, Floats]:
    """Return principal components of sums and of differences: [2, 64, count], [count] offset.

    Sums and differences are those of descriptor numbers that a mirror image exchanges. Over the
    descriptors and their mirror images, sums and differences are uncorrelated and the differences'
    mean is 0, so these are the principal components of all descriptors. Their mean variance is
    scaled to one.
    """
    from sklearn.decomposition import PCA

    sums, differences = both[:, 0], both[:, 1]
    sum_pca = PCA(count, svd_solver="covariance_eigh").fit(sums)
    centred = np.concatenate([differences, -differences])
    difference_pca = PCA(count, svd_solver="covariance_eigh").fit(centred)
    variances = np.concatenate([sum_pca.explained_variance_, difference_pca.explained_variance_])
    scale = np.sqrt(variances.mean())
    bases = np.stack([pca.components_.T / scale for pca in (sum_pca, difference_pca)])
    return bases, sum_pca.mean_ @ bases[0]


def _mirrored_mixture(
    points: Floats, signs: Floats, half: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Fit `half` Gaussians and their mirror images: means and variances [half, C + 2], priors.

    The fit uses the points and their mirror images and starts from mirrored Gaussians, so the
    Gaussians stay mirrored at each iteration.
    """
    from sklearn.cluster import kmeans_plusplus
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    one_side = np.where(points[:, -1:] < 0, points * signs, points)
    start, _ = kmeans_plusplus(one_side, half, random_state=seed)
    mixture = GaussianMixture(
        2 * half,
        covariance_type="diag",
        weights_init=np.full(2 * half, 0.5 / half),
        means_init=np.concatenate([start, start * signs]),
        precisions_init=np.full((2 * half, points.shape[1]), 1 / MIN_VARIANCE),
        max_iter=ITERATIONS,
        tol=0,
        reg_covar=MIN_VARIANCE,
        random_state=seed,
    )
    # The fixed number of iterations need not converge.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        mixture.fit(np.concatenate([points, points * signs]))
    priors = mixture.weights_[:half] / (2 * mixture.weights_[:half].sum())
    return mixture.means_[:half], mixture.covariances_[:half], priors


def precompute(
    network: FisherNetwork,
    store: Store,
    images: int,
    after_batch: Callable[[], None] = lambda: None,
) -> MemoryStore:
    """Compute the features of every image: one float16[images, F] array in memory.

    Args:
        network: Computes the features; its backbone must not change afterwards.
        store: The images.
        images: How many images the store has.
        after_batch: Called after each batch; may raise to stop.

    Returns:
        The features of images 0 to `images` - 1.

    Raises:
        BadImage: An image cannot be decoded.
        NotEnough: The features do not fit in memory.
    """
    needed, free = 2 * images * network.feature_count, psutil.virtual_memory().available
    if needed > free:
        raise NotEnough(
            f"the features of {images:,} photos take {needed / 1e9:.1f} GB of memory, and "
            f"{free / 1e9:.1f} GB are free; train on fewer photos, or another model"
        )
    compute = tf.function(network.features, autograph=False)
    vectors = zeros((images, network.feature_count), np.float16)
    done, progress = 0, console.progress("computing features")
    with photos_named(store):
        for batch in image_batches(store, np.arange(images), BATCH_SIZE):
            vectors[done : done + len(batch)] = compute(batch).numpy()
            done += len(batch)
            progress(done, images)
            after_batch()
    return MemoryStore(vectors)


def start_projection(
    network: FisherNetwork, features: MemoryStore, images: Images, seed: int
) -> None:
    """Set the projections to whitened principal components of the training images' features.

    Each direction gets the variance 1 / 128, so embeddings have a length of about one.

    Args:
        network: The network, whose projections are set.
        features: The features of all images.
        images: int64[N], numbers of the training images, rising.
        seed: Seed of the sample and of the randomized decomposition.
    """
    from sklearn.decomposition import PCA

    sample = _sample_images(images, PROJECTION_IMAGES, seed)
    projections = network.head.get_layer(PROJECTOR)
    width = features.rows.shape[1] // projections.members
    for number in range(projections.members):
        member = features.rows[:, number * width : (number + 1) * width]
        points = np.asarray(member[sample], np.float32)
        count = min(DIMENSIONS, max(1, len(points) - 1))
        pca = PCA(count, svd_solver="randomized", iterated_power=2, random_state=seed).fit(points)
        deviations = np.sqrt(pca.explained_variance_ * DIMENSIONS)
        kept = deviations > 1e-3 * deviations[0]
        projections.set_member(number, pca.mean_, (pca.components_ / deviations[:, None])[kept])


def fit_cohort(network: FisherNetwork, features: MemoryStore, photos: Images, seed: int) -> None:
    """Set the cohort to the centres of clusters of the training people's embeddings.

    Nothing changes if the network has no cohort or the people are too few.

    Args:
        network: The trained network, whose cohort is set.
        features: The features of all images.
        photos: int64[N], one training image of each person.
        seed: Seed of the clusters' start.
    """
    from sklearn.cluster import KMeans

    cohort = next((part for part in network.head.layers if part.name == COHORT), None)
    if cohort is None or len(photos) < COHORT_PEOPLE * cohort.size:
        return
    batches = np.array_split(photos, -(-len(photos) // BATCH_SIZE))
    rows = [np.asarray(network.embeddings(features.rows[batch])) for batch in batches]
    embeddings = _unit(np.concatenate(rows)[:, :-1])  # without the dimension of the cohort
    centres = KMeans(cohort.size, n_init=1, random_state=seed).fit(embeddings).cluster_centers_
    cohort.set_cohort(_unit(centres), embeddings)


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _sample_images(images: Images, count: int, seed: int) -> Images:
    """Draw at most `count` image numbers without replacement, sorted."""
    order = np.argsort(raw_words(seed, Stream.FISHER_SAMPLE, 0, 0, len(images)), kind="stable")
    return np.sort(images[order[:count]])


def _sample_descriptors(
    network: FisherNetwork,
    member: FisherMember,
    store: Store,
    images: Images,
    seed: int,
) -> tuple[Floats, Floats]:
    """Draw a member's descriptors of every image and their positions: float32[S, 128 and 2]."""
    compiled = tf.function(
        lambda pixels: describe(network.preprocess(pixels), member.view), autograph=False
    )
    per_image = DESCRIPTORS_PER_IMAGE * max(1, SAMPLE_IMAGES // len(images))
    per_image = min(per_image, len(member.positions))
    descriptors: list[Floats] = []
    positions: list[Floats] = []
    for batch in image_batches(store, images, BATCH_SIZE):
        for of_image in compiled(batch).numpy():
            image, count = len(descriptors), len(member.positions)
            words = raw_words(seed, Stream.FISHER_SAMPLE, 1, image, count)
            drawn = np.argsort(words)[:per_image]
            descriptors.append(of_image[drawn])
            positions.append(member.positions[drawn])
    return np.concatenate(descriptors), np.concatenate(positions)
