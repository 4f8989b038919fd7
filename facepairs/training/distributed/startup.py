"""Connecting the devices and workers of a training, and noticing when a worker is lost."""

import contextlib
import signal
import threading
from collections.abc import Iterator

import tensorflow as tf

from facepairs.errors import LostWorker
from facepairs.support.progress import MessageCallback, ignore_message
from facepairs.training.distributed.cluster import Cluster, read_cluster
from facepairs.training.distributed.context import DistributedContext

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


def connect_devices(
    devices: str = "one", log: MessageCallback = ignore_message
) -> DistributedContext:
    """Find the devices to train on and connect the workers that `TF_CONFIG` names.

    With several workers, this blocks until all have started, and it must run before any other
    TensorFlow operation.

    Args:
        devices: `one`; `all` devices of this machine or cluster (logical CPUs where there is no
            GPU); or `auto`: all GPUs or all workers.
        log: Receives a message before waiting for other workers.

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
        log(f"waiting for {cluster.workers} workers, {STARTUP_TIMEOUT_S / 60:g} minutes at most")
        try:
            with _interruptible():
                _limit_startup_time()
                return DistributedContext(tf.distribute.MultiWorkerMirroredStrategy(), cluster)
        except WORKER_LOST_ERRORS as error:
            raise LostWorker(_startup_failure(cluster, error)) from None
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


def _startup_failure(cluster: Cluster, error: tf.errors.OpError) -> str:
    """Return the message for a cluster that did not form."""
    if isinstance(error, tf.errors.DeadlineExceededError):
        return (
            f"not all of the {cluster.workers} workers came within {STARTUP_TIMEOUT_S / 60:g} "
            "minutes; start all of them with the same TF_CONFIG except for its index, and check "
            "that each can reach the others' ports"
        )
    reason = (error.message or type(error).__name__).splitlines()[0]
    return (
        f"worker {cluster.worker} cannot join the others ({reason}); check that no other program "
        "uses its port in TF_CONFIG, and start all workers again"
    )


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


@contextlib.contextmanager
def translate_lost_worker(workers: int) -> Iterator[None]:
    """Translate TensorFlow's errors into LostWorker when one of several workers is lost.

    Raises:
        LostWorker: Another worker stopped or cannot be reached.
    """
    try:
        yield
    except WORKER_LOST_ERRORS:
        if workers == 1:
            raise
        raise LostWorker(
            "another worker stopped or cannot be reached; start all workers again with --resume, "
            "and training continues from its last checkpoint"
        ) from None
