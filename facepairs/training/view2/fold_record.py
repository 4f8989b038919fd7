"""The result of a finished fold: `scores.csv` and `fold.json`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import BundleCalibration
from facepairs.bundles.operating_point import operating_point
from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.errors import FacepairsError
from facepairs.evaluation.lookalikes import CLUSTERS
from facepairs.evaluation.metrics.curves import auc
from facepairs.evaluation.metrics.rates import accuracy
from facepairs.evaluation.pair_scores import ScoredPairs
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.evaluation.serialize import write_json
from facepairs.support.checksum import file_sha256
from facepairs.support.machine import describe
from facepairs.training.run_folder.result import Run
from facepairs.verification.provenance import provenance_of

RECORD, SCORES = "fold.json", "scores.csv"


class FoldRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How a fold's network was trained and how it scored; the schema of `fold.json`.

    Attributes:
        people: Number of people trained on and calibrated on.
        images: Number of their images.
        epoch: The epoch whose weights were kept, from 1; 0: the start from a bundle.
    """

    schema: Literal[1] = 1
    method: str
    fold: int
    threshold: float
    accuracy: float
    auc: float
    calibration: BundleCalibration
    people: dict[str, int]
    images: dict[str, int]
    identities_digest: str
    epochs: int
    epoch: int
    minutes: float
    seed: int
    versions: dict[str, str]
    machine: dict[str, Any]
    scores_sha256: str


@dataclass(frozen=True, eq=False)
class FinishedFold:
    """A finished fold and the scores of its pairs."""

    record: FoldRecord
    scores: ScoreTable


def fold_folder(method_folder: Path, fold: int) -> Path:
    """Return the run folder of a fold, such as `fold-01`."""
    return method_folder / f"fold-{fold:02}"


def write_fold(
    folder: Path,
    method: str,
    split: PeopleSplit,
    scored: ScoredPairs,
    bundle: Bundle,
    config: TrainConfig,
    run: Run,
) -> FinishedFold:
    """Write the scores of a fold, then its record, which marks it as finished.

    Args:
        folder: The run folder of the fold.
        method: The method's name.
        split: The people trained on, calibrated on and tested on.
        scored: The pairs of the fold, scored by `bundle`.
        bundle: The trained bundle.
        config: The settings.
        run: The training.
    """
    index, pairs, fold = scored.index, scored.pairs, int(scored.pairs.fold[0])
    left, right = ([index.name(int(i)) for i in side] for side in (pairs.left, pairs.right))
    scores = ScoreTable(left, right, pairs.genuine, pairs.fold, scored.score, _numbered(scored))
    provenance = provenance_of(
        bundle,
        str(bundle.folder),
        f"LFW View 2, fold {fold}",
        operating_point(bundle, balanced=True),
        protocol="view2",
    )
    write_scores(folder / SCORES, scores, provenance)
    parts = {"training": split.training, "calibration": split.calibration}
    parts |= {"validation": split.validation} if len(split.validation) else {}
    record = FoldRecord(
        method=method,
        fold=fold,
        threshold=bundle.threshold,
        accuracy=accuracy(pairs.genuine, scores.score, bundle.threshold),
        auc=auc(pairs.genuine, scores.score),
        calibration=bundle.calibration,
        people={name: len(part) for name, part in parts.items()},
        images={name: int(index.image_counts[part].sum()) for name, part in parts.items()},
        identities_digest=bundle.identity_counts.digest,
        epochs=run.epochs,
        epoch=run.epoch,
        minutes=round(run.seconds / 60, 2),
        seed=config.seed,
        versions=bundle.versions,
        machine=describe(),
        scores_sha256=file_sha256(folder / SCORES),
    )
    write_json(folder / RECORD, record)
    return FinishedFold(record, scores)


def _numbered(scored: ScoredPairs) -> npt.NDArray[np.int16] | None:
    """Return the clusters of pairs by numbers that differ from those of other folds."""
    if scored.cluster is None:
        return None
    first = CLUSTERS * (int(scored.pairs.fold[0]) - 1)
    return np.where(scored.cluster > 0, scored.cluster + first, 0).astype(np.int16)


def read_fold(folder: Path, method: str, fold: int) -> FinishedFold | None:
    """Return a finished fold, or None when it is not finished or its files do not fit together.

    Args:
        folder: The fold's folder.
        method: The method it must be of.
        fold: The fold's number, from 1.
    """
    try:
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=FoldRecord)
        if record.scores_sha256 != file_sha256(folder / SCORES):
            return None
        scores = read_scores(folder / SCORES)
    except (OSError, ValueError, FacepairsError):
        return None
    matches = (record.method, record.fold) == (method, fold) and set(scores.fold) == {fold}
    return FinishedFold(record, scores) if matches else None
