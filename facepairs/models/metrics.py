"""`PairMetrics`: the AUC and the TAR at FAR of pairs, as a Keras metric."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from facepairs.data.minimums import MIN_EXPECTED_FALSE_ACCEPTS


def pair_scores(outputs: Any) -> Any:
    """Return the scores of pairs: logits [B, 1] or [B], or both embeddings [B, 2, D] → [B]."""
    if len(outputs.shape) == 3:
        return ops.sum(outputs[:, 0] * outputs[:, 1], axis=-1)
    return ops.reshape(outputs, (-1,))


@keras.saving.register_keras_serializable("facepairs")
class PairMetrics(keras.metrics.Metric):  # type: ignore[misc]
    """The AUC of pairs, and their TAR at FAR: exact, not from a histogram.

    Accuracy would mostly count strangers: with few held-out people they outnumber genuine pairs.
    Works with every Keras backend, and with `EarlyStopping(monitor="val_pair_auc", mode="max")`.

    Examples:
        >>> model = facepairs.build_keras("difference")
        >>> loss = keras.losses.BinaryCrossentropy(from_logits=True)
        >>> model.compile("adam", loss, metrics=[facepairs.PairMetrics()])
        >>> held_out = facepairs.pairs_dataset("photos", split="validation")
        >>> model.fit(facepairs.pairs_dataset("photos"), validation_data=held_out)

    Args:
        fars: The false accept rates; a TAR is NaN where there are too few impostor pairs for it.
        prefix: Begins the names: `pair_auc`, `pair_tar_at_far_0.01`.
        capacity: Pairs that are kept; of more, the latest count.
        name: The metric's name.
    """

    def __init__(
        self,
        fars: Sequence[float] = (0.1, 0.01),
        prefix: str = "pair_",
        capacity: int = 16_384,
        name: str = "pair_metrics",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.fars, self.prefix, self.capacity = tuple(fars), prefix, capacity

        def add(name: str, shape: tuple[int, ...], dtype: str) -> keras.Variable:
            # All replicas have all pairs, see `Network.test_step`.
            return self.add_variable(
                shape, "zeros", dtype=dtype, aggregation="only_first_replica", name=name
            )

        self.scores = add("scores", (capacity,), "float32")
        self.labels = add("labels", (capacity,), "float32")  # 1, -1, or 0 where there is no pair
        self.seen = add("seen", (), "int32")

    def get_config(self) -> dict[str, Any]:
        names = ("fars", "prefix", "capacity")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add pairs: 1 or 0 each, and logits [B, 1] or both embeddings [B, 2, D]."""
        labels = 2 * ops.reshape(ops.cast(y_true, "float32"), (-1,)) - 1
        count = ops.shape(labels)[0]
        at = ops.mod(self.seen + ops.arange(count, dtype="int32"), self.capacity)[:, None]
        scores = pair_scores(ops.cast(y_pred, "float32"))
        self.scores.assign(ops.scatter_update(self.scores, at, scores))
        self.labels.assign(ops.scatter_update(self.labels, at, labels))
        self.seen.assign(self.seen + count)

    def result(self) -> dict[str, Any]:
        """Return the figures by name; NaN without a genuine or an impostor pair."""
        genuine = ops.cast(self.labels > 0, "float32")
        impostors = ops.sum(ops.cast(self.labels < 0, "float32"))
        accepted = ops.sum(genuine)
        # The impostors' scores rising, and then infinity in the place of everything else.
        ranked = ops.sort(ops.where(self.labels < 0, self.scores, float("inf")))
        below = ops.cast(ops.searchsorted(ranked, self.scores, "left"), "float32")
        up_to = ops.cast(ops.searchsorted(ranked, self.scores, "right"), "float32")
        wins = ops.sum(genuine * (below + up_to) / 2 / impostors)
        figures = {f"{self.prefix}auc": wins / accepted}
        for far in self.fars:
            # A genuine pair is accepted if at most a share `far` of the impostors scores as high.
            passing = ops.floor(far * impostors + 1e-3)
            tar = ops.sum(genuine * ops.cast(impostors - below <= passing, "float32")) / accepted
            enough = far * impostors >= MIN_EXPECTED_FALSE_ACCEPTS - 1e-3
            figures[f"{self.prefix}tar_at_far_{far:g}"] = ops.where(enough, tar, float("nan"))
        return figures
