"""The devices that share a training, seen from one worker process.

All workers run the same program on the same data. Worker 0, the chief, is the only one that writes
the run folder. Workers exchange the tensors that a training step gathers and sums, and a few
numbers that they must agree on.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadConfig
from facepairs.models.step_random import BatchShard, split_batch
from facepairs.training.distributed.cluster import Cluster

SHUTDOWN_DELAY_S = 1.0


class DistributedContext:
    """The devices of one training; a single device when there is no `strategy`.

    Attributes:
        strategy: TensorFlow's distribution strategy, or None for a single device.
        worker: Number of this worker, from 0.
        workers: Number of workers.
        replicas: Number of devices of all workers together.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy | None = None, cluster: Cluster | None = None
    ) -> None:
        cluster = cluster or Cluster()
        self.strategy = strategy
        self.worker, self.workers = cluster.worker, cluster.workers
        self.replicas = strategy.num_replicas_in_sync if strategy else 1
        self._local_replicas = self.replicas // self.workers
        self._compiled_sum = tf.function(self._sum_over_workers, autograph=False)

    @property
    def is_chief(self) -> bool:
        """Whether this worker writes the run folder."""
        return self.worker == 0

    def scope(self) -> Any:
        """Return the context manager under which variables are created on every device."""
        return self.strategy.scope() if self.strategy else contextlib.nullcontext()

    def local_range(self, pairs: int) -> tuple[int, int] | None:
        """Return the [begin, end) range of a global batch that this worker processes.

        Args:
            pairs: Number of pairs in the global batch.

        Returns:
            The range, or None when there is a single device.
        """
        if not self.strategy:
            return None
        shards = self._local_shards(pairs)
        return shards[0].begin, shards[-1].end

    def _local_shards(self, pairs: int) -> list[BatchShard]:
        first = self.worker * self._local_replicas
        return split_batch(pairs, self.replicas)[first : first + self._local_replicas]

    def split_local_batch(self, pairs: int, images: Any) -> list[tuple[BatchShard, Any]]:
        """Split this worker's part of a global batch between its devices.

        Args:
            pairs: Number of pairs in the global batch.
            images: Tensor [2·b, …] of the worker's b pairs, left images before right ones.

        Returns:
            One (shard of the global batch, images of the shard) per device.
        """
        shards = self._local_shards(pairs)
        begin, end = shards[0].begin, shards[-1].end
        if len(shards) == 1:
            return [(shards[0], images)]
        local = [BatchShard(s.begin - begin, s.end - begin, end - begin, 1) for s in shards]
        return [(shard, part.take(images)) for shard, part in zip(shards, local, strict=True)]

    def local_replica_index(self) -> int:
        """Return the current replica's index on this worker; call within `strategy.run`."""
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return int(tf.get_static_value(number)) % self._local_replicas

    def _sum_over_workers(self, values: tf.Tensor) -> tf.Tensor:
        assert self.strategy is not None

        def replica() -> tf.Tensor:
            # Copied within the replica: a tensor from outside is not placed on its device.
            first = self.local_replica_index() == 0
            own = tf.identity(values) if first else tf.zeros_like(values)
            return tf.distribute.get_replica_context().all_reduce("sum", own)

        return self.strategy.experimental_local_results(self.strategy.run(replica))[0]

    def sum(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """Sum an array over the workers; blocks until every worker has called it.

        Args:
            values: Array of the same shape on every worker.
            dtype: Type to sum in.

        Returns:
            The sum, the same on every worker.
        """
        own = np.asarray(values, dtype)
        return own if self.workers == 1 else np.asarray(self._compiled_sum(tf.constant(own)))

    def barrier(self) -> None:
        """Block until every worker has reached this barrier."""
        self.sum(1)

    def shutdown(self) -> None:
        """Wait at a barrier, then keep serving briefly.

        The slowest worker may still be fetching tensors from this one.
        """
        self.barrier()
        self._keep_serving()

    def _keep_serving(self) -> None:
        if self.workers > 1:
            time.sleep(SHUTDOWN_DELAY_S)

    @contextlib.contextmanager
    def chief_first(self) -> Iterator[None]:
        """Run the block on the chief first, then on all other workers at once."""
        if not self.is_chief:
            self.barrier()
        yield
        if self.is_chief:
            self.barrier()

    def any(self, value: bool) -> bool:
        """Return whether `value` is true on any worker."""
        return bool(self.sum(value) > 0)

    def broadcast(self, number: float) -> float:
        """Return the chief's `number` on every worker."""
        return float(self.sum(number if self.is_chief else 0))

    def broadcast_variables(self, variables: Sequence[keras.Variable]) -> None:
        """Set float32 variables on every worker to the chief's values, bit for bit."""
        if self.workers == 1:
            return
        for variable in variables:
            value = np.asarray(variable)
            own = value if self.is_chief else np.zeros_like(value)
            variable.assign(self.sum(own, value.dtype))

    def check_same(self, text: str, description: str) -> None:
        """Check that a text is the same on all workers.

        Args:
            text: What must be equal.
            description: What the text describes, for the error message.

        Raises:
            BadConfig: It is not; raised on all workers.
        """
        if self.workers == 1:
            return
        digest = hashlib.sha256(text.encode()).digest()
        number = int.from_bytes(digest[:6])  # 48 bits are exact in float64
        numbers = self.sum(np.where(np.arange(self.workers) == self.worker, number, 0))
        different = np.flatnonzero(numbers != numbers[0])
        if len(different):
            self._keep_serving()
            raise BadConfig(
                f"worker {different[0]} has {description} other than worker 0's; give all workers "
                "the same command, images and run folder"
            )
