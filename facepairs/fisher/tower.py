"""The Fisher-vector tower: a frozen backbone of local descriptors, and a trained projection.

    image → FisherBackbone ┬→ projection → length 1 ┬→ sum → length 1
                           └→ MirroredVector → …  ──┘

A tower may have several members, each with its own descriptors (of a region of the image, of
edges or of lines), mixture and projection. Their vectors are concatenated, and so are their
embeddings of length 1: the cosine of two embeddings is about the mean of the members' cosines.

The backbone, up to the vector, is fitted once to training faces without labels
(`FisherMember.set_mixture`). An image's vector can therefore be computed once and stored, and
training only updates the projection.

References:
    Simonyan, Parkhi, Vedaldi and Zisserman, "Fisher Vector Faces in the Wild", BMVC 2013; there
    with a hinge loss on pairs.
"""

from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np
import numpy.typing as npt
from keras import layers, ops

from facepairs.fisher.descriptors import LENGTH, MIRROR_ORDER, View, positions, project_views
from facepairs.fisher.embedding import CohortDimension, Projections

GAUSSIANS, COMPONENTS = 256, 48
# Names of the tower's layers, also in saved models.
BACKBONE, MIRROR, PROJECTOR, COHORT = "describe", "mirror", "project", "cohort"
# What a member sees; lines: of the centre, by second derivatives.
Member = Literal["face", "eyes", "lines"]
MEMBERS: tuple[Member, ...] = ("face", "eyes", "lines")
COHORT_SIZE = 256
MAX_LOG_RATIO = 46.0  # of the shares of a descriptor
# Side and first line of the parts that are not the whole image, as shares of its side.
REGIONS: dict[Member, tuple[float, float]] = {
    "lines": (11 / 16, 5 / 32),
    "eyes": (5 / 8, 1 / 16),
}

Floats = npt.NDArray[np.floating]


def _fold() -> Floats:
    """Return the matrix of the sums and differences of mirrored numbers: float32[128, 2, 64]."""
    first = np.flatnonzero(np.arange(LENGTH) < MIRROR_ORDER)  # one of each mirrored pair
    columns = np.arange(len(first))
    fold = np.zeros((LENGTH, 2, LENGTH // 2), np.float32)
    for sign, rows in ((1, first), (-1, MIRROR_ORDER[first])):
        fold[rows, 0, columns] = 1
        fold[rows, 1, columns] = sign
    return fold


FOLD = _fold()


def mirror_signs(components: int) -> Floats:
    """Return the signs by which mirroring multiplies a projected descriptor and (y, x): [C + 2]."""
    half = components // 2
    return np.repeat(np.array([1, -1, 1, -1], np.float32), (half, half, 1, 1))


class FisherMember(keras.Layer):  # type: ignore[misc]
    """The view of a member, and the mixture of Gaussians that encodes its descriptors.

    Every descriptor is projected on C components, and its position is appended. For each of K
    Gaussians the vector has the normalised gradients with respect to mean and variance, then the
    signed square root, scaled to length 1 (`encode`). Not trained by gradient descent.

    The mixture is symmetric under mirroring: half of the components are what a descriptor has in
    common with its mirror image, the others are how the two differ, and the second half of the
    Gaussians mirrors the first. The vector of a mirrored image is therefore that of the image in
    another order, see `MirroredVector`, and takes no time to compute.

    Args:
        view: What is described.
        px: Side of the images.
        gaussians: K, even.
        components: C, even.

    References:
        Perronnin, Sánchez and Mensink, "Improving the Fisher Kernel for Large-Scale Image
        Classification", ECCV 2010.
    """

    def __init__(
        self, view: View, px: int, gaussians: int = GAUSSIANS, components: int = COMPONENTS
    ) -> None:
        super().__init__(trainable=False)
        self.view, self.gaussians, self.components = view, gaussians, components
        self.positions = positions(px)  # float32[P, 2]
        half, wide = gaussians // 2, components + 2
        self.basis = self.add_weight(
            shape=(2, LENGTH // 2, components // 2), initializer="orthogonal"
        )
        self.offset = self.add_weight(shape=(components // 2,), initializer="zeros")
        self.means = self.add_weight(shape=(half, wide), initializer="random_normal")
        self.deviations = self.add_weight(shape=(half, wide), initializer="ones")
        self.log_priors = self.add_weight(shape=(half,), initializer="zeros")
        self.built = True

    def set_mixture(
        self, basis: Floats, offset: Floats, means: Floats, variances: Floats, priors: Floats
    ) -> None:
        """Set the weights.

        Args:
            basis: [2, 64, C / 2], the components of the sums, then of the differences, in the
                layout of `fold_descriptors`.
            offset: [C / 2], subtracted from the projected sums.
            means: [K / 2, C + 2], of the first half of the Gaussians; positions come last.
            variances: [K / 2, C + 2], likewise.
            priors: [K / 2], likewise; their sum is 1/2.
        """
        values = (basis, offset, means, np.sqrt(variances), np.log(priors))
        for weight, value in zip(self.weights, values, strict=True):
            weight.assign(value)

    @property
    def projection(self) -> tuple[Any, Any]:
        """Basis, float32[128, C], and offset, [C], of the projection x · basis - offset."""
        half = self.components // 2
        basis = ops.einsum("nsj,sjc->nsc", FOLD, self.basis)
        return ops.reshape(basis, (LENGTH, self.components)), ops.pad(self.offset, (0, half))

    @property
    def mixture(self) -> tuple[Any, Any, Any]:
        """Means and deviations, float32[K, C + 2], and log priors, [K], of all Gaussians."""
        return (
            ops.concatenate([self.means, self.means * mirror_signs(self.components)]),
            ops.concatenate([self.deviations] * 2),
            ops.concatenate([self.log_priors] * 2),
        )


@keras.saving.register_keras_serializable("facepairs")
class FisherBackbone(keras.Layer):  # type: ignore[misc]
    """The vectors of all members: float32[N, px, px, 3] → [N, members·2·K·(C + 2)].

    Args:
        px: Side of the images.
        members: For each member, what it sees of the image; no two see the same.
        **kwargs: Those of `keras.Layer`.
    """

    def __init__(self, px: int, members: Sequence[Member], **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "trainable": False})
        self.px, self.names = px, list(dict.fromkeys(members))
        self.members = [FisherMember(_view(px, member), px) for member in self.names]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "px": self.px, "members": self.names}

    @property
    def width(self) -> int:
        """How many numbers describe an image."""
        return sum(2 * each.gaussians * (each.components + 2) for each in self.members)

    def call(self, images: Any) -> Any:
        views = [member.view for member in self.members]
        bases = [member.projection[0] for member in self.members]
        return encode(project_views(images, views, bases), self.members)


def encode(projected: Any, members: Sequence[FisherMember]) -> Any:
    """Encode descriptors that the bases have been multiplied with.

    Args:
        projected: float32[N, M, C, P], the descriptors of each member, without the offset.
        members: M layers with the mixtures.

    Returns:
        float32[N, M·2·K·(C + 2)], M times a row of length 1.
    """
    mixtures = zip(*(member.mixture for member in members), strict=True)
    means, deviations, log_priors = (ops.stack(values) for values in mixtures)
    factors = _factors(means, deviations, log_priors)
    offsets = ops.stack([member.projection[1] for member in members])[..., None]
    places = members[0].positions.T
    count, wide = places.shape[1], members[0].components + 2
    x = projected - offsets
    shape = (ops.shape(x)[0], len(members))
    known = (places, places**2, np.ones((1, count), np.float32))
    where, squares, ones = (ops.broadcast_to(a, (*shape, *a.shape)) for a in known)
    # The descriptors with their positions, then the squares of both: [N, M, 2·(C + 2) + 1, P].
    columns = ops.concatenate([x, where, x * x, squares, ones], axis=2)
    share = _shares(columns, factors)
    sums = ops.transpose(ops.matmul(columns, share), (0, 1, 3, 2))
    first, second, zeroth = ops.split(sums, [wide, 2 * wide], axis=3)
    precision, prior = 1 / ops.square(deviations), ops.exp(log_priors)[..., None]
    to_means = (first - means * zeroth) * (1 / (deviations * ops.sqrt(prior) * count))
    spread = second - (2 * means) * first
    spread += (ops.square(means) - ops.square(deviations)) * zeroth
    to_variances = spread * (precision / (ops.sqrt(2 * prior) * count))
    vectors = ops.concatenate([to_means, to_variances], axis=3)
    width = 2 * members[0].gaussians * wide
    vectors = ops.reshape(vectors, (-1, len(members), width))
    rooted = vectors / ops.sqrt(ops.maximum(ops.abs(vectors), 1e-30))  # no 0 / 0
    unit = ops.normalize(rooted, axis=-1, order=2)
    return ops.reshape(unit, (-1, len(members) * width))


def _factors(means: Any, deviations: Any, log_priors: Any) -> Any:
    """Return the matrix that maps rows to logarithms of densities: [M, rows' width, K]."""
    precision = 1 / ops.square(deviations)
    spread = ops.sum(ops.square(means) * precision - ops.log(precision), axis=2)
    constant = (log_priors - 0.5 * spread)[..., None]
    factors = ops.concatenate([means * precision, -0.5 * precision, constant], axis=2)
    return ops.transpose(factors, (0, 2, 1))


def _shares(columns: Any, factors: Any) -> Any:
    """Return each Gaussian's share of each descriptor: [N, M, P, K], every row sums to 1.

    No share is below e^-46 of its row's highest: denormal numbers are slow.
    """
    # Copied for each image: TensorFlow's product of matrices can crash where it broadcasts.
    factors = ops.broadcast_to(factors, (ops.shape(columns)[0], *factors.shape))
    logits = ops.matmul(ops.transpose(columns, (0, 1, 3, 2)), factors)
    highest = ops.max(logits, axis=3, keepdims=True)
    return ops.softmax(ops.maximum(logits, highest - MAX_LOG_RATIO), axis=3)


def fold_descriptors(descriptors: Floats) -> Floats:
    """Return the sums, then the differences, of mirrored numbers: [..., 128] → [..., 2, 64]."""
    both: Floats = np.einsum("...n,nsj->...sj", descriptors, FOLD).astype(np.float32)
    return both


@keras.saving.register_keras_serializable("facepairs")
class MirroredVector(keras.Layer):  # type: ignore[misc]
    """Return the vectors of the mirrored images: [N, members·2·K·(C + 2)] in and out.

    They are the same numbers in another order, some with the other sign.

    Args:
        components: C.
        members: How many vectors are concatenated.
        **kwargs: Those of `keras.Layer`.
    """

    def __init__(self, components: int = COMPONENTS, *, members: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.components, self.members = components, members

    def get_config(self) -> dict[str, Any]:
        own = {"components": self.components, "members": self.members}
        return {**super().get_config(), **own}

    def call(self, vectors: Any) -> Any:
        signs = np.concatenate(
            [mirror_signs(self.components), np.ones(self.components + 2, np.float32)]
        )
        pairs = vectors.shape[1] // self.members // 2 // len(signs)  # of mirrored Gaussians
        halves = ops.reshape(vectors, (-1, 2, pairs, len(signs)))
        swapped = ops.concatenate([halves[:, 1:], halves[:, :1]], axis=1)  # `flip` is slow in ONNX
        swapped = swapped * ops.cast(signs, vectors.dtype)
        return ops.reshape(swapped, (-1, vectors.shape[1]))


def fisher_tower(
    image_px: int, members: Sequence[Member] = MEMBERS, cohort: int = COHORT_SIZE
) -> keras.Model:
    """Build the tower: float32[N, image_px, image_px, 3] → float32[N, members·128].

    Rows have length 1; with a cohort they are one number longer. An embedding is the normalised
    sum of those of the image and its mirror image.

    Args:
        image_px: A multiple of 16, at least 96: the smallest scale must hold a whole descriptor.
        members: For each member, what it sees of the image.
        cohort: Size of the cohort, see `CohortDimension`; 0 for none.
    """
    image = keras.Input((image_px, image_px, 3), name="image")
    vector = FisherBackbone(image_px, members, name=BACKBONE)(image)
    project = Projections(len(members), name=PROJECTOR)
    mirror = MirroredVector(members=len(members), name=MIRROR)
    dimension = CohortDimension(cohort, name=COHORT) if cohort else None
    embedding = _embed(vector, project, mirror, dimension)
    return keras.Model(image, embedding, name="fisher_tower")


def _view(image_px: int, member: Member) -> View:
    """Return the image that a member's descriptors are computed from."""
    if member == "face":
        return View()
    share, top = REGIONS[member]
    return View(2 * round(image_px * share / 2), round(image_px * top), lines=member == "lines")


def embed_vectors(tower: keras.Model, vectors: Any) -> Any:
    """Return the embeddings of vectors, as the tower computes them."""
    parts = {part.name: part for part in tower.layers}
    return _embed(vectors, parts[PROJECTOR], parts[MIRROR], parts.get(COHORT))


def _embed(
    vector: Any, project: Projections, mirror: keras.Layer, cohort: keras.Layer | None
) -> Any:
    """Return the normalised sum of the embeddings of an image and its mirror image."""
    # As one batch: an exported graph with two projections would load more slowly.
    both = project(ops.concatenate([vector, mirror(vector)], axis=0))
    both = ops.reshape(both, (2, -1, both.shape[-1]))
    embedding = layers.UnitNormalization()(both[0] + both[1])
    return cohort(embedding) if cohort else embedding
