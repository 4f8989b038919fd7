"""`calibrate`: fit a verifier's probability and thresholds to other people; its weights stay."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from facepairs.bundles.bundle import DEFAULT
from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.model import Model, open_model
from facepairs.bundles.rates import BALANCED, ErrorTable, OperatingPoint
from facepairs.bundles.writer import check_replaceable, write_calibrated
from facepairs.data.groups import read_families
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import check_minimums
from facepairs.data.pairs import PairList
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, NotEnough
from facepairs.evaluation.fitting import is_no_better
from facepairs.evaluation.grouping import measure_grouping
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.pair_scores import (
    FaceHeap,
    PhotoScores,
    describe_unusable,
    refuse_unusable,
    score_pairs,
)
from facepairs.evaluation.protocols import add_impostors_for, leave_out_copies
from facepairs.evaluation.sources import describe_unknown_training
from facepairs.photos.subject_faces import MOST_PROMINENT
from facepairs.support import console
from facepairs.support.extras import require_extra
from facepairs.support.results import Result
from facepairs.support.words import counted
from facepairs.verification.verifier import Verifier, subject_faces

PAIRS = 6_000


class Recalibration(Result, frozen=True, kw_only=True):
    """The model written, and what it was measured on.

    Attributes:
        out: The model that was written.
        people: Number of people in the pairs.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        people_left_out: People of the folder on whom the bundle was trained.
        photos_left_out: Photos that cannot be used.
        kept_former: Whether the former calibration was kept, because a new one was no better on
            people that it was not fitted to.
        former: The bundle's operating point of the same name before, or else its default one, and
            its errors on these pairs; None without.
        operating_point: The one now, and its errors; with a former calibration that was kept, its
            `own_errors` are those on these pairs.
        threshold: The balanced threshold, where the probability is one half.
        ece: Calibration error now on these pairs: of a new calibration cross-fitted, and None where
            they are too few.
    """

    out: str
    people: int
    genuine_pairs: int
    impostor_pairs: int
    people_left_out: int
    photos_left_out: int
    kept_former: bool
    former: OperatingPoint | None
    operating_point: OperatingPoint
    threshold: float | None
    ece: float | None

    @property
    def model(self) -> Model:
        """Open the model that was written."""
        return open_model(self.out)


def calibrate(
    bundle: Path | str,
    data: Path | str,
    out: Path | str,
    *,
    families: Path | str | None = None,
    skip_bad: bool = False,
) -> Recalibration:
    """Score pairs of other people with a bundle, and write it again with their calibration.

    Up to 3,000 genuine pairs, at most ten of each person, are drawn from `data`, and many impostor
    pairs of the same photos. People on whom the bundle was trained are left out. The new bundle has
    the old network and Keras model. Its calibration, thresholds and errors come from these pairs
    alone. Where a calibration fitted to half of the people is no better on the other half than the
    former one, the former one is kept, and the errors measured on these pairs are stored beside
    those it had: every verdict tells both. People that the old bundle knew stay known.

    Examples:
        >>> calibrated = facepairs.calibrate("default", "photos", "mine")
        >>> calibrated.operating_point.describe()

    Args:
        bundle: The bundle's folder, the TOML file of an external embedder, or `default`.
        data: Folder of photos, Person_Name/photo.jpg.
        out: Bundle to write.
        families: Families or households (CSV person,family): intervals then take families as the
            sample, because relatives resemble each other.
        skip_bad: Leave pairs out whose photos cannot be read or show no face, instead of raising.

    Raises:
        BadImage: A photo cannot be used, and `skip_bad` is false.
        NotEnough: There are too few people or pairs (`data.minimums`).
        BadConfig: `out` is the bundle itself, lies in `data`, or is called `default`.
        BadBundle: The verifier cannot be opened, or `out` is something else than such a one.
        BadData: The folder cannot be read, or `out` cannot be written.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extra("measure", "facepairs.calibrate")
    model, data, out = open_model(bundle), Path(data), Path(out)
    if str(out) == DEFAULT:
        raise BadConfig(f"{DEFAULT} names the included model; choose another folder", "out")
    if out.resolve() == model.files.folder.resolve() or out.resolve().is_relative_to(
        data.resolve()
    ):
        raise BadConfig(
            f"{out} is the bundle itself or lies within the photos; choose another folder", "out"
        )
    check_replaceable(out)
    index = FaceIndex.scan(data)
    relatives = read_families(Path(families)) if families else None
    if relatives is not None:
        relatives.check_names(index.people)
    chosen = _choose_pairs(model, index)
    faces = subject_faces(index, chosen.images().tolist()) if model.aligned else MOST_PROMINENT
    verifier = Verifier(model)
    scored = score_pairs(verifier, index, chosen, faces)
    refuse_unusable(scored.failures, skip_bad)
    if scored.failures:
        console.log(f"unusable photos left out: {describe_unusable(scored.failures)}")
        _check_enough(index, chosen.where(chosen.show_none_of(scored.failures)))
    if faces.numbers:
        console.log(faces.describe())
    pairs = replace(scored.pairs, families=relatives)
    return _calibrate(verifier, index, scored._replace(pairs=pairs), out)


def _calibrate(
    verifier: Verifier, index: FaceIndex, scored: PhotoScores, out: Path
) -> Recalibration:
    """Fit a calibration to scored pairs, and write the model with it or with the former one."""
    model, pairs = verifier.model, scored.pairs
    people = counted(len(scored.people), "person", "people")
    fitted = scored.calibrate(verifier, f"{people} of {index.root.absolute().name}/")
    table, former = fitted.errors, model.profile
    assert table is not None
    assert fitted.calibration is not None
    kept, measured, ece = False, fitted, fitted.calibration.ece
    if former.calibration and former.errors:  # errors that were not measured are not kept
        curve, genuine, score = former.calibration, pairs.genuine, pairs.score
        alike = None if pairs.alike is None else pairs.alike.pairs
        among = pairs.relatives or pairs.people
        assert among
        kept = is_no_better(curve, genuine, score, among, alike)
        if kept:
            if scored.heap and former.errors.grouping is None:  # a trained bundle has none
                table = _with_grouping(table, scored.heap)
            measured = msgspec.structs.replace(former, own_errors=_new(table, former.errors))
            probability = curve.probability(score)
            ece = expected_calibration_error(genuine, probability, alike)
    if not kept and scored.heap:
        measured = msgspec.structs.replace(
            measured,
            errors=_with_grouping(table, scored.heap),
            included=former.included
            and msgspec.structs.replace(former.included, small_faces=(), turned_faces=()),
        )
    now = operating_point(measured)
    before = _former_point(model, now.name)
    if before is not None and before.threshold is not None:
        before = msgspec.structs.replace(before, errors=table.at(before.threshold), own_errors=None)
    write_calibrated(model, out, measured, [] if kept else scored.people)
    return Recalibration(
        out=str(out),
        people=len(scored.people),
        genuine_pairs=table.genuine_pairs,
        impostor_pairs=table.impostor_pairs,
        people_left_out=int(model.origin.identities.trained_with(list(index.people)).sum()),
        photos_left_out=len(scored.failures),
        kept_former=kept,
        former=before,
        operating_point=now,
        threshold=measured.balanced_threshold,
        ece=ece,
    )


def _with_grouping(table: ErrorTable, heap: FaceHeap) -> ErrorTable:
    """Return the errors with those of groups of the same faces."""
    return msgspec.structs.replace(table, grouping=measure_grouping([heap], table))


def _new(table: ErrorTable, former: ErrorTable) -> ErrorTable | None:
    """Return errors measured now; None where the former ones are of the very same pairs."""
    plain = msgspec.structs.replace(former, grouping=None)
    return None if table == plain else table


def _former_point(model: Model, name: str) -> OperatingPoint | None:
    """Return a model's operating point of a name, or else its default; None without a threshold."""
    profile = model.profile
    balanced = OperatingPoint(profile.balanced_threshold, BALANCED)
    points = [*profile.thresholds, balanced, operating_point(profile)]
    known = [point for point in points if point.threshold is not None]
    return next((point for point in known if point.name == name), known[-1] if known else None)


def _choose_pairs(model: Model, index: FaceIndex) -> PairList:
    """Return enough pairs of people on whom the model was not trained."""
    if not model.origin.lists_training:
        console.log(f"warning: {describe_unknown_training(model.place)}")
    left_out = model.origin.identities.trained_with(list(index.people))
    if left_out.all():
        raise NotEnough(
            f"this model was trained on all people of {index.root}; calibrate on other people"
        )
    if left_out.any():
        counts = f"{int(left_out.sum()):,} of {len(left_out):,}"
        console.log(f"{counts} people left out: they were in this model's training set")
    try:
        pairs = distinct_pairs(index.first, np.flatnonzero(~left_out), PAIRS, seed=0)
    except NotEnough:  # not one pair of a class; `_check_enough` explains what is needed
        pairs = PairList.of([], [], [])
    _check_enough(index, pairs)
    pairs = leave_out_copies(index, add_impostors_for([model], index, pairs))
    _check_enough(index, pairs)
    return pairs


def _check_enough(index: FaceIndex, pairs: PairList) -> None:
    """Raise NotEnough where there are too few pairs or people."""
    genuine = pairs.where(pairs.genuine)
    people = len(np.unique(index.person_of[genuine.left]))
    check_minimums(index.root, people, len(genuine), len(pairs) - len(genuine))
