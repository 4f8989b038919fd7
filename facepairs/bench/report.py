"""Summarise a bench: medians and ranges over the rounds, as tables and as JSON."""

import statistics
from collections.abc import Sequence
from typing import Any

from facepairs.bench.job import FRAME_PX, SEED
from facepairs.bench.rows import BASELINE, LIMIT, STORES, Settings
from facepairs.bench.run import Line, Results
from facepairs.support.machine import describe
from facepairs.support.words import align_columns

Columns = Sequence[tuple[str, str, str]]
# Header, format and field of each column; a field with a range of several rounds shows it.
PIPELINES = (
    ("pairs/s", ",.0f", "pairs_per_s"),
    ("x pil", ",.1f", "x_pil"),
    ("of limit", ",.0%", "share_of_limit"),
    ("CPU s/1k", ",.3f", "cpu_s_per_1k_pairs"),
    ("disk MB", ",.0f", "disk_mb"),
    ("build s", ",.1f", "build_s"),
)
TRAINING = (
    ("steps/s", ",.2f", "steps_per_s"),
    ("input wait", ".1%", "input_wait_share"),
    ("constant batch", ",.2f", "ceiling_steps_per_s"),
    ("of it", ".0%", "share_of_ceiling"),
)

BLOCKS = "▏▎▍▌▋▊▉█"  # eighths of a column, for bars
BAR_COLUMNS, CUT = 36, " >>"

Record = dict[str, Any]  # a line of a table as JSON; unknown figures are None


def to_json(results: Results, command: str) -> Record:
    """Return everything that was measured as plain values; unknown figures are None.

    Args:
        results: The result of `run_bench`.
        command: The command line, for the record.
    """
    return {
        "schema": 1,
        "machine": describe(),
        "settings": {
            "command": command,
            **_scalars(results.settings),
            **_scalars(results),
            "frame_px": FRAME_PX,
            "seed": SEED,
        },
        "rows": [_pipeline(line, results) for line in results.rows],
        "training": [_training(line) for line in results.training],
    }


def _scalars(values: Settings | Results) -> Record:
    tables = ("settings", "rows", "training")
    return {name: value for name, value in vars(values).items() if name not in tables}


def _pipeline(line: Line, results: Results) -> Record:
    speeds = {row.name: _median(row, "pairs_per_s") for row in results.rows}
    own, baseline, limit = (speeds.get(name) for name in (line.name, BASELINE, LIMIT))
    return {
        "name": line.name,
        **_spread(line, "pairs_per_s"),
        "x_pil": _rounded(own / baseline) if own and baseline else None,
        "share_of_limit": _rounded(own / limit) if own and limit else None,
        "cpu_s_per_1k_pairs": _median(line, "cpu_s_per_1k_pairs"),
        "disk_mb": _median(line, "disk_mb"),
        "build_s": _median(line, "build_s"),
        "skipped": line.last.skipped or None,
        "failed": line.last.failed or None,
        "note": results.settings.rows[line.name].note,
    }


def _training(line: Line) -> Record:
    return {
        "name": line.name,
        **_spread(line, "steps_per_s"),
        "input_wait_share": _median(line, "input_wait_share"),
        "ceiling_steps_per_s": _median(line, "ceiling_steps_per_s"),
        **_spread(line, "share_of_ceiling"),
        "device": line.last.device or None,
        "skipped": line.last.skipped or None,
        "failed": line.last.failed or None,
    }


def _spread(line: Line, name: str) -> Record:
    """Return the median of a figure over the rounds, and the range."""
    values = [_rounded(value) for value in line.figures(name)]
    low, high = (min(values), max(values)) if values else (None, None)
    return {name: _median(line, name), f"{name}_min": low, f"{name}_max": high}


def _median(line: Line, name: str) -> float | None:
    values = line.figures(name)
    return _rounded(statistics.median(values)) if values else None


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")  # more digits would be noise


def bars(report: Record, blocks: bool = True) -> list[str]:
    """Return the pipelines' speeds as bars of text; rows without a speed are left out.

    Lengths are proportional to pairs per second. Where the fastest pipeline is over twice as fast
    as the next, its bar is cut and ends with `>>`, so that the others can be compared.

    Args:
        report: As `to_json` returns it.
        blocks: Draw with Unicode blocks, which have eighths of a column, instead of `#`.
    """
    rows = [row for row in report["rows"] if row["pairs_per_s"]]
    second, fastest = sorted([0.0, 0.0, *(row["pairs_per_s"] for row in rows)])[-2:]
    full = second if second and 2 * second < fastest else fastest
    lines = [["", "", "pairs/s", "x pil"]]
    for row in rows:
        bar = _bar(row["pairs_per_s"] / full, BLOCKS if blocks else "#")
        times = "" if row["x_pil"] is None else f"{row['x_pil']:,.1f}"
        lines.append([row["name"], bar.ljust(BAR_COLUMNS), f"{row['pairs_per_s']:,.0f}", times])
    return align_columns(lines, right=True)


def _bar(share: float, glyphs: str) -> str:
    """Draw a share of the full bar; above 1 it is cut."""
    if share > 1:
        return glyphs[-1] * (BAR_COLUMNS - len(CUT)) + CUT
    whole, part = divmod(max(1, round(share * BAR_COLUMNS * len(glyphs))), len(glyphs))
    return glyphs[-1] * whole + (glyphs[part - 1] if part else "")


def conclusion(report: Record) -> list[str]:
    """Summarise the speed of our stores in at most two sentences."""
    stores = [row for row in report["rows"] if row["name"] in STORES and row["x_pil"]]
    times = [f"{row['name']} {row['x_pil']:,.1f} times" for row in stores]
    lines = []
    if times:
        generator = next(row for row in report["rows"] if row["name"] == BASELINE)
        lines.append(
            f"A Pillow generator gives {generator['pairs_per_s']:,.0f} pairs/s here; "
            f"{', '.join(times)} as many."
        )
    steps = [row for row in report["training"] if row["share_of_ceiling"] is not None]
    if steps:
        rate = statistics.median(row["ceiling_steps_per_s"] for row in steps)
        batch = report["settings"]["batch_size"]
        shares = [f"{row['share_of_ceiling']:.0%} from {row['name']}" for row in steps]
        lines.append(
            f"A training step takes {rate * batch:,.0f} pairs/s ({batch} in {1000 / rate:,.0f} ms) "
            f"if no input is prepared; it reaches {', '.join(shares)}."
        )
    return lines


def to_text(report: Record) -> list[str]:
    """Return the lines of both tables of a report, as `to_json` returns it."""
    pipelines = _table("pipeline", PIPELINES, report["rows"])
    training = _table("training from", TRAINING, report["training"])
    return [*pipelines, "", *training] if report["training"] else pipelines


def _table(what: str, columns: Columns, records: Sequence[Record]) -> list[str]:
    lines = [[what, *(header for header, _, _ in columns)]]
    for record in records:
        cells = [_cell(record, form, name) for _, form, name in columns]
        for reason in ("failed", "skipped"):
            if record[reason]:
                cells = [f"{reason}: {record[reason]}"]
        lines.append([record["name"], *(cells if any(cells) else ["not measured"])])
    return align_columns(lines, right=True)


def _cell(record: Record, form: str, name: str) -> str:
    if record[name] is None:
        return ""
    text = format(record[name], form)
    low, high = (record.get(f"{name}_{end}") for end in ("min", "max"))
    return text if low == high else f"{text} ({low:{form}}-{high:{form}})"
