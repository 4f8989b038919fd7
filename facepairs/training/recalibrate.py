"""`calibrate`: a bundle's probability and thresholds from one's own people; its weights stay."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.identities import Identities
from facepairs.bundles.writer import check_replaceable, rewrite_bundle
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import check_minimums, limit_pairs_per_person
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, NotEnough
from facepairs.evaluation.metrics.calibration import calibrate
from facepairs.evaluation.metrics.summary import summarise
from facepairs.support.lock import held, lock_beside
from facepairs.verification.verifier import Verifier

PAIRS = 6_000
SOURCE = "probability one half on the people of facepairs calibrate"
OF_BEFORE = ("threshold", "accuracy", "accuracy_interval", "fmr", "fmr_interval", "fnmr",
             "fnmr_interval", "ece")  # fmt: skip
SCHEMA = 1


@dataclass(frozen=True)
class Recalibration:
    """The bundle written, what it now promises (JSON-ready), and what people should be told."""

    bundle: Bundle
    summary: dict[str, Any]
    notes: list[str]


def recalibrate(
    path: Path | str,
    data: Path,
    out: Path,
    pairs_csv: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recalibration:
    """Score pairs of one's own people with a bundle and write it anew with what they give.

    The pairs are those of `pairs_csv`, or up to 6,000 drawn from the folder `data`, half genuine,
    ten genuine ones of a person at most. People whom the bundle was trained on are left out. The
    new bundle has the old one's network and Keras model; its calibration, threshold and thresholds
    come from these pairs alone, protocol results go, as they were of the old threshold, and all
    people whom the old one knew stay known.

    Raises NotEnough, with the numbers needed (`data.minimums`), BadConfig where `out` is the bundle
    or lies in `data`, BadRun where another process writes `out`, and what opening, reading and
    scoring raise.
    """
    bundle = Bundle.open(path)
    if out.resolve() == bundle.folder.resolve() or out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} is the bundle itself or lies in the photos; choose another --out")
    check_replaceable(out)
    with held(lock_beside(out), out):
        return _recalibrated(bundle, data, out, pairs_csv, progress)


def _recalibrated(
    bundle: Bundle,
    data: Path,
    out: Path,
    pairs_csv: Path | None,
    progress: Callable[[int, int], None] | None,
) -> Recalibration:
    index = FaceIndex.scan(data)
    trained = bundle.trained_on(list(index.people))
    pairs, notes = _pairs(bundle, index, trained, pairs_csv)
    score = Verifier(bundle).score_images(index.paths, pairs.left, pairs.right, progress)
    names = [index.people[int(p)] for p in np.unique(index.person_of[pairs.images()])]
    fitted = calibrate(pairs.genuine, score, source=SOURCE)
    before = None  # what the old threshold does to people who had no part in it
    if not bundle.knows(names).any():
        summary = summarise(pairs.genuine, score, bundle.threshold, calibration=bundle.calibration)
        before = {name: summary[name] for name in OF_BEFORE}
    summary = {
        "out": str(out),
        "people": len(names),
        "people_left_out": int(trained.sum()),
        **fitted,
        "before": before,
        "schema": SCHEMA,
    }
    return Recalibration(_write(bundle, out, fitted, names), summary, notes)


def _pairs(
    bundle: Bundle, index: FaceIndex, trained: npt.NDArray[np.bool_], pairs_csv: Path | None
) -> tuple[PairList, list[str]]:
    """Give pairs of people whom the bundle was not trained on, enough of them, and notes."""
    left_out = int(trained.sum())
    notes = []
    if pairs_csv is not None:
        pairs = read_pairs_csv(pairs_csv, index)
        use = ~(trained[index.person_of[pairs.left]] | trained[index.person_of[pairs.right]])
        if not use.all():
            notes.append(
                f"{int((~use).sum()):,} of {len(use):,} pairs left out: they show people whom the "
                "bundle was trained on"
            )
        pairs = pairs.where(use)
    else:
        if left_out:
            notes.append(
                f"{left_out:,} of {len(trained):,} people left out: the bundle was trained on them"
            )
        pairs = _drawn(index, np.flatnonzero(~trained))
    genuine = pairs.where(pairs.genuine)
    people = len(np.unique(index.person_of[genuine.left]))
    try:
        check_minimums(pairs_csv or index.root, people, len(genuine), len(pairs) - len(genuine))
    except NotEnough as error:
        raise NotEnough("; ".join([str(error), *notes])) from None
    return pairs, notes


def _drawn(index: FaceIndex, people: npt.NDArray[np.int64]) -> PairList:
    try:
        return limit_pairs_per_person(
            distinct_pairs(index.first, people, PAIRS, seed=0), index.person_of
        )
    except NotEnough:  # there is not even one pair of a kind: `check_minimums` says what is needed
        return PairList.of([], [], [])


def _write(bundle: Bundle, out: Path, fitted: dict[str, Any], names: list[str]) -> Bundle:
    changes = {
        **fitted,
        "results": None,  # they were measured at the old threshold
        "calibrated": {
            "people": len(names),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "from_threshold": bundle.threshold,
            "from_network_sha256": bundle.files[bundle.network.file].sha256,
        },
    }
    identities = Identities.of((), names).union(bundle.identities)
    return rewrite_bundle(bundle, out, changes, identities)
