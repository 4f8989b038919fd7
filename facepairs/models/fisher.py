"""The Fisher tower: local descriptors, how they differ from a mixture of Gaussians, a projection.

    image → DenseDescriptors → FisherVector → drop some, project to `dimensions` → length one

The first two are fitted once to training faces without their names (`FisherVector.fit`), so an
image's vector can be computed once and kept; training then moves the projection alone. Source:
Simonyan, Parkhi, Vedaldi and Zisserman, *Fisher Vector Faces in the Wild*, BMVC 2013, with an
in-batch contrastive loss instead of their hinge on pairs.
"""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import layers, ops

from facepairs.models.descriptors import LENGTH, SMALLEST_PX, DenseDescriptors, positions

GAUSSIANS, COMPONENTS, DIMENSIONS = 128, 48, 128
DESCRIBE, PROJECT = "describe", "project"

Floats = npt.NDArray[np.floating]


@keras.saving.register_keras_serializable("facepairs")
class FisherVector(keras.Layer):  # type: ignore[misc]
    """Sums up how descriptors differ from a mixture: float32[N, P, 128] → [N, 2·K·(C + 2)].

    For each of K Gaussians the normalised gradient to its mean and variance; signed square root,
    length one (Perronnin, Sánchez and Mensink, ECCV 2010). A descriptor is projected on C
    principal components and its place in the image added. Not trained by gradient.
    """

    def __init__(
        self, px: int, gaussians: int = GAUSSIANS, components: int = COMPONENTS, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.trainable = False
        self.px, self.gaussians, self.components = px, gaussians, components
        self.places = positions(px)  # float32[P, 2]

    def get_config(self) -> dict[str, Any]:
        own = {"px": self.px, "gaussians": self.gaussians, "components": self.components}
        return {**super().get_config(), **own}

    def build(self, shape: Any) -> None:
        wide = self.components + 2
        self.basis = self.add_weight(shape=(LENGTH, self.components), initializer="orthogonal")
        self.offset = self.add_weight(shape=(self.components,), initializer="zeros")
        self.means = self.add_weight(shape=(self.gaussians, wide), initializer="random_normal")
        self.deviations = self.add_weight(shape=(self.gaussians, wide), initializer="ones")
        self.log_priors = self.add_weight(shape=(self.gaussians,), initializer="zeros")

    def set_mixture(
        self,
        basis: Floats,
        offset: Floats,
        means: Floats,
        variances: Floats,
        priors: Floats,
    ) -> None:
        """Set what x · basis - offset, a descriptor x with its place added, is compared with.

        `basis` [128, C], `offset` [C], `means` and `variances` [K, C + 2], `priors` [K].
        """
        values = (basis, offset, means, np.sqrt(variances), np.log(priors))
        for weight, value in zip(self.weights, values, strict=True):
            weight.assign(value)

    def placed(self, descriptors: Any) -> Any:
        """Project descriptors and add their places: float32[N, P, 128] → [N, P, C + 2]."""
        projected = ops.matmul(descriptors, self.basis) - self.offset
        places = ops.repeat(self.places[None], ops.shape(descriptors)[0], axis=0)
        return ops.concatenate([projected, places], axis=2)

    def call(self, descriptors: Any) -> Any:
        x = self.placed(descriptors)
        wide = self.components + 2
        both = ops.concatenate([x, x * x], axis=2)
        precision = 1 / ops.square(self.deviations)
        pull = ops.concatenate([self.means * precision, -0.5 * precision], axis=1)
        constant = self.log_priors - ops.sum(
            ops.log(self.deviations) + 0.5 * ops.square(self.means) * precision, axis=1
        )
        share = ops.softmax(ops.matmul(both, ops.transpose(pull)) + constant, axis=2)
        share = ops.transpose(share, (0, 2, 1))
        zeroth = ops.sum(share, axis=2, keepdims=True)
        sums = ops.matmul(share, both)
        first, second = sums[:, :, :wide], sums[:, :, wide:]
        prior = ops.exp(self.log_priors)[:, None]
        to_means = (first - self.means * zeroth) / (self.deviations * ops.sqrt(prior))
        spread = second - 2 * self.means * first
        spread += (ops.square(self.means) - ops.square(self.deviations)) * zeroth
        to_variances = spread * precision / ops.sqrt(2 * prior)
        vector = ops.concatenate([to_means, to_variances], axis=2) / len(self.places)
        vector = ops.reshape(vector, (-1, 2 * self.gaussians * wide))
        return ops.normalize(ops.sign(vector) * ops.sqrt(ops.abs(vector)), axis=-1, order=2)


def fisher_tower(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 128], rows of length 1.

    Parts: `describe` and `project`. Raises ValueError unless `image_px` is a multiple of 16 from 96
    on.
    """
    if image_px < SMALLEST_PX or image_px % 16:
        raise ValueError(f"image_px is {image_px}; known: multiples of 16 from {SMALLEST_PX} on")
    image = keras.Input((image_px, image_px, 3), name="image")
    vector = FisherVector(image_px)(DenseDescriptors()(image))
    describe = keras.Model(image, vector, name=DESCRIBE, trainable=False)
    given = keras.Input(vector.shape[1:], name="vector")
    projected = layers.Dense(DIMENSIONS, name="projection")(given)
    project = keras.Model(given, layers.UnitNormalization()(projected), name=PROJECT)
    return keras.Model(image, project(describe(image)), name="fisher_tower")


def set_projection(tower: keras.Model, mean: Floats, directions: Floats) -> None:
    """Start the projection as x → directions · (x - mean).

    `mean` float[D], `directions` float[K, D], K at most 128; where there are fewer, the other
    coordinates start at 0.
    """
    dense = tower.get_layer(PROJECT).get_layer("projection")
    kernel = np.zeros((directions.shape[1], DIMENSIONS))
    kernel[:, : len(directions)] = directions.T
    dense.set_weights([kernel, -mean @ kernel])
