"""What a finished fold leaves behind: `scores.csv` and `fold.json`, and how they are read back."""

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.split import PeopleSplit
from facepairs.errors import FacepairsError
from facepairs.evaluation.metrics import accuracy, auc
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.support.atomic import atomic_file
from facepairs.support.machine import describe

SCHEMA = 1
RECORD, SCORES = "fold.json", "scores.csv"


def fold_folder(method_folder: Path, fold: int) -> Path:
    """Give the run folder of a fold: `fold-01`."""
    return method_folder / f"fold-{fold:02}"


@dataclass(frozen=True, eq=False)
class DoneFold:
    """A finished fold: `fold.json` as it stands in the file, and its scores."""

    record: dict[str, Any]
    scores: ScoreTable

    @property
    def threshold(self) -> float:
        """The score from which on its network accepts."""
        return float(self.record["threshold"])

    @property
    def calibration(self) -> Calibration:
        """Its network's way from a score to a probability."""
        return Calibration.from_json(self.record["calibration"])


def write_fold(
    folder: Path,
    method: str,
    index: FaceIndex,
    split: PeopleSplit,
    pairs: PairList,
    score: npt.NDArray[np.floating],
    bundle: Bundle,
    config: TrainConfig,
    trained: dict[str, Any],
) -> DoneFold:
    """Write a fold's scores, then its record, which makes it done.

    `score` float[pairs] by `bundle`; `trained` holds `epochs` and `minutes`.
    """
    left, right = ([index.name(int(i)) for i in side] for side in (pairs.left, pairs.right))
    values = score.astype(np.float64)
    scores = ScoreTable(left, right, pairs.genuine, pairs.fold, values)
    write_scores(folder / SCORES, scores)
    parts = {name: part for name, part in vars(split).items() if name != "test"}
    record = {
        "schema": SCHEMA,
        "method": method,
        "fold": int(pairs.fold[0]),
        "threshold": bundle.threshold,
        "accuracy": accuracy(pairs.genuine, values, bundle.threshold),
        "auc": auc(pairs.genuine, values),
        "calibration": bundle.calibration.to_json(),
        "people": {name: len(part) for name, part in parts.items()},
        "images": {name: int(index.image_counts[part].sum()) for name, part in parts.items()},
        "identities_digest": bundle.identity_counts.digest,
        **trained,
        "seed": config.seed,
        "versions": bundle.versions,
        "machine": describe(),
        "scores_sha256": _sha256(folder / SCORES),
    }
    with atomic_file(folder / RECORD) as handle:
        handle.write(json.dumps(record, indent=1, allow_nan=False) + "\n")
    return DoneFold(record, scores)


def read_fold(folder: Path, method: str, fold: int) -> DoneFold | None:
    """Give a fold that is done, or None where it is not, or its files do not fit together."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if [record[key] for key in ("schema", "method", "fold")] != [SCHEMA, method, fold]:
            return None
        if record["scores_sha256"] != _sha256(folder / SCORES):
            return None
        done = DoneFold(record, read_scores(folder / SCORES))
        whole = math.isfinite(done.threshold) and done.calibration.scale > 0
    except (OSError, ValueError, KeyError, TypeError, FacepairsError):
        return None
    return done if whole and set(done.scores.fold.tolist()) == {fold} else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
