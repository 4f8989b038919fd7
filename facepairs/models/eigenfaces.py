"""Eigenfaces: a linear baseline whose weights are fitted at once, not by gradient.

Gray pixels, projected on the principal components of training faces, each scaled to unit variance
(whitened), then to length one. Source: Turk and Pentland, *Eigenfaces for Recognition*, Journal of
Cognitive Neuroscience 3, 1991; the cosine of whitened coefficients as in Moon and Phillips,
Perception 30, 2001.
"""

import keras
import numpy as np
import numpy.typing as npt
from keras import layers, ops

COMPONENTS = 150
PROJECTION = "projection"


def eigenface_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 150], rows of length 1.

    Until `set_components` has been called the weights are random.
    """
    image = keras.Input((image_px, image_px, 3), name="image")
    # About 0, so that the projection's bias is small and loses nothing in half precision.
    gray = layers.Flatten()(ops.mean(image, axis=3) - 0.5)
    projected = layers.Dense(COMPONENTS, name=PROJECTION, trainable=False)(gray)
    return keras.Model(image, layers.UnitNormalization()(projected), name="eigenface_head")


def gray_pixels(head: keras.Model) -> keras.Model:
    """Give the part of an eigenface head before the projection: images → float32[N, pixels]."""
    return keras.Model(head.input, head.get_layer(PROJECTION).input)


def set_components(
    head: keras.Model, mean: npt.NDArray[np.floating], components: npt.NDArray[np.floating]
) -> None:
    """Set the projection x → components · (x - mean).

    `mean` float[pixels], `components` float[K, pixels], already whitened, K at most 150: where
    there are fewer, the other coordinates are 0 and change no cosine.
    """
    kernel = np.zeros((components.shape[1], COMPONENTS))
    kernel[:, : len(components)] = components.T
    head.get_layer(PROJECTION).set_weights([kernel, -mean @ kernel])
