"""The devices that share a training: one, several of this machine, or several workers' (hosts).

All workers run the same program on the same data; worker 0, the chief, alone writes the run folder.
Between the workers goes what a step gathers and sums, and the few numbers that they agree on.
"""

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
from facepairs.models.step_random import BatchShard, parts
from facepairs.training.distributed.cluster import Cluster, read_cluster

COME_S = 600  # workers wait so long for each other to come; a cluster's machines start one by one
SILENT_S = 10  # who has not been heard of for so long is gone: killed, stopped or cut off
LINGER_S = 1.0
GONE = (  # what TensorFlow says of a worker that does not answer
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)


class Team:
    """The devices that share a training, seen from one worker; without `strategy` a single one."""

    def __init__(
        self, strategy: tf.distribute.Strategy | None = None, cluster: Cluster | None = None
    ) -> None:
        self.strategy = strategy
        self.worker = cluster.worker if cluster else 0
        self.workers = cluster.workers if cluster else 1
        self.replicas = strategy.num_replicas_in_sync if strategy else 1
        self._here = self.replicas // self.workers
        self._summed = tf.function(self._sum, autograph=False)

    @property
    def chief(self) -> bool:
        """Whether this worker writes the run folder."""
        return self.worker == 0

    def scope(self) -> Any:
        """Give the context in which variables are made on every device."""
        return self.strategy.scope() if self.strategy else contextlib.nullcontext()

    def own(self, pairs: int) -> tuple[int, int] | None:
        """Give which pairs of a batch this worker has, from … to; None where one device has all."""
        if not self.strategy:
            return None
        mine = self._parts(pairs)
        return mine[0].begin, mine[-1].end

    def _parts(self, pairs: int) -> list[BatchShard]:
        first = self.worker * self._here
        return parts(pairs, self.replicas)[first : first + self._here]

    def share(self, pairs: int, images: Any) -> list[tuple[BatchShard, Any]]:
        """Deal this worker's images [2·b, …] of a batch of `pairs` out to its devices."""
        mine = self._parts(pairs)
        begin, end = mine[0].begin, mine[-1].end
        if len(mine) == 1:
            return [(mine[0], images)]
        own = [BatchShard(p.begin - begin, p.end - begin, end - begin, 1) for p in mine]
        return [(part, at.rows(images)) for part, at in zip(mine, own, strict=True)]

    def here(self) -> int:
        """Give, within `strategy.run`, the number of a replica among those of this worker."""
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return int(tf.get_static_value(number)) % self._here

    def _sum(self, values: tf.Tensor) -> tf.Tensor:
        assert self.strategy is not None

        def everybodys() -> tf.Tensor:
            # Made anew within the replica: what comes from outside bears no device.
            own = tf.identity(values) if self.here() == 0 else tf.zeros_like(values)
            return tf.distribute.get_replica_context().all_reduce("sum", own)

        return self.strategy.experimental_local_results(self.strategy.run(everybodys))[0]

    def sum(self, values: npt.ArrayLike, kind: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """Add up an array over the workers; all must call it, and wait for each other here."""
        own = np.asarray(values, kind)
        return own if self.workers == 1 else np.asarray(self._summed(tf.constant(own)))

    def wait(self) -> None:
        """Come back when all workers are here."""
        self.sum(1)

    def part(self) -> None:
        """Wait for all, and a moment more: what the last to come still fetches must be there."""
        self.wait()
        self._linger()

    def _linger(self) -> None:
        if self.workers > 1:
            time.sleep(LINGER_S)

    @contextlib.contextmanager
    def in_turn(self) -> Iterator[None]:
        """Let the chief go through the block first, then all others at once."""
        if not self.chief:
            self.wait()
        yield
        if self.chief:
            self.wait()

    def any(self, true: bool) -> bool:
        """Tell whether it is true of any worker."""
        return bool(self.sum(true) > 0)

    def chiefs(self, number: float) -> float:
        """Give the chief's number to all."""
        return float(self.sum(number if self.chief else 0))

    def take_chiefs(self, variables: Sequence[keras.Variable]) -> None:
        """Set float32 variables to the chief's values, bit for bit, on every worker."""
        if self.workers == 1:
            return
        for variable in variables:
            value = np.asarray(variable)
            variable.assign(self.sum(value if self.chief else np.zeros_like(value), value.dtype))

    def check_same(self, text: str, what: str) -> None:
        """Raise BadConfig on all workers where a text is not the same on all."""
        if self.workers == 1:
            return
        word = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])  # exact in float64
        words = self.sum(np.where(np.arange(self.workers) == self.worker, word, 0))
        other = np.flatnonzero(words != words[0])
        if len(other):
            self._linger()
            raise BadConfig(
                f"worker {other[0]} has {what} other than worker 0's; give all workers the same "
                "command, images and run folder"
            )


def open_team(devices: str = "one", say: Callable[[str], None] = lambda line: None) -> Team:
    """Find the devices: `one`, `all` of this machine or cluster, or `auto`: all GPUs or workers.

    Several workers are told from `TF_CONFIG`; then this waits for the others, which `say` is told,
    and must come before anything else that TensorFlow does. Raises LostWorker where they do not
    come within COME_S. Without a GPU, `all` are the logical CPUs.
    """
    if devices == "one":
        return Team()
    cluster = read_cluster()
    if cluster.workers > 1:
        say(f"waiting for {cluster.workers} workers, {COME_S / 60:g} minutes at most")
        try:
            with _stoppable():
                _bound_waiting()
                return Team(tf.distribute.MultiWorkerMirroredStrategy(), cluster)
        except GONE as error:
            raise LostWorker(_not_met(cluster, error)) from None
    found = tf.config.list_logical_devices("GPU")
    if devices == "all" and not found:
        found = tf.config.list_logical_devices("CPU")
    if len(found) < 2:
        return Team()
    return Team(tf.distribute.MirroredStrategy([device.name for device in found]))


def _bound_waiting() -> None:
    """Let TensorFlow's coordination service wait no longer than COME_S and SILENT_S.

    Left to itself it waits an hour for workers to come, in C++ and with Python's lock held, so that
    no clock of ours could end it. For this there is no public name: a TensorFlow that has another
    one than 2.21 waits as long as it does by itself.
    """
    with contextlib.suppress(ImportError, AttributeError, TypeError):
        from tensorflow.python.eager.context import context

        context().configure_coordination_service(
            "standalone",
            cluster_register_timeout_in_ms=COME_S * 1000,
            heartbeat_timeout_in_ms=SILENT_S * 1000,
        )
        context().coordination_service.cluster_register_with_barrier = True


def _not_met(cluster: Cluster, error: tf.errors.OpError) -> str:
    if isinstance(error, tf.errors.DeadlineExceededError):
        return (
            f"not all of the {cluster.workers} workers came within {COME_S / 60:g} minutes; start "
            "them all, with the same TF_CONFIG but for its index, and let each reach the others' "
            "ports"
        )
    why = (error.message or type(error).__name__).splitlines()[0]
    return (
        f"worker {cluster.worker} cannot join the others ({why}); see that nothing else uses its "
        "port in TF_CONFIG, and start all workers again"
    )


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Let Ctrl-C end the process at once: Python would see it only when TensorFlow comes back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def lost_worker(workers: int) -> Iterator[None]:
    """Raise LostWorker for what TensorFlow raises where one of several workers has gone."""
    try:
        yield
    except GONE:
        if workers == 1:
            raise
        raise LostWorker(
            "another worker stopped or cannot be reached; start all workers again with --resume, "
            "and training goes on from its last checkpoint"
        ) from None
