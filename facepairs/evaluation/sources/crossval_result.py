"""What `crossval` records of a method beside its scores: how each fold's network decides."""

import json
from pathlib import Path

import msgspec

from facepairs.bundles.calibration import Calibration
from facepairs.config import read_table
from facepairs.errors import BadData, FacepairsError
from facepairs.evaluation.protocols import CATEGORIES, OUTSIDE_LABELS
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.validation import validate


class FoldTraining(msgspec.Struct, frozen=True):
    """How a fold was trained and decides; `people` in each part of the split."""

    fold: int
    threshold: float
    calibration: Calibration
    people: dict[str, int] = {}
    epochs: int | None = None
    minutes: float | None = None
    seed: int | None = None


class CrossvalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The folds of a method that are done, and the number of folds in all."""

    method: str | None = None
    folds: list[FoldTraining]
    folds_in_all: int | None = None


def read_result(path: Path) -> CrossvalResult:
    """Read a method's result.json; raises BadData unless it has a threshold for every fold."""
    advice = "run crossval again"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    return validate(values, CrossvalResult, str(path), BadData, advice)


def read_alignment(folder: Path) -> tuple[str | None, str | None]:
    """Return the alignment and LFW's category of a run; None where it does not record them."""
    try:
        train = read_table(folder / "config.toml")["train"]
        alignment = ALIGNMENTS[train["align"]]
        return alignment, OUTSIDE_LABELS if train.get("init") else CATEGORIES[alignment]
    except (FacepairsError, AttributeError, KeyError, TypeError, ValueError):
        return None, None
