"""The random numbers of a training step: a pure function of seed, step and place in the batch.

A step that several devices share is that of one device with the whole batch: each draws what that
device would have drawn for the rows that it has.
"""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

PHILOX = 1  # as `tf.random.Algorithm` numbers it
A_COUNT = 4  # float32 numbers that one count of Philox's counter gives


@dataclass(frozen=True)
class BatchShard:
    """The pairs `begin` to `end` of a whole batch of `of` pairs: what one of `replicas` has."""

    begin: int
    end: int
    of: int
    replicas: int

    def rows(self, whole: Any) -> Any:
        """Cut [2·of, …], lefts then rights, down to the part's own [2·(end - begin), …]."""
        right = self.of + self.begin
        return tf.concat([whole[self.begin : self.end], whole[right : self.of + self.end]], axis=0)


def parts(pairs: int, replicas: int) -> list[BatchShard]:
    """Deal a batch out to replicas in its order; their shares differ by one pair at most."""
    bounds = [pairs * i // replicas for i in range(replicas + 1)]
    return [BatchShard(bounds[i], bounds[i + 1], pairs, replicas) for i in range(replicas)]


@dataclass(frozen=True)
class StepRandom:
    """StepRandom for one step; `seed` and `step` are int64 scalars, `part` None where one has all.

    StepRandom of one step are told apart by their `number`.
    """

    seed: Any
    step: Any
    part: BatchShard | None = None

    def uniform(
        self, number: int, shape: tuple[Any, ...], low: float = 0.0, high: float = 1.0
    ) -> Any:
        """Draw float32 numbers from `low` to `high`, a row an image of the batch or part."""
        part = self.part
        whole = shape if part is None else (2 * part.of, *shape[1:])
        drawn = tf.random.stateless_uniform(
            whole, self._seed(number), tf.cast(low, tf.float32), tf.cast(high, tf.float32)
        )
        return drawn if part is None else part.rows(drawn)

    def dropout(self, number: int, values: Any, rate: float) -> Any:
        """Set a share `rate` of float32[rows, D] to 0 and scale the others up; D in fours."""
        seed = self._seed(number)
        if self.part is None:
            return tf.nn.experimental.stateless_dropout(values, rate, seed)
        kept = self._stream(seed, int(values.shape[1])) >= rate
        return tf.where(kept, values * (1 / (1 - rate)), 0.0)

    def _seed(self, number: int) -> tf.Tensor:
        words = tf.stack([tf.cast(self.seed, tf.int64), tf.cast(self.step, tf.int64) + number])
        return tf.cast(tf.math.floormod(words, tf.int32.max - 1), tf.int32)

    def _stream(self, seed: tf.Tensor, width: int) -> tf.Tensor:
        """Give the part's rows of `stateless_uniform` [2·of, width] without drawing the others."""
        part = self.part
        assert part is not None
        if width % A_COUNT:
            raise ValueError(f"rows are {width} numbers wide; use a multiple of {A_COUNT}")
        key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
        drawn = []
        for first in (part.begin, part.of + part.begin):
            skipped = tf.constant([first * width // A_COUNT, 0], tf.uint64)
            drawn.append(
                tf.raw_ops.StatelessRandomUniformV2(
                    shape=[part.end - part.begin, width],
                    key=key,
                    counter=counter + skipped,
                    alg=PHILOX,
                )
            )
        return tf.concat(drawn, axis=0)
