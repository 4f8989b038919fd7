"""Summarise a bench: medians and ranges over the rounds, as tables and as JSON."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from facepairs.bench.job import FRAME_PX, SEED, pair_count
from facepairs.bench.measurements import RowMeasurement, StepMeasurement
from facepairs.bench.rows import BASELINE, LIMIT
from facepairs.bench.run import BenchResults, Line
from facepairs.support.machine import describe
from facepairs.support.words import align_columns

SCHEMA = 1
S = TypeVar("S", "RowSummary", "StepSummary")


@dataclass(frozen=True)
class RowSummary:
    """A pipeline: medians over the rounds; None where a figure is unknown.

    `x_pil` and `share_of_limit` are the speed relative to the rows `pil` and `limit`.
    """

    name: str
    pairs_per_s: float | None
    pairs_per_s_min: float | None
    pairs_per_s_max: float | None
    x_pil: float | None
    share_of_limit: float | None
    cpu_s_per_1k_pairs: float | None
    first_batch_s: float | None
    peak_rss_mb: float | None
    disk_mb: float | None
    build_s: float | None
    skipped: str | None
    failed: str | None
    note: str


@dataclass(frozen=True)
class StepSummary:
    """The training loop from one store; a share is that of the loop's own process."""

    store: str
    steps_per_s: float | None
    steps_per_s_min: float | None
    steps_per_s_max: float | None
    input_wait_share: float | None
    ceiling_steps_per_s: float | None
    share_of_ceiling: float | None
    share_of_ceiling_min: float | None
    share_of_ceiling_max: float | None
    device: str | None
    failed: str | None


def to_json(results: BenchResults, command: str) -> dict[str, Any]:
    """Return everything that was measured as plain values; unknown figures are None.

    Args:
        results: What `run_bench` returned.
        command: The command line, for the record.
    """
    options = results.options
    return {
        "schema": SCHEMA,
        "machine": describe(),
        "settings": {
            "command": command,
            "repeats": options.repeats,
            **asdict(options.settings),
            "frame_px": FRAME_PX,
            "images": results.images,
            "people": results.people,
            "pairs": pair_count(options.settings.batch_size),
            "seed": SEED,
            "page_cache": results.page_cache,
            "load_average_before": results.load_average,
            "interrupted": results.interrupted,
        },
        "rows": [asdict(row) for row in summarize_rows(results)],
        "training": [asdict(row) for row in summarize_steps(results)],
    }


def summarize_rows(results: BenchResults) -> list[RowSummary]:
    """Return the medians and ranges of every pipeline."""
    speeds = {line.name: _median(_column(line, "pairs_per_s")) for line in results.rows}
    return [_rounded(_row_summary(line, speeds, results)) for line in results.rows]


def summarize_steps(results: BenchResults) -> list[StepSummary]:
    """Return the medians and ranges of training from every store."""
    return [_rounded(_step_summary(line)) for line in results.training]


def _column(line: Line[Any], name: str) -> list[float]:
    """Return one figure of every round; nothing for a row that failed."""
    return [] if line.failed else [getattr(one, name) for one in line.measurements]


def _rounded(summary: S) -> S:
    """Round all figures to four digits; more would be noise."""
    figures: dict[str, Any] = {
        name: float(f"{value:.4g}")
        for name, value in vars(summary).items()
        if isinstance(value, float)
    }
    return replace(summary, **figures)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _row_summary(
    line: Line[RowMeasurement], speeds: dict[str, float | None], results: BenchResults
) -> RowSummary:
    row, speed = results.options.rows[line.name], speeds[line.name]
    rates = _column(line, "pairs_per_s")
    cached = row.has_cache and rates
    return RowSummary(
        name=line.name,
        pairs_per_s=speed,
        pairs_per_s_min=min(rates, default=None),
        pairs_per_s_max=max(rates, default=None),
        x_pil=_ratio(speed, speeds.get(BASELINE)),
        share_of_limit=_ratio(speed, speeds.get(LIMIT)),
        cpu_s_per_1k_pairs=_median(_column(line, "cpu_s_per_1k_pairs")),
        first_batch_s=_median(_column(line, "first_batch_s")),
        peak_rss_mb=_median(_column(line, "peak_rss_mb")),
        disk_mb=line.disk_mb if cached else None,
        build_s=line.build_s if cached else None,
        skipped=line.skipped or None,
        failed=line.failed or None,
        note=row.note,
    )


def _step_summary(line: Line[StepMeasurement]) -> StepSummary:
    rates, ceilings = _column(line, "steps_per_s"), _column(line, "ceiling_steps_per_s")
    shares = [rate / ceiling for rate, ceiling in zip(rates, ceilings, strict=True)]
    return StepSummary(
        store=line.name,
        steps_per_s=_median(rates),
        steps_per_s_min=min(rates, default=None),
        steps_per_s_max=max(rates, default=None),
        input_wait_share=_median(_column(line, "input_wait_share")),
        ceiling_steps_per_s=_median(ceilings),
        share_of_ceiling=_median(shares),
        share_of_ceiling_min=min(shares, default=None),
        share_of_ceiling_max=max(shares, default=None),
        device=line.measurements[0].device if rates else None,
        failed=line.failed or None,
    )


def row_table(rows: Sequence[RowSummary]) -> list[str]:
    """Return the lines of the pipeline table, in the order of `rows`."""
    header = "pairs/s|min-max|x pil|of limit|CPU s/1k|first s|RSS MB|disk MB|build s"
    lines = [["pipeline", *header.split("|")]]
    for row in rows:
        figures = [
            _number(row.pairs_per_s),
            _range(row.pairs_per_s_min, row.pairs_per_s_max, ",.0f"),
            _number(row.x_pil, ",.1f"),
            _number(row.share_of_limit, ",.0%"),
            _number(row.cpu_s_per_1k_pairs, ",.3f"),
            _number(row.first_batch_s, ",.2f"),
            _number(row.peak_rss_mb),
            _number(row.disk_mb),
            _number(row.build_s, ",.1f"),
        ]
        lines.append([row.name, *_cells(row.failed, row.skipped, figures)])
    return align_columns(lines, right=True)


def training_table(rows: Sequence[StepSummary]) -> list[str]:
    """Return the lines of the training table."""
    header = "steps/s|min-max|input wait|constant batch|of it|min-max"
    lines = [["training from", *header.split("|")]]
    for row in rows:
        figures = [
            _number(row.steps_per_s, ",.2f"),
            _range(row.steps_per_s_min, row.steps_per_s_max, ",.2f"),
            _number(row.input_wait_share, ".1%"),
            _number(row.ceiling_steps_per_s, ",.2f"),
            _number(row.share_of_ceiling, ".0%"),
            _range(row.share_of_ceiling_min, row.share_of_ceiling_max, ".0%"),
        ]
        lines.append([row.store, *_cells(row.failed, None, figures)])
    return align_columns(lines, right=True)


def _cells(failed: str | None, skipped: str | None, figures: list[str]) -> list[str]:
    """Return the figures of a line, or why it has none."""
    if failed:
        return [f"failed: {failed}"]
    if skipped:
        return [f"skipped: {skipped}"]
    return figures if any(figures) else ["not measured"]


def _number(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


def _range(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None else f"{low:{form}}-{high:{form}}"
