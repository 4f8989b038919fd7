"""Figures that are kept in files: which of them differ, whatever computes them."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.support.results import to_plain


def assert_golden(path: Path, value: Any, rel: float = 1e-6, least: float = 1e-9) -> None:
    """Assert that a result is the one of a JSON file; with $WRITE_GOLDEN it is kept there.

    Numbers may differ by `rel`, relative, or by `least`.
    """
    found = json.loads(json.dumps(to_plain(value)))
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(json.dumps(_short(found), separators=(",", ":")) + "\n")
    kept, here = (dict(_flat(one)) for one in (json.loads(path.read_text()), found))
    assert list(here) == list(kept), {*here} ^ {*kept}
    different = [
        f"{name}: {here[name]}, not {kept[name]}"
        for name in kept
        if not _is_close(here[name], kept[name], rel, least)
    ]
    assert not different, different[:9]


def figures_of(values: Any, some: int = 8) -> list[float]:
    """Return mean, spread, ends and number of an array's values, and some of them."""
    flat = np.asarray(values, np.float64).ravel()
    picked = flat[:: max(1, len(flat) // some)].tolist()
    return [flat.mean(), flat.std(), flat.min(), flat.max(), len(flat), *picked]


def _is_close(one: Any, other: Any, rel: float, least: float) -> bool:
    numbers = all(type(value) in (int, float) for value in (one, other))
    return math.isclose(one, other, rel_tol=rel, abs_tol=least) if numbers else one == other


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value:
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(part, f"{place}.{name}")
    else:
        yield place, value
