"""Build an objective on embeddings by name: for the training loop, and for Keras's `compile`."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.arcface import ArcFace
from facepairs.models.losses.base import PairLoss
from facepairs.models.losses.in_batch import InBatchContrastive
from facepairs.models.losses.pairwise import MarginContrastive
from facepairs.models.losses.triplet import TripletInBatch

LOSSES: dict[str, type[PairLoss]] = {
    "in-batch": InBatchContrastive,
    "margin": MarginContrastive,
    "triplet": TripletInBatch,
    "arcface": ArcFace,
}
COMPILED = ("in-batch", "margin", "triplet")  # without weights


def build_loss(
    name: str,
    dimensions: int,
    temperature: float = 0.1,
    margin: float | None = None,
    people: int = 0,
) -> PairLoss:
    """Build an objective on embeddings; it takes those of the arguments that it has settings for.

    Args:
        name: A key of `LOSSES`.
        dimensions: Length of an embedding.
        temperature: Divides cosines; not for margin and triplet losses.
        margin: The loss's margin; None for its own default.
        people: How many people are trained on; for arcface.
    """
    known: dict[str, Any] = {
        "dimensions": dimensions,
        "temperature": temperature,
        "margin": margin,
        "people": people,
    }
    loss = LOSSES[name]
    return loss(**{key: known[key] for key in loss.settings if known[key] is not None})


@keras.saving.register_keras_serializable("facepairs")
class EmbeddingLoss(keras.losses.Loss):  # type: ignore[misc]
    """A loss on pairs of embeddings: `y_true` float[B] of 0 and 1, `y_pred` float[B, 2, D].

    Every pair's people count as its own, so a batch should have each person once:
    `pairs_dataset(…, distinct_people=True)`. Works with every Keras backend.

    Examples:
        >>> model = facepairs.build_keras("siamese-conv")
        >>> model.compile("adam", loss=facepairs.EmbeddingLoss("in-batch", temperature=0.1))

    Args:
        objective: `in-batch`, `margin` or `triplet`. `arcface` has weights of its own.
        temperature: Divides cosines; for `in-batch`.
        margin: For the others; None for the objective's default.
        name: The loss's name.

    Raises:
        ValueError: For another objective.
    """

    def __init__(
        self,
        objective: str = "in-batch",
        temperature: float = 0.1,
        margin: float | None = None,
        name: str = "embedding_loss",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if objective not in COMPILED:
            raise ValueError(f"objective is {objective!r}; known: {', '.join(COMPILED)}")
        self.objective, self.temperature, self.margin = objective, temperature, margin
        self._layer = build_loss(objective, 0, temperature, margin)

    def get_config(self) -> dict[str, Any]:
        settings = ("objective", "temperature", "margin")
        return {**super().get_config(), **{name: getattr(self, name) for name in settings}}

    def call(self, y_true: Any, y_pred: Any) -> Any:
        genuine = ops.reshape(ops.cast(y_true, "float32"), (-1,))
        left = ops.arange(ops.shape(genuine)[0], dtype="int32")
        right = ops.where(genuine > 0, left, -1 - left)
        return self._layer(y_pred[:, 0], y_pred[:, 1], genuine, left, right)
