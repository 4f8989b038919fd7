"""What workers report: plain values that travel as JSON; this module imports nothing heavy."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RowMeasurement:
    """One run of a row.

    Attributes:
        pairs_per_s: Pairs per second, after the warm-up.
        cpu_s_per_1k_pairs: CPU seconds per 1,000 pairs, child processes included.
        first_batch_s: Seconds until the first batch.
        peak_rss_mb: Peak of resident memory above that at the start, in MB.
    """

    pairs_per_s: float
    cpu_s_per_1k_pairs: float
    first_batch_s: float
    peak_rss_mb: float

    def __str__(self) -> str:
        return f"{self.pairs_per_s:,.1f} pairs/s"


@dataclass(frozen=True)
class StepMeasurement:
    """One run of the training loop.

    Attributes:
        steps_per_s: Steps per second on the store's batches.
        ceiling_steps_per_s: Steps per second on a constant batch, in the same process.
        input_wait_share: Share of the time that the loop waited for input, 0 to 1.
        device: Name of the GPU, or "CPU".
    """

    steps_per_s: float
    ceiling_steps_per_s: float
    input_wait_share: float
    device: str

    def __str__(self) -> str:
        return f"{self.steps_per_s:,.1f} steps/s"


@dataclass(frozen=True)
class WorkerResult:
    """The outcome of one worker process: values, or the reason why there are none."""

    values: dict[str, Any] | None = None
    failed: str = ""
    skipped: str = ""
