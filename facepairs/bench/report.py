"""What `bench` prints and writes: medians and ranges, as a table and as JSON."""

import statistics
from collections.abc import Sequence
from typing import Any

from facepairs.bench.job import SEED, pair_count
from facepairs.bench.rows import BASE, LIMIT, ROWS
from facepairs.bench.run import FRAME_PX, Line, Results
from facepairs.support.machine import describe

FIGURES = ("pairs_per_s", "cpu_s_per_1k_pairs", "first_batch_s", "peak_rss_mb")


def to_json(results: Results, command: str) -> dict[str, Any]:
    """Give everything measured as plain values; a figure that is not known is null."""
    options = results.options
    return {
        "schema": 1,
        "machine": describe(),
        "settings": {
            "command": command,
            "repeats": options.repeats,
            "seconds": options.seconds,
            "batch_size": options.batch_size,
            "frame_px": FRAME_PX,
            "crop_px": options.crop_px,
            "model": options.model,
            "images": results.images,
            "people": results.people,
            "pairs": pair_count(options.batch_size),
            "seed": SEED,
            "page_cache": results.page_cache,
            "load_average_before": results.load_average,
            "interrupted": results.interrupted,
        },
        "rows": _rows(results.rows),
        "training": _training(results.training),
    }


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Round figures to four digits: more would be noise."""
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in row.items()
    }


def _runs(line: Line) -> list[dict[str, Any]]:
    """The runs of the variant that stayed to the end."""
    return max(line.runs.values(), key=len, default=[]) if not line.failed else []


def _rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    speed = {line.name: _median([run["pairs_per_s"] for run in _runs(line)]) for line in lines}
    rows = []
    for line in lines:
        runs = _runs(line)
        middle = {name: _median([run[name] for run in runs]) for name in FIGURES}
        rates = [run["pairs_per_s"] for run in runs]
        built = ROWS[line.name].built and runs
        row = {
            "name": line.name,
            "pairs_per_s": middle["pairs_per_s"],
            "pairs_per_s_min": min(rates, default=None),
            "pairs_per_s_max": max(rates, default=None),
            "x_pil": _ratio(speed[line.name], speed.get(BASE)),
            "share_of_limit": _ratio(speed[line.name], speed.get(LIMIT)),
            "cpu_s_per_1k_pairs": middle["cpu_s_per_1k_pairs"],
            "first_batch_s": middle["first_batch_s"],
            "peak_rss_mb": middle["peak_rss_mb"],
            "disk_mb": line.disk_mb if built else None,
            "build_s": line.build_s if built else None,
            "skipped": line.skipped or None,
            "failed": line.failed or None,
            "note": _note(line),
        }
        rows.append(_plain(row))
    return rows


def _note(line: Line) -> str:
    """The row in one line, and which of its variants was the fastest."""
    note = ROWS[line.name].note
    if len(line.runs) < 2:
        return note
    first = {name: runs[0]["pairs_per_s"] for name, runs in line.runs.items()}
    ranked = sorted(first, key=lambda name: -first[name])
    text = ", ".join(f"{name} {first[name]:,.0f}" for name in ranked)
    return f"{note}; with {line.running[0]} (first round: {text} pairs/s)"


def _training(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Lay out what training from each store came to; a share is that of its own process."""
    rows = []
    for line in lines:
        runs = _runs(line)
        rates = [run["steps_per_s"] for run in runs]
        shares = [run["steps_per_s"] / run["ceiling_steps_per_s"] for run in runs]
        row = {
            "store": line.name,
            "steps_per_s": _median(rates),
            "steps_per_s_min": min(rates, default=None),
            "steps_per_s_max": max(rates, default=None),
            "input_wait_share": _median([run["input_wait_share"] for run in runs]),
            "ceiling_steps_per_s": _median([run["ceiling_steps_per_s"] for run in runs]),
            "share_of_ceiling": _median(shares),
            "share_of_ceiling_min": min(shares, default=None),
            "share_of_ceiling_max": max(shares, default=None),
            "device": runs[0]["device"] if runs else None,
            "failed": line.failed or None,
        }
        rows.append(_plain(row))
    return rows


def _number(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


def _range(row: dict[str, Any], name: str, form: str) -> str:
    low, high = row[f"{name}_min"], row[f"{name}_max"]
    return "" if low is None else f"{low:{form}}-{high:{form}}"


def row_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lay out the pipelines, in the order they were given."""
    header = "pairs/s|min-max|x pil|of limit|CPU s/1k|first s|RSS MB|disk MB|build s"
    lines = [["pipeline", *header.split("|")]]
    for row in rows:
        figures = [
            _number(row["pairs_per_s"]),
            _range(row, "pairs_per_s", ",.0f"),
            _number(row["x_pil"], ",.1f"),
            _number(row["share_of_limit"], ",.0%"),
            _number(row["cpu_s_per_1k_pairs"], ",.3f"),
            _number(row["first_batch_s"], ",.2f"),
            _number(row["peak_rss_mb"]),
            _number(row["disk_mb"]),
            _number(row["build_s"], ",.1f"),
        ]
        lines.append([row["name"], *(_reason(row, "pairs_per_s") or figures)])
    return aligned(lines)


def training_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lay out the stores with the model in the loop."""
    header = "steps/s|min-max|input wait|constant batch|of it|min-max"
    lines = [["training from", *header.split("|")]]
    for row in rows:
        figures = [
            _number(row["steps_per_s"], ",.2f"),
            _range(row, "steps_per_s", ",.2f"),
            _number(row["input_wait_share"], ".1%"),
            _number(row["ceiling_steps_per_s"], ",.2f"),
            _number(row["share_of_ceiling"], ".0%"),
            _range(row, "share_of_ceiling", ".0%"),
        ]
        lines.append([row["store"], *(_reason(row, "steps_per_s") or figures)])
    return aligned(lines)


def _reason(row: dict[str, Any], figure: str) -> list[str]:
    """Say in place of the figures why there are none."""
    for word in ("failed", "skipped"):
        if row.get(word):
            return [f"{word}: {row[word]}"]
    return [] if row[figure] is not None else ["not measured"]


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Set cells in columns: the first to the left, figures to the right; a lone text as it is."""
    columns = len(lines[0])
    whole = [line for line in lines if len(line) == columns]
    widths = [max(len(line[column]) for line in whole) for column in range(columns)]
    widths[0] = max(len(line[0]) for line in lines)
    texts = []
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=False)]
        rest = cells if len(line) == columns else line[1:]
        texts.append("  ".join([line[0].ljust(widths[0]), *rest]).rstrip())
    return texts
