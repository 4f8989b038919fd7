"""How verifiers were made: as their bundle, or the folder of a `crossval` method, records it."""

import json
from pathlib import Path
from typing import Any

import msgspec

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.config import read_table
from facepairs.errors import BadData, FacepairsError
from facepairs.evaluation.protocols import CATEGORIES, OUTSIDE_LABELS
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.validation import validate
from facepairs.verification.loading import Model


class FoldTraining(msgspec.Struct, frozen=True):
    """What `crossval` records of a fold; `people` in each part of the split."""

    fold: int
    threshold: float
    people: dict[str, int] = {}
    epochs: int | None = None
    minutes: float | None = None
    seed: int | None = None
    calibration: Calibration | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a verifier was made, as far as is known.

    Attributes:
        method: The architecture, or the method of a cross-validation.
        training, versions, created: As in the bundle's manifest.
        folds, folds_in_all: As in the result.json of a cross-validation.
        ece: Older versions recorded it instead of calibrations.
    """

    method: str | None = None
    training: dict[str, Any] = {}
    versions: dict[str, str] = {}
    created: str = ""
    folds: list[FoldTraining] = []
    folds_in_all: int | None = None
    ece: float | None = None

    @property
    def seeds(self) -> list[int]:
        """The seeds of its training, sorted."""
        seeds = {fold.seed for fold in self.folds} or {self.training.get("seed")}
        return sorted(seed for seed in seeds if seed is not None)


def origin_of(model: Model) -> Origin:
    """Return how a model was made; of external embedders little is known."""
    if not isinstance(model, Bundle):
        return Origin(method=model.model)
    training = msgspec.to_builtins(model.training)
    return Origin(
        method=model.model,
        training={name: value for name, value in training.items() if value not in (None, "")},
        versions=model.versions,
        created=model.created,
    )


def read_result(path: Path) -> Origin:
    """Read a method's result.json; raises BadData unless it has a threshold for every fold."""
    advice = "run crossval again"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    return validate(values, Origin, str(path), BadData, advice)


def read_alignment(folder: Path) -> tuple[str | None, str | None]:
    """Return the alignment and LFW's category of a run; None where it does not record them."""
    try:
        train = read_table(folder / "config.toml")["train"]
        alignment = ALIGNMENTS[train["align"]]
        return alignment, OUTSIDE_LABELS if train.get("init") else CATEGORIES[alignment]
    except (FacepairsError, AttributeError, KeyError, TypeError, ValueError):
        return None, None
