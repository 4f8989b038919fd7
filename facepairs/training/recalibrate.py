"""`calibrate`: fit a bundle's probability and thresholds to other people; its weights stay."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.identities import Identities
from facepairs.bundles.writer import check_replaceable, rewrite_bundle
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import check_minimums, limit_pairs_per_person
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, BadImage, NotEnough
from facepairs.evaluation.evaluate import SKIP_ADVICE
from facepairs.evaluation.metrics.calibration import FittedCalibration, calibrate
from facepairs.evaluation.metrics.summary import Summary, summarise
from facepairs.evaluation.serialize import to_plain
from facepairs.support.lock import held, lock_beside
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.loading import describe_scoring
from facepairs.verification.scorer import ScoreArray
from facepairs.verification.verifier import Verifier

PAIRS = 6_000
SOURCE = "probability one half on the people of facepairs calibrate"
SCHEMA = 2


@dataclass(frozen=True, kw_only=True)
class RecalibrationSummary(FittedCalibration):
    """The new calibration, and what it was measured on.

    Attributes:
        out: The bundle written.
        people: Number of people in the pairs.
        people_left_out: People of the folder on whom the bundle was trained.
        photos_left_out: Photos that cannot be used.
        before: Errors of the old threshold on these pairs; None where these people chose it.
    """

    out: str
    people: int
    people_left_out: int
    photos_left_out: int
    before: Summary | None
    schema: int = SCHEMA


@dataclass(frozen=True)
class Recalibration:
    """The bundle written, its figures, and notes for the user."""

    bundle: Bundle
    summary: RecalibrationSummary
    notes: list[str]


def recalibrate(
    path: Path | str,
    data: Path,
    out: Path,
    pairs_csv: Path | None = None,
    skip_bad: bool = False,
    progress: ProgressFactory = ignore_phases,
) -> Recalibration:
    """Score pairs of other people with a bundle, and write it again with their calibration.

    People on whom the bundle was trained are left out. The new bundle has the old network and Keras
    model. Its calibration and thresholds come from these pairs alone. Results of protocols are
    removed, because they were measured at the old threshold. People that the old bundle knew stay
    known.

    Args:
        path: The bundle, or `default`.
        data: Folder of photos, Person_Name/photo.jpg.
        out: Bundle to write.
        pairs_csv: The pairs; by default up to 6,000 are drawn from `data`, half of them genuine, at
            most ten genuine ones of each person.
        skip_bad: Leave pairs out whose photos cannot be read or show no face, instead of raising.
        progress: Called with the name of the phase.

    Raises:
        BadImage: A photo cannot be used, and `skip_bad` is false.
        NotEnough: There are too few people or pairs (`data.minimums`).
        BadConfig: `out` is the bundle itself or lies in `data`.
        BadRun: Another process writes `out`.
        BadBundle: The bundle cannot be opened, or `out` is something else than a bundle.
        BadData: The folder or the pairs cannot be read, or `out` cannot be written.
    """
    bundle = Bundle.open(path)
    if out.resolve() == bundle.folder.resolve() or out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} is the bundle itself or lies in the photos; choose another --out")
    check_replaceable(out)
    with held(lock_beside(out), out):
        return _recalibrate(bundle, data, out, pairs_csv, skip_bad, progress)


def _recalibrate(
    bundle: Bundle,
    data: Path,
    out: Path,
    pairs_csv: Path | None,
    skip_bad: bool,
    progress: ProgressFactory,
) -> Recalibration:
    index = FaceIndex.scan(data)
    trained = bundle.trained_on(list(index.people))
    pairs, notes = _choose_pairs(index, trained, pairs_csv)
    _check_enough(index, pairs, pairs_csv, notes)
    errors: dict[int, str] = {}
    pairs, score = _score(bundle, index, pairs, errors if skip_bad else None, progress)
    if errors:
        example = errors[min(errors)]
        notes.append(f"unusable photos left out: {len(errors):,}, such as {example}")
        _check_enough(index, pairs, pairs_csv, notes)
    names = [index.people[int(p)] for p in np.unique(index.person_of[pairs.images()])]
    fitted = calibrate(pairs.genuine, score, source=SOURCE)
    before = None
    if not bundle.knows(names).any():
        before = summarise(pairs.genuine, score, bundle.threshold, calibration=bundle.calibration)
    changes = {
        **to_plain(fitted),
        "results": None,
        "calibrated": {
            "people": len(names),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "from_threshold": bundle.threshold,
            "from_network_sha256": bundle.files[bundle.network.file].sha256,
        },
    }
    identities = Identities.of((), names).union(bundle.identities)
    summary = RecalibrationSummary(
        **vars(fitted),
        out=str(out),
        people=len(names),
        people_left_out=int(trained.sum()),
        photos_left_out=len(errors),
        before=before,
    )
    return Recalibration(rewrite_bundle(bundle, out, changes, identities), summary, notes)


def _choose_pairs(
    index: FaceIndex, trained: npt.NDArray[np.bool_], pairs_csv: Path | None
) -> tuple[PairList, list[str]]:
    """Return pairs of people on whom the bundle was not trained, and notes."""
    notes = []
    if pairs_csv is not None:
        given = read_pairs_csv(pairs_csv, index)
        known = trained[index.person_of[given.left]] | trained[index.person_of[given.right]]
        pairs = given.where(~known)
        left_out, reason = known, "pairs left out: they show people on whom the bundle was trained"
    else:
        try:
            drawn = distinct_pairs(index.first, np.flatnonzero(~trained), PAIRS, seed=0)
        except NotEnough:  # not one pair of a class; `_check_enough` explains what is needed
            drawn = PairList.of([], [], [])
        pairs = limit_pairs_per_person(drawn, index.person_of)
        left_out, reason = trained, "people left out: the bundle was trained on them"
    if left_out.any():
        notes.append(f"{int(left_out.sum()):,} of {len(left_out):,} {reason}")
    return pairs, notes


def _score(
    bundle: Bundle,
    index: FaceIndex,
    pairs: PairList,
    errors: dict[int, str] | None,
    progress: ProgressFactory,
) -> tuple[PairList, ScoreArray]:
    """Return the pairs that have scores, and the scores.

    Args:
        bundle: Its network scores them.
        index: The photos.
        pairs: The pairs.
        errors: Is filled with what is wrong with photos; without it, the first such photo raises.
        progress: Called with the name of the phase.
    """
    display = progress(describe_scoring(bundle))
    try:
        score = Verifier(bundle).score_images(
            index.paths, pairs.left, pairs.right, display, errors=errors
        )
    except BadImage as error:
        raise BadImage(f"{error}; {SKIP_ADVICE}") from None
    known = ~np.isnan(score)
    return pairs.where(known), score[known]


def _check_enough(
    index: FaceIndex, pairs: PairList, pairs_csv: Path | None, notes: list[str]
) -> None:
    """Raise NotEnough, with the notes, where there are too few pairs or people."""
    genuine = pairs.where(pairs.genuine)
    people = len(np.unique(index.person_of[genuine.left]))
    try:
        check_minimums(pairs_csv or index.root, people, len(genuine), len(pairs) - len(genuine))
    except NotEnough as error:
        raise NotEnough("; ".join([str(error), *notes])) from None
