"""Fit the eigenface head: principal components of the training people's faces."""

import numpy as np
import numpy.typing as npt

from facepairs.data.sampler import raw_words
from facepairs.models.eigenfaces import COMPONENTS, gray_pixels, set_components
from facepairs.models.network import Network
from facepairs.pipeline.dataset import Store, image_batches

MOST_IMAGES = 20_000  # of 64x64 pixels they take 330 MB, and thousands more change little
IMAGES_A_COMPONENT = 4  # fewer, and the last components are the noise of single photos
BATCH = 256
STREAM = 8  # of the counter-based generator


def fit_eigenfaces(
    network: Network, store: Store, images: npt.NDArray[np.int64], seed: int
) -> tuple[int, int]:
    """Set the head's weights from image numbers int64[N]; give how many images and components.

    Of more than 20,000 images so many are drawn from the seed.
    """
    from sklearn.decomposition import PCA

    if len(images) > MOST_IMAGES:
        order = np.argsort(raw_words(seed, STREAM, 0, 0, len(images)), kind="stable")
        images = np.sort(images[order[:MOST_IMAGES]])
    pixels = _gray(network, store, images)
    count = max(1, min(COMPONENTS, len(images) // IMAGES_A_COMPONENT, pixels.shape[1]))
    pca = PCA(count, svd_solver="randomized", random_state=seed).fit(pixels)
    spread = np.sqrt(pca.explained_variance_)
    real = spread > 1e-4 * spread[0]  # beyond lies rounding, which whitening would blow up
    set_components(network.head, pca.mean_, (pca.components_ / spread[:, None])[real])
    return len(images), int(real.sum())


def _gray(network: Network, store: Store, images: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Give the gray pixels as the exported network computes them: float32[N, pixels]."""
    part = gray_pixels(network.head)
    return np.concatenate(
        [
            np.asarray(part(network.preprocess(store.pixels(batch))))
            for batch in image_batches(store, images, BATCH)
        ]
    )
