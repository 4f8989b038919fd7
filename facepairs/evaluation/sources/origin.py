"""How verifiers were made and what they cost: as their bundle or a `crossval` method records it."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.config import read_table
from facepairs.errors import BadData, FacepairsError
from facepairs.evaluation.protocols import CATEGORIES, OUTSIDE_LABELS
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.validation import validate
from facepairs.verification.loading import Model
from facepairs.verification.verifier import Verifier

TIMED = 7


class FoldTraining(msgspec.Struct, frozen=True):
    """What `crossval` records of a fold; `people` in each part of the split."""

    fold: int
    threshold: float
    calibration: Calibration
    people: dict[str, int] = {}
    epochs: int | None = None
    minutes: float | None = None
    seed: int | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a verifier was made, as far as is known.

    Attributes:
        method: The architecture, or the method of a cross-validation.
        training, versions, created: As in the bundle's manifest.
        folds, folds_in_all: As in the result.json of a cross-validation.
    """

    method: str | None = None
    training: dict[str, Any] = {}
    versions: dict[str, str] = {}
    created: str = ""
    folds: list[FoldTraining] = []
    folds_in_all: int | None = None

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


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is known of a verifier beside its errors; None where nothing is.

    Attributes:
        network_ms: CPU time of the network for one face on this machine, in milliseconds. Finding
            the face is not in it.
        network_mb: Size of the network's file, in 10⁶ bytes.
        licence: Of the weights.
        training_data: On what it was trained.
    """

    network_ms: float | None = None
    network_mb: float | None = None
    licence: str | None = None
    training_data: str | None = None


def model_facts(model: Model) -> ModelFacts:
    """Time a model's network, and return what its description says."""
    licence, training_data = _described(model)
    return ModelFacts(
        network_ms=_network_ms(Verifier(model, threads=1)),
        network_mb=model.network_path.stat().st_size / 1e6,
        licence=licence,
        training_data=training_data,
    )


def _network_ms(verifier: Verifier) -> float:
    side = verifier.bundle.framing.crop_px
    crop = np.random.default_rng(0).integers(0, 256, (1, side, side, 3), np.uint8)
    embeds = verifier.bundle.kind == "embedding"
    start = 0.0
    for call in range(1 + TIMED):
        if call == 1:  # the first one is slower
            start = time.thread_time()
        if embeds:
            verifier.scorer.embed(crop)
        else:
            verifier.scorer.score_pairs(crop, crop)
    elapsed_s = time.thread_time() - start
    return 1000 * elapsed_s / TIMED / (1 if embeds else 2)  # a pair shows two faces


def _described(model: Model) -> tuple[str | None, str | None]:
    """Return licence and training data."""
    if not isinstance(model, Bundle):
        return model.licence, model.trained_with
    trained = model.training
    counted = f"{trained.images or 0:,} photos of {trained.people or 0:,} people"
    return model.weights_licence, trained.data or (counted if trained.images else None)
