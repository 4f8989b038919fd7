"""The devices and workers of a training: connect them, exchange values, notice a lost worker."""

import contextlib
import hashlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadConfig, LostWorker
from facepairs.models.replicas import BatchShard, split_batch
from facepairs.support import console
from facepairs.training.cluster import Cluster, read_cluster

STARTUP_TIMEOUT_S = 600  # a cluster's machines start one by one
HEARTBEAT_TIMEOUT_S = 10  # a silent worker is lost: killed, stopped or cut off
WORKER_LOST_ERRORS = (  # what TensorFlow raises when a worker does not answer
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)

SHUTDOWN_DELAY_S = 1.0
ASK_EVERY = 20  # steps, after which several workers ask each other whether to stop


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

    def run(
        self, pairs: int, images: Any, function: Callable[[BatchShard | None, Any], tf.Tensor]
    ) -> tf.Tensor:
        """Run a function on every device of this worker with its part of a global batch.

        Args:
            pairs: Number of pairs in the global batch.
            images: Tensor [2·b, …] of the worker's b pairs, left images before right ones.
            function: Takes the shard of the global batch and its images; None and all images when
                there is a single device.

        Returns:
            The first device's result.
        """
        if not self.strategy:
            return function(None, images)
        shards = self._local_shards(int(pairs))
        begin, end = shards[0].begin, shards[-1].end
        local = [BatchShard(s.begin - begin, s.end - begin, end - begin, 1) for s in shards]
        parts = [part.take(images) for part in local]

        def replica() -> tf.Tensor:
            place = self.local_replica_index()
            return function(shards[place], parts[place])

        return self.strategy.experimental_local_results(self.strategy.run(replica))[0]

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

    def shutdown(self) -> None:
        """Wait for every worker, then keep serving briefly.

        The slowest worker may still be fetching tensors from this one.
        """
        self.sum(1)
        self._keep_serving()

    def _keep_serving(self) -> None:
        if self.workers > 1:
            time.sleep(SHUTDOWN_DELAY_S)

    @contextlib.contextmanager
    def translate_lost_worker(self) -> Iterator[None]:
        """Translate TensorFlow's errors into LostWorker when one of several workers is lost.

        Raises:
            LostWorker: Another worker stopped or cannot be reached.
        """
        try:
            yield
        except WORKER_LOST_ERRORS:
            if self.workers == 1:
                raise
            raise LostWorker(
                "another worker stopped or cannot be reached; start all workers again: a resumed "
                "training continues from its last checkpoint",
                "resume",
            ) from None

    def any(self, value: bool) -> bool:
        """Return whether `value` is true on any worker."""
        return bool(self.sum(value) > 0)

    def any_at(self, step: int, value: bool) -> bool:
        """Return whether `value` is true on any worker; several workers ask at a few steps only."""
        return value if self.workers == 1 else step % ASK_EVERY == 0 and self.any(value)

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
        if self.any(number != self.broadcast(number)):
            self._keep_serving()
            raise BadConfig(
                f"the workers have different {description}; give all of them the same command, "
                "images and run folder"
            )


SINGLE_DEVICE = DistributedContext()


def connect_devices(devices: str = "one") -> DistributedContext:
    """Find the devices to train on and connect the workers that `TF_CONFIG` names.

    With several workers, this blocks until all have started, and it must run before any other
    TensorFlow operation.

    Args:
        devices: `one`; `all` devices of this machine or cluster (logical CPUs where there is no
            GPU); or `auto`: all GPUs or all workers.

    Returns:
        The context of this worker.

    Raises:
        LostWorker: A worker did not start within STARTUP_TIMEOUT_S.
        BadConfig: `TF_CONFIG` cannot be read.
    """
    if devices == "one":
        return DistributedContext()
    cluster = read_cluster()
    if cluster.workers > 1:
        console.log(
            f"waiting for {cluster.workers} workers, {STARTUP_TIMEOUT_S / 60:g} minutes at most"
        )
        try:
            with _interruptible():
                _limit_startup_time()
                return DistributedContext(tf.distribute.MultiWorkerMirroredStrategy(), cluster)
        except WORKER_LOST_ERRORS as error:
            reason = (error.message or type(error).__name__).splitlines()[0]
            raise LostWorker(
                f"worker {cluster.worker} did not meet the others ({reason}); start all "
                f"{cluster.workers} with the same TF_CONFIG except for its index, on ports that "
                "the others can reach and no other program uses"
            ) from None
    found = tf.config.list_logical_devices("GPU")
    if devices == "all" and not found:
        found = tf.config.list_logical_devices("CPU")
    if len(found) < 2:
        return DistributedContext()
    return DistributedContext(tf.distribute.MirroredStrategy([device.name for device in found]))


def _limit_startup_time() -> None:
    """Apply both timeouts to TensorFlow's coordination service.

    By default it waits an hour in C++ while it holds Python's lock, so a timer of ours could not
    end it. There is no public function for this; TensorFlow versions without these private names
    keep their default.
    """
    with contextlib.suppress(ImportError, AttributeError, TypeError):
        from tensorflow.python.eager.context import context

        context().configure_coordination_service(
            "standalone",
            cluster_register_timeout_in_ms=STARTUP_TIMEOUT_S * 1000,
            heartbeat_timeout_in_ms=HEARTBEAT_TIMEOUT_S * 1000,
        )
        context().coordination_service.cluster_register_with_barrier = True


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once: Python handles it only when TensorFlow returns."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
