"""Fit the eigenface head: the principal components of the training people's faces."""

import numpy as np
import numpy.typing as npt

from facepairs.models.eigenfaces import COMPONENTS, gray_pixels, set_components
from facepairs.models.network import Network
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.support.progress import Counter, ProgressCallback, ignore_progress
from facepairs.support.random_streams import Stream
from facepairs.training.fitting.sampling import Images, sample_images

MAX_IMAGES = 20_000  # at 64x64 pixels they take 330 MB; thousands more change little
IMAGES_PER_COMPONENT = 4  # with fewer, the last components are the noise of single photos
MIN_RELATIVE_DEVIATION = 1e-4  # below is rounding, which whitening would amplify
BATCH_SIZE = 256


def fit_eigenfaces(
    network: Network,
    store: Store,
    images: Images,
    seed: int,
    progress: ProgressCallback = ignore_progress,
) -> tuple[int, int]:
    """Set the weights of an eigenface head.

    Args:
        network: The network, whose head is set.
        store: The images' pixels.
        images: int64[N], numbers of the training images, rising; of more than 20,000, a sample is
            used.
        seed: Seed of the sample and of the randomized decomposition.
        progress: Counts the images read.

    Returns:
        How many images and how many components were used.
    """
    from sklearn.decomposition import PCA

    images = sample_images(images, MAX_IMAGES, seed, Stream.EIGENFACE_SAMPLE)
    pixels = _gray_pixels(network, store, images, progress)
    count = max(1, min(COMPONENTS, len(images) // IMAGES_PER_COMPONENT, pixels.shape[1]))
    pca = PCA(count, svd_solver="randomized", random_state=seed).fit(pixels)
    deviations = np.sqrt(pca.explained_variance_)
    kept = deviations > MIN_RELATIVE_DEVIATION * deviations[0]
    set_components(network.head, pca.mean_, (pca.components_ / deviations[:, None])[kept])
    return len(images), int(kept.sum())


def _gray_pixels(
    network: Network, store: Store, images: Images, progress: ProgressCallback
) -> npt.NDArray[np.float32]:
    """Return gray pixels as the exported network computes them: float32[N, pixels]."""
    to_gray = gray_pixels(network.head)
    count = Counter(progress, len(images))
    parts = []
    for batch in image_batches(store, images, BATCH_SIZE):
        parts.append(np.asarray(to_gray(network.preprocess(store.gather(batch)))))
        count(len(parts[-1]))
    return np.concatenate(parts)
