"""Training objectives: a function for each loss on pairs, and `EmbeddingLoss`, the Keras loss.

Embedding networks train on genuine pairs only, each person once per batch. An impostor pair is then
an image of one pair with an image of another; each function says which ones it uses.

Array contract of `loss(left, right, genuine, …)` → float32 scalar:

- `left`, `right`: float32[B, D], embeddings of length 1.
- `genuine`: float32[B], 1 for genuine pairs, else 0. Every pair's people count as its own.

A loss is 0 if the batch has nothing to learn from, and its gradient is finite for any embeddings,
equal and opposite ones included.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import ops

MAX_SQUARED_DISTANCE = 4.0  # of two points on the unit sphere
EPSILON = 1e-6  # added below roots, whose slope at 0 is infinite


def cosines(a: Any, b: Any) -> Any:
    """Return all cosines: float32[N, D] and float32[M, D], rows of length 1 → float32[N, M]."""
    return ops.matmul(a, ops.transpose(b))


def squared_distances(a: Any, b: Any) -> Any:
    """Return all squared Euclidean distances, 0 to 4; shapes as in `cosines`."""
    return ops.relu(2 - 2 * cosines(a, b))


def people_of(genuine: Any) -> tuple[Any, Any]:
    """Return the number of each left and right person, int32[B]: equal in genuine pairs alone."""
    left = ops.arange(ops.shape(genuine)[0], dtype="int32")
    return left, ops.where(genuine > 0, left, -1 - left)


def same_person(a: Any, b: Any) -> Any:
    """Compare all people with all: int32[N], int32[M] → bool[N, M]."""
    return ops.equal(a[:, None], b[None, :])


def masked_mean(values: Any, mask: Any) -> Any:
    """Return the mean of the finite `values` where `mask` is true; 0 if it never is."""
    weights = ops.cast(mask, values.dtype)
    return ops.sum(values * weights) / ops.maximum(ops.sum(weights), 1.0)


def in_batch_loss(left: Any, right: Any, genuine: Any, temperature: float = 0.1) -> Any:
    """Let every image of a genuine pair find its partner among all images of the other side.

    The default of embedding networks. Pairs that are not genuine provide further negatives.

    Args:
        left, right, genuine: See above.
        temperature: Divides cosines; the smaller, the more the hardest pairs count.

    References:
        van den Oord, Li, Vinyals, "Representation Learning with Contrastive Predictive Coding",
        2018 (InfoNCE); symmetric as in Radford et al., CLIP, 2021.
    """
    logits = cosines(left, right) / temperature
    partner = ops.diagonal(logits)
    cost = 0.5 * (ops.logsumexp(logits, axis=0) + ops.logsumexp(logits, axis=1)) - partner
    return masked_mean(cost, genuine)


def margin_loss(left: Any, right: Any, genuine: Any, margin: float = 1.0) -> Any:
    """Pull genuine pairs together and push impostor pairs `margin` apart.

    With the Euclidean distance d (0 to 2), a genuine pair costs d², an impostor pair
    max(0, margin - d)². All pairs (left i, right j) are used, both classes with equal weight; a
    class without pairs costs nothing.

    Args:
        left, right, genuine: See above.
        margin: Between 0 and 2.

    References:
        Hadsell, Chopra, LeCun, "Dimensionality Reduction by Learning an Invariant Mapping",
        CVPR 2006.
    """
    square = squared_distances(left, right)
    missing = ops.relu(margin - ops.sqrt(square + EPSILON))
    same = same_person(*people_of(genuine))
    impostor = masked_mean(ops.square(missing), ops.logical_not(same))
    return 0.5 * (masked_mean(square, same) + impostor)


def triplet_loss(left: Any, right: Any, genuine: Any, margin: float = 0.2) -> Any:
    """Demand that an image is closer to its partner than to other people, by `margin`.

    Distances are squared Euclidean, 0 to 4. Every image of a genuine pair is an anchor; one without
    a negative costs nothing. The negative is semi-hard: the nearest one beyond the partner or, if
    there is none, the farthest of all.

    Args:
        left, right, genuine: See above.
        margin: By how much.

    References:
        Schroff, Kalenichenko, Philbin, "FaceNet: A Unified Embedding for Face Recognition and
        Clustering", CVPR 2015.
    """
    images = ops.concatenate([left, right], axis=0)
    people = ops.concatenate(people_of(genuine), axis=0)
    distance = squared_distances(images, images)
    other = ops.logical_not(same_person(people, people))
    pair = ops.relu(2 - 2 * ops.sum(left * right, axis=1))
    partner = ops.concatenate([pair, pair], axis=0)
    beyond = ops.logical_and(other, distance > partner[:, None])
    nearest = ops.min(ops.where(beyond, distance, MAX_SQUARED_DISTANCE), axis=1)
    farthest = ops.max(ops.where(other, distance, 0.0), axis=1)
    negative = ops.where(ops.any(beyond, axis=1), nearest, farthest)
    anchor = ops.logical_and(ops.tile(genuine > 0, (2,)), ops.any(other, axis=1))
    return masked_mean(ops.relu(margin + partner - negative), anchor)


LOSSES: dict[str, Callable[..., Any]] = {
    "in-batch": in_batch_loss,
    "margin": margin_loss,
    "triplet": triplet_loss,
}


@keras.saving.register_keras_serializable("facepairs")
class EmbeddingLoss(keras.losses.Loss):  # type: ignore[misc]
    """A loss on pairs of embeddings: `y_true` float[B] of 0 and 1, `y_pred` float[B, 2, D].

    Every pair's people count as its own, so a batch should have each person once:
    `pairs_dataset(…, distinct_people=True)`. Works with every Keras backend.

    Examples:
        >>> model = facepairs.build_keras("siamese")
        >>> model.compile("adam", loss=facepairs.EmbeddingLoss("in-batch", temperature=0.1))

    Args:
        objective: `in-batch`, `margin` or `triplet`.
        temperature: Divides cosines; for `in-batch`.
        margin: For the others; None for the objective's default.
        centre: Subtract the mean of the batch's embeddings first. For networks of which all faces
            lie close together, such as `resnet`: all logits would be nearly equal.
        name: The loss's name.

    Raises:
        ValueError: For another objective.
    """

    def __init__(
        self,
        objective: str = "in-batch",
        temperature: float = 0.1,
        margin: float | None = None,
        centre: bool = False,
        name: str = "embedding_loss",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if objective not in LOSSES:
            raise ValueError(f"objective is {objective!r}; known: {', '.join(LOSSES)}")
        self.objective, self.temperature, self.margin = objective, temperature, margin
        self.centre = centre
        loss, given = LOSSES[objective], {"temperature": temperature, "margin": margin}
        taken = inspect.signature(loss).parameters
        known = {name: x for name, x in given.items() if name in taken and x is not None}
        self._loss = partial(loss, **known)

    def get_config(self) -> dict[str, Any]:
        settings = ("objective", "temperature", "margin", "centre")
        return {**super().get_config(), **{name: getattr(self, name) for name in settings}}

    def call(self, y_true: Any, y_pred: Any) -> Any:
        genuine = ops.reshape(ops.cast(y_true, "float32"), (-1,))
        embeddings = ops.cast(y_pred, "float32")
        if self.centre:
            mean = ops.mean(embeddings, axis=(0, 1))
            embeddings = ops.normalize(embeddings - mean, axis=-1, order=2)
        return self._loss(embeddings[:, 0], embeddings[:, 1], genuine)
