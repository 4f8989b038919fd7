"""The devices and workers of a training, by `tf.distribute` as Keras documents it.

Each replica computes the loss of its own pairs, and the optimizer sums the gradients. An in-batch
loss thus compares a face with those of its replica alone: give more replicas larger batches.
"""

import contextlib
import hashlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadConfig, LostWorker
from facepairs.support import console
from facepairs.training.cluster import Cluster, read_cluster

EXCHANGE_TIMEOUT_S = 60.0  # a worker that is silent for so long is lost
SHUTDOWN_DELAY_S = 1.0  # the slowest worker may still be fetching from this one
WORKER_LOST_ERRORS = (  # what TensorFlow raises when a worker does not answer
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)


class Workers:
    """The replicas of one training and the workers that they are spread over.

    Attributes:
        strategy: TensorFlow's strategy; its default one for a single device.
        worker: Number of this worker, from 0; 0 is the chief, which writes the run folder.
        workers: Number of workers.
        replicas: Number of devices of all workers together.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy | None = None, cluster: Cluster | None = None
    ) -> None:
        self.strategy = strategy or tf.distribute.get_strategy()
        cluster = cluster or Cluster()
        self.worker, self.workers = cluster.worker, cluster.workers
        self.is_chief = self.worker == 0
        self.replicas = self.strategy.num_replicas_in_sync
        # Eagerly, TensorFlow would leave a pool of threads behind when a worker is lost.
        self._all_reduce = tf.function(self._sum_in_graph, autograph=False)

    def synchronise(self, head: keras.Model) -> None:
        """Make batch normalisation take mean and variance over the batches of all replicas."""
        for layer in head._flatten_layers() if self.replicas > 1 else ():
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.synchronized = True

    def check_batch_size(self, size: int) -> None:
        """Raise BadConfig when the replicas cannot share a batch; log that they do."""
        if size % self.replicas or size < 2 * self.replicas:
            raise BadConfig(
                f"batch_size {size} cannot be shared by {self.replicas} devices; use "
                f"{max(2, round(size / self.replicas)) * self.replicas}, or other devices",
                "batch_size",
                "devices",
            )
        if self.replicas > 1:
            worker = f"worker {self.worker} of {self.workers}"
            console.log(f"{worker}; {self.replicas} devices share every batch")

    def sum(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """Sum an array over the workers; blocks until every worker has called it."""
        own = np.asarray(values, dtype)
        return own if self.workers == 1 else np.asarray(self._all_reduce(tf.constant(own)))

    def _sum_in_graph(self, own: tf.Tensor) -> tf.Tensor:
        def replica() -> tf.Tensor:
            here = tf.distribute.get_replica_context()
            first = here.replica_id_in_sync_group % (self.replicas // self.workers) == 0
            return here.all_reduce("sum", tf.where(first, own, tf.zeros_like(own)))

        total, *_ = self.strategy.experimental_local_results(self.strategy.run(replica))
        return total

    def share(self, variables: Sequence[keras.Variable]) -> None:
        """Set variables on every worker to the chief's values, bit for bit."""
        for variable in variables if self.workers > 1 else ():
            value = np.asarray(variable)
            variable.assign(self.sum(value * self.is_chief, value.dtype))

    def any(self, value: bool) -> bool:
        """Return whether `value` is true on any worker."""
        return bool(self.sum(value) > 0)

    def of_chief(self, number: float) -> float:
        """Return the chief's `number` on every worker."""
        return float(self.sum(number * self.is_chief))

    def check_same(self, text: str, description: str) -> None:
        """Raise BadConfig on all workers if a text is not the same on all of them."""
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])  # exact in float64
        if self.any(number != self.of_chief(number)):
            self.leave()
            raise BadConfig(
                f"the workers have different {description}; give all of them the same command, "
                "images and run folder"
            )

    def leave(self) -> None:
        """Keep serving briefly; call it before the process of one of several workers ends."""
        if self.workers > 1:
            time.sleep(SHUTDOWN_DELAY_S)

    @contextlib.contextmanager
    def translate_lost_worker(self) -> Iterator[None]:
        """Raise LostWorker for the errors of TensorFlow when one of several workers is lost."""
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


def connect_devices(devices: str = "one") -> Workers:
    """Find the devices to train on and connect the workers that `TF_CONFIG` names.

    With several workers, this blocks until all have started, and it must run before any other
    TensorFlow operation.

    Args:
        devices: `one`; `all` devices of this machine or cluster (logical CPUs where there is no
            GPU); or `auto`: all GPUs or all workers.

    Raises:
        LostWorker: A worker did not start.
        BadConfig: `TF_CONFIG` cannot be read.
    """
    if devices == "one":
        return Workers()
    cluster = read_cluster()
    if cluster.workers > 1:
        return _connect_workers(cluster)
    found = tf.config.list_logical_devices("GPU")
    if devices == "all" and not found:
        found = tf.config.list_logical_devices("CPU")
    names = [device.name for device in found]
    return Workers(tf.distribute.MirroredStrategy(names) if len(names) > 1 else None)


def _connect_workers(cluster: Cluster) -> Workers:
    console.log(f"waiting for {cluster.workers} workers")
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=EXCHANGE_TIMEOUT_S)
    previous = None
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C ends the wait: Python would handle it only when TensorFlow returns.
        previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return Workers(
            tf.distribute.MultiWorkerMirroredStrategy(communication_options=options), cluster
        )
    except WORKER_LOST_ERRORS as error:
        reason = (error.message or type(error).__name__).splitlines()[0]
        raise LostWorker(
            f"worker {cluster.worker} did not meet the others ({reason}); start all "
            f"{cluster.workers} with the same TF_CONFIG except for its index, on ports that "
            "the others can reach and no other program uses"
        ) from None
    finally:
        if previous is not None:
            signal.signal(signal.SIGINT, previous)
