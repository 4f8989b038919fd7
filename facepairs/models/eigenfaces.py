"""Eigenfaces: a linear baseline whose weights are fitted directly, not by gradient descent.

Gray pixels are projected on the principal components of training faces, each scaled to unit
variance (whitened); the result is scaled to length 1.

References:
    Turk and Pentland, "Eigenfaces for Recognition", Journal of Cognitive Neuroscience 3, 1991.
    Moon and Phillips, "Computational and Performance Aspects of PCA-Based Face-Recognition
    Algorithms", Perception 30, 2001 (the cosine of whitened coefficients).
"""

import keras
import numpy as np
import numpy.typing as npt
from keras import layers, ops

COMPONENTS = 150
PROJECTION = "projection"


def eigenface_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 150], rows of length 1.

    The weights are random until `set_components` is called.
    """
    image = keras.Input((image_px, image_px, 3), name="image")
    # Centred around 0: the projection's bias is then small and exact in float16.
    gray = layers.Flatten()(ops.mean(image, axis=3) - 0.5)
    projected = layers.Dense(COMPONENTS, name=PROJECTION, trainable=False)(gray)
    return keras.Model(image, layers.UnitNormalization()(projected), name="eigenface_head")


def gray_pixels(head: keras.Model) -> keras.Model:
    """Return the part of an eigenface head before the projection: images → float32[N, pixels]."""
    return keras.Model(head.input, head.get_layer(PROJECTION).input)


def set_components(
    head: keras.Model, mean: npt.NDArray[np.floating], components: npt.NDArray[np.floating]
) -> None:
    """Set the projection to x → components · (x - mean).

    Args:
        head: An eigenface head; its weights are changed.
        mean: float[pixels].
        components: float[K, pixels], already whitened, K at most 150. Further coordinates are 0,
            which changes no cosine.
    """
    kernel = np.zeros((components.shape[1], COMPONENTS))
    kernel[:, : len(components)] = components.T
    head.get_layer(PROJECTION).set_weights([kernel, -mean @ kernel])
