"""The Fisher tower: local descriptors, how they differ from a mixture of Gaussians, a projection.

    image → DenseDescriptors → FisherVector → drop some, project to `dimensions` → length one
                                     └→ MirroredVector → project → length one; their sum

The first two are fitted once to training faces without their names
(`FisherVector.set_mixture`), so an image's vector can be computed once and kept; training then
moves the projection alone. Source:
Simonyan, Parkhi, Vedaldi and Zisserman, *Fisher Vector Faces in the Wild*, BMVC 2013, with an
in-batch contrastive loss instead of their hinge on pairs.
"""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import layers, ops

from facepairs.models.fisher.descriptors import (
    LENGTH,
    MIRRORED,
    SMALLEST_PX,
    DenseDescriptors,
    positions,
)

GAUSSIANS, COMPONENTS, DIMENSIONS = 256, 48, 128
BACKBONE, MIRROR, PROJECTOR = "describe", "mirror", "project"

Floats = npt.NDArray[np.floating]


def _fold() -> Floats:
    """Give what adds and subtracts a descriptor's numbers that mirror each other: [128, 2, 64]."""
    one = np.flatnonzero(np.arange(LENGTH) < MIRRORED)
    fold = np.zeros((LENGTH, 2, LENGTH // 2), np.float32)
    for sign, numbers in ((1, one), (-1, MIRRORED[one])):
        fold[numbers, 0, np.arange(len(one))] = 1
        fold[numbers, 1, np.arange(len(one))] = sign
    return fold


FOLD = _fold()


def signs(components: int) -> Floats:
    """Give what mirroring multiplies a projected descriptor and its place (y, x) with: [C + 2]."""
    half = components // 2
    return np.repeat(np.array([1, -1, 1, -1], np.float32), (half, half, 1, 1))


@keras.saving.register_keras_serializable("facepairs")
class FisherVector(keras.Layer):  # type: ignore[misc]
    """Sums up how descriptors differ from a mixture: float32[N, P, 128] → [N, 2·K·(C + 2)].

    For each of K Gaussians the normalised gradient to its mean and variance; signed square root,
    length one (Perronnin, Sánchez and Mensink, ECCV 2010). A descriptor is projected on C
    components and its place in the image added. Not trained by gradient.

    Faces are as often seen from the left as from the right, so the mixture is its own mirror image:
    half of the components are what a descriptor has in common with its mirror image, the others
    how they differ, and the second half of the Gaussians mirrors the first. Thus a mirror image's
    vector is the image's own in another order, see `MirroredVector`, and costs nothing.
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
        half, wide = self.gaussians // 2, self.components + 2
        self.basis = self.add_weight(
            shape=(2, LENGTH // 2, self.components // 2), initializer="orthogonal"
        )
        self.offset = self.add_weight(shape=(self.components // 2,), initializer="zeros")
        self.means = self.add_weight(shape=(half, wide), initializer="random_normal")
        self.deviations = self.add_weight(shape=(half, wide), initializer="ones")
        self.log_priors = self.add_weight(shape=(half,), initializer="zeros")

    def set_mixture(
        self,
        basis: Floats,
        offset: Floats,
        means: Floats,
        variances: Floats,
        priors: Floats,
    ) -> None:
        """Set what x · basis - offset, a descriptor x with its place added, is compared with.

        `basis` [2, 64, C / 2] is of sums, then of differences of numbers that mirror each other, as
        `folded` has them; `offset` [C / 2] is of the sums. `means` and `variances` [K / 2, C + 2],
        `priors` [K / 2] are of the first half of the Gaussians; all priors together make one.
        """
        values = (basis, offset, means, np.sqrt(variances), np.log(priors))
        for weight, value in zip(self.weights, values, strict=True):
            weight.assign(value)

    @property
    def projection(self) -> tuple[Any, Any]:
        """What projects whole descriptors: x · basis - offset, float32[128, C] and [C]."""
        half = self.components // 2
        whole = ops.einsum("nsj,sjc->nsc", FOLD, self.basis)
        return ops.reshape(whole, (LENGTH, self.components)), ops.pad(self.offset, (0, half))

    @property
    def mixture(self) -> tuple[Any, Any, Any]:
        """All Gaussians' means and deviations, float32[K, C + 2], and log priors, [K]."""
        return (
            ops.concatenate([self.means, self.means * signs(self.components)]),
            ops.concatenate([self.deviations] * 2),
            ops.concatenate([self.log_priors] * 2),
        )

    def placed(self, descriptors: Any) -> Any:
        """Project descriptors and add their places: float32[N, P, 128] → [N, P, C + 2]."""
        basis, offset = self.projection
        places = ops.repeat(self.places[None], ops.shape(descriptors)[0], axis=0)
        return ops.concatenate([ops.matmul(descriptors, basis) - offset, places], axis=2)

    def call(self, descriptors: Any) -> Any:
        x = self.placed(descriptors)
        wide = self.components + 2
        means, deviations, log_priors = self.mixture
        both = ops.concatenate([x, x * x], axis=2)
        precision = 1 / ops.square(deviations)
        pull = ops.concatenate([means * precision, -0.5 * precision], axis=1)
        constant = log_priors - ops.sum(
            ops.log(deviations) + 0.5 * ops.square(means) * precision, axis=1
        )
        share = ops.softmax(ops.matmul(both, ops.transpose(pull)) + constant, axis=2)
        share = ops.transpose(share, (0, 2, 1))
        zeroth = ops.sum(share, axis=2, keepdims=True)
        sums = ops.matmul(share, both)
        first, second = sums[:, :, :wide], sums[:, :, wide:]
        prior = ops.exp(log_priors)[:, None]
        to_means = (first - means * zeroth) / (deviations * ops.sqrt(prior))
        spread = second - 2 * means * first
        spread += (ops.square(means) - ops.square(deviations)) * zeroth
        to_variances = spread * precision / ops.sqrt(2 * prior)
        vector = ops.concatenate([to_means, to_variances], axis=2) / len(self.places)
        vector = ops.reshape(vector, (-1, 2 * self.gaussians * wide))
        return ops.normalize(ops.sign(vector) * ops.sqrt(ops.abs(vector)), axis=-1, order=2)


def folded(descriptors: Floats) -> Floats:
    """Give sums, then differences, of numbers that mirror each other: [..., 128] → [..., 2, 64]."""
    both: Floats = np.einsum("...n,nsj->...sj", descriptors, FOLD).astype(np.float32)
    return both


@keras.saving.register_keras_serializable("facepairs")
class MirroredVector(keras.Layer):  # type: ignore[misc]
    """Gives the mirror images' vectors of images' vectors: [N, 2·K·(C + 2)], the same numbers.

    They come in another order, and those that change sign with the side do so.
    """

    def __init__(self, components: int = COMPONENTS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.components = components

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "components": self.components}

    def call(self, vectors: Any) -> Any:
        turned = np.concatenate([signs(self.components), np.ones(self.components + 2, np.float32)])
        halves = ops.reshape(vectors, (-1, 2, vectors.shape[1] // 2 // len(turned), len(turned)))
        halves = ops.flip(halves, axis=1) * ops.cast(turned, vectors.dtype)
        return ops.reshape(halves, (-1, vectors.shape[1]))


def fisher_tower(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 128], rows of length 1.

    An embedding is the mean's direction of the image's and its mirror image's. Parts: `describe`,
    `mirror` and `project`. Raises ValueError unless `image_px` is a multiple of 16 from 96 on.
    """
    if image_px < SMALLEST_PX or image_px % 16:
        raise ValueError(f"image_px is {image_px}; known: multiples of 16 from {SMALLEST_PX} on")
    image = keras.Input((image_px, image_px, 3), name="image")
    vector = FisherVector(image_px)(DenseDescriptors()(image))
    describe = keras.Model(image, vector, name=BACKBONE, trainable=False)
    given = keras.Input(vector.shape[1:], name="vector")
    projected = layers.Dense(DIMENSIONS, name="projection")(given)
    project = keras.Model(given, layers.UnitNormalization()(projected), name=PROJECTOR)
    vector = describe(image)
    sides = project(vector) + project(MirroredVector(name=MIRROR)(vector))
    return keras.Model(image, layers.UnitNormalization()(sides), name="fisher_tower")


def set_projection(tower: keras.Model, mean: Floats, directions: Floats) -> None:
    """Start the projection as x → directions · (x - mean).

    `mean` float[D], `directions` float[K, D], K at most 128; where there are fewer, the other
    coordinates start at 0.
    """
    dense = tower.get_layer(PROJECTOR).get_layer("projection")
    kernel = np.zeros((directions.shape[1], DIMENSIONS))
    kernel[:, : len(directions)] = directions.T
    dense.set_weights([kernel, -mean @ kernel])
