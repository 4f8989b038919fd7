"""Validation during training: scores of pairs of people who are not trained on."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.evaluation.metrics.curves import auc
from facepairs.models.network import Trainable
from facepairs.pipeline.dataset import Store, make_dataset
from facepairs.training.training import Validation


class Validator:
    """Scores the same pairs after each epoch.

    Args:
        model: Scores the pairs with its current weights.
        source: Where the model's inputs come from.
        pairs: The validation pairs.
        batch_size: Pairs scored at a time.

    Attributes:
        pairs: The validation pairs.
        scores: float64[pairs], the scores of the last validation; empty before the first.
    """

    def __init__(self, model: Trainable, source: Store, pairs: PairList, batch_size: int) -> None:
        self.pairs = pairs
        self.scores: npt.NDArray[np.float64] = np.zeros(0)
        self._source = source
        # One dataset for all epochs: TensorFlow would trace each new one again. TensorFlow keeps
        # the generator, so the generator must not refer to the model.
        self._batches = make_dataset(source, lambda: iter([pairs]), batch_size)

        def score(images: tf.Tensor, arrays: tuple[tf.Tensor, ...]) -> tf.Tensor:
            return model.scores(source.gather(images, *arrays))

        self._score: Any = tf.function(score, autograph=False, reduce_retracing=True)

    def __call__(self) -> Validation:
        """Score all pairs."""
        arrays = self._source.arrays
        scores = [self._score(batch["images"], arrays).numpy() for batch in self._batches]
        self.scores = np.concatenate(scores).astype(np.float64)
        return Validation(auc(self.pairs.genuine, self.scores), float(np.std(self.scores)))
