"""`calibrate`: fit a verifier's probability and thresholds to other people; its weights stay."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.embedding_map import MAP, EmbeddingMap
from facepairs.bundles.identities import Identities
from facepairs.bundles.rates import ErrorTable, OperatingPoint, operating_point
from facepairs.bundles.writer import check_replaceable, rewrite_bundle
from facepairs.data.groups import PeopleGroups, read_groups
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import check_minimums, limit_pairs_per_person
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, NotEnough
from facepairs.evaluation.by_group import group_errors
from facepairs.evaluation.fitting import (
    compare_calibrations,
    lookalikes,
)
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.pair_scores import (
    ScoredPairs,
    add_impostors,
    describe_unusable,
    refuse_unusable,
    score_pairs,
)
from facepairs.evaluation.sources.known_people import describe_unknown_training
from facepairs.evaluation.whitening import whiten
from facepairs.support.extras import require_extras
from facepairs.support.lock import held, lock_beside
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.support.words import command_line, counted
from facepairs.verification.embedders import writer as embedders
from facepairs.verification.embedders.embedder import ExternalEmbedder
from facepairs.verification.embedders.measured import Measured, read_measured
from facepairs.verification.loading import Model, describe_scoring, model_name, open_model
from facepairs.verification.verifier import Verifier

PAIRS = 6_000
FEW_PEOPLE = 10
SOURCE = "probability one half on the people of facepairs calibrate"
SCHEMA = 3


@dataclass(frozen=True, kw_only=True)
class RecalibrationSummary:
    """The calibration, and what it was measured on.

    Attributes:
        out: The bundle written.
        people: Number of people in the pairs.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        people_left_out: People of the folder on whom the bundle was trained.
        photos_left_out: Photos that cannot be used.
        kept_former: Whether the former calibration was kept, because the new one was no better on
            people that it was not fitted to.
        former: The bundle's operating point before, and its errors on these pairs; None where
            these people chose it.
        operating_point: The one now, and its errors.
        threshold: The balanced threshold now.
        ece: Calibration error now on these pairs: of a new calibration cross-fitted, and None where
            they are too few.
        auc: AUC with the linear map of embeddings that is new, on people that it was not fitted to;
            None where there is none, because it was no better by more than chance.
        auc_before: The same without the map.
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
    threshold: float
    ece: float | None
    auc: float | None = None
    auc_before: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        points = {name: getattr(self, name) for name in ("former", "operating_point")}
        plain = {name: point.to_json() if point else None for name, point in points.items()}
        return {**vars(self), **plain, "schema": SCHEMA}


@dataclass(frozen=True)
class Recalibration:
    """The bundle written, its figures, and notes for the user."""

    bundle: Model
    summary: RecalibrationSummary
    notes: list[str]


def calibrate(
    bundle: Path | str,
    data: Path | str,
    out: Path | str,
    pairs: Path | str | None = None,
    *,
    skip_bad: bool = False,
    groups: Path | str | None = None,
    progress: ProgressFactory = ignore_phases,
) -> Recalibration:
    """Score pairs of other people with a bundle, and write it again with their calibration.

    People on whom the bundle was trained are left out. The new bundle has the old network and Keras
    model. Its calibration, thresholds and errors come from these pairs alone. Where a calibration
    fitted to half of the people is no better on the other half than the former one, the former one
    is kept. People that the old bundle knew stay known.

    Examples:
        >>> calibrated = facepairs.calibrate("default", "photos", "mine")
        >>> calibrated.summary.operating_point.describe()

    Args:
        bundle: The bundle's folder, the TOML file of an external embedder, or `default`.
        data: Folder of photos, Person_Name/photo.jpg.
        out: Bundle to write.
        pairs: CSV file left,right,genuine; by default up to 3,000 genuine pairs, at most ten of
            each person, are drawn from `data`, and many impostor pairs of the same photos.
        skip_bad: Leave pairs out whose photos cannot be read or show no face, instead of raising.
        groups: Groups of people (CSV person,group) whose errors the model card lists.
        progress: Called with the name of the phase.

    Raises:
        BadImage: A photo cannot be used, and `skip_bad` is false.
        NotEnough: There are too few people or pairs (`data.minimums`).
        BadConfig: `out` is the bundle itself or lies in `data`.
        BadRun: Another process writes `out`.
        BadBundle: The verifier cannot be opened, or `out` is something else than such a one.
        BadData: The folder, the pairs or the groups cannot be read, or `out` cannot be written.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extras(["measure"], "facepairs.calibrate")
    old, data, out = open_model(bundle), Path(data), Path(out)
    if out.resolve() == old.folder.resolve() or out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(
            f"{out} is the bundle itself or lies in the photos; choose another folder", "out"
        )
    (check_replaceable if isinstance(old, Bundle) else embedders.check_replaceable)(out)
    people_groups = read_groups(Path(groups)) if groups else None
    file = Path(pairs) if pairs else None
    with held(lock_beside(out), out):
        return _calibrate(old, data, out, file, skip_bad, people_groups, progress)


def _calibrate(
    bundle: Model,
    data: Path,
    out: Path,
    pairs_csv: Path | None,
    skip_bad: bool,
    groups: PeopleGroups | None,
    progress: ProgressFactory,
) -> Recalibration:
    index = FaceIndex.scan(data)
    pairs, notes = _choose_pairs(bundle, index, pairs_csv)
    if groups and (unknown := groups.describe_unknown(index.people, index.root)):
        notes.append(f"warning: {unknown}")
    _check_enough(index, pairs, pairs_csv, notes)
    if pairs_csv is None and bundle.kind == "embedding":
        pairs = add_impostors(index, pairs)
    errors: dict[int, str] = {}
    scored = score_pairs(Verifier(bundle), index, pairs, progress(describe_scoring(bundle)), errors)
    refuse_unusable(errors, skip_bad)
    if errors:
        notes.append(f"unusable photos left out: {describe_unusable(errors)}")
        _check_enough(index, scored.pairs, pairs_csv, notes)
    if len(scored.names) < FEW_PEOPLE:
        notes.append(
            f"warning: {counted(len(scored.names), 'person', 'people')} only: thresholds and "
            "errors of so few are rough; from some 20 people on they fit your photos"
        )
    people = counted(len(scored.names), "person", "people")
    measured_on = f"{people} of {data.name}"
    plain = fitted = scored.calibrate(measured_on, SOURCE)
    whitened = whiten(scored) if isinstance(bundle, Bundle) and bundle.map is None else None
    if whitened:
        scored = whitened.scored
        fitted = scored.calibrate(measured_on, SOURCE)
    is_new = not bundle.knows(scored.names).any()
    former = bundle.calibration
    # A verifier without measured errors gets those of these people in any case.
    can_keep = is_new and bundle.errors is not None
    kept_former = (
        can_keep and not whitened and former is not None and not _is_better(former, scored)
    )
    ece = fitted.calibration.ece
    if kept_former:
        assert former is not None
        ece = _former_ece(former, scored)
        if groups:
            notes.append(
                "errors by group are not written, because the former calibration is kept; for them "
                "run: " + command_line("evaluate", out, data, "--groups", groups.path)
            )
    if groups:
        rows, _ = group_errors(groups, scored.table(), scored.score >= fitted.decided_at)
        errors_with_groups = msgspec.structs.replace(fitted.errors, groups=rows)
        fitted = msgspec.structs.replace(fitted, errors=errors_with_groups)
    new: Model
    if isinstance(bundle, Bundle):
        new = _write_bundle(bundle, out, fitted, scored, kept_former, whitened and whitened.map)
    else:
        new = _write_embedder(bundle, out, fitted, scored, kept_former)
    assert new.threshold is not None
    summary = RecalibrationSummary(
        out=str(out),
        people=len(scored.names),
        genuine_pairs=fitted.errors.genuine_pairs,
        impostor_pairs=fitted.errors.impostor_pairs,
        people_left_out=int(bundle.trained_on(list(index.people)).sum()),
        photos_left_out=len(errors),
        kept_former=kept_former,
        former=_former(bundle, plain) if is_new and former is not None else None,
        operating_point=operating_point(new),
        threshold=new.threshold,
        ece=ece,
        auc=whitened.auc if whitened else None,
        auc_before=whitened.auc_before if whitened else None,
    )
    return Recalibration(new, summary, notes)


def _write_bundle(
    bundle: Bundle,
    out: Path,
    fitted: Measured,
    scored: ScoredPairs,
    kept_former: bool,
    embedding_map: EmbeddingMap | None,
) -> Bundle:
    """Write the bundle with the new calibration, or with the former one."""
    if kept_former:
        return rewrite_bundle(bundle, out, {})
    files = {MAP: embedding_map.to_bytes()} if embedding_map else {}
    changes = {
        **fitted.manifest_fields(),
        "view2": None if embedding_map else bundle.raw.get("view2"),  # of other embeddings
        "failures": None,
        "calibrated": {
            "people": len(scored.names),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "from_threshold": bundle.threshold,
            "from_network_sha256": bundle.files[bundle.network.file].sha256,
        },
    }
    identities = Identities.of((), scored.names).union(bundle.identities)
    return rewrite_bundle(bundle, out, changes, identities, fitted.errors, files)


def _write_embedder(
    model: ExternalEmbedder,
    out: Path,
    fitted: Measured,
    scored: ScoredPairs,
    kept_former: bool,
) -> ExternalEmbedder:
    """Write the embedder with the new calibration, or with the former one."""
    if kept_former and model.measured:
        return embedders.write_embedder(model, out, read_measured(model.folder / model.measured))
    people = Identities.of((), scored.names).union(model.identities).calibration
    return embedders.write_embedder(model, out, msgspec.structs.replace(fitted, people=people))


def measured_of(bundle: Bundle, errors: ErrorTable, people: frozenset[str]) -> Measured:
    """Return what is written beside an external embedder; `people` are hashes."""
    return Measured(
        calibration=bundle.calibration,
        threshold=bundle.threshold,
        threshold_source=bundle.threshold_source,
        thresholds=bundle.thresholds,
        operating_point=bundle.operating_point,
        errors=errors,
        people=people,
    )


def _former(bundle: Model, fitted: Measured) -> OperatingPoint | None:
    """Return the operating point before with its errors on the new pairs; None without one."""
    point = operating_point(bundle)
    if point.threshold is None:
        return None
    return msgspec.structs.replace(point, errors=fitted.errors.at(point.threshold))


def _former_ece(former: Calibration, scored: ScoredPairs) -> float:
    """Return the error of the former calibration on pairs that it was not fitted to."""
    genuine, probability = scored.pairs.genuine, former.probability(scored.score)
    return expected_calibration_error(genuine, probability, lookalikes(genuine, scored.cluster))


def _is_better(former: Calibration, scored: ScoredPairs) -> bool:
    """Whether a calibration of some people is better on others than the former one.

    True also where there are too few people to tell.
    """
    alike = lookalikes(scored.pairs.genuine, scored.cluster)
    losses = compare_calibrations(former, scored.pairs.genuine, scored.score, scored.people, alike)
    return losses is None or losses.new < losses.former


def _choose_pairs(
    bundle: Model, index: FaceIndex, pairs_csv: Path | None
) -> tuple[PairList, list[str]]:
    """Return pairs of people on whom the bundle was not trained, and notes."""
    notes = []
    if not bundle.lists_training:
        notes.append(f"warning: {describe_unknown_training(model_name(bundle))}")
    trained = bundle.trained_on(list(index.people))
    if pairs_csv is not None:
        given = read_pairs_csv(pairs_csv, index)
        known = trained[index.person_of[given.left]] | trained[index.person_of[given.right]]
        pairs = given.where(~known)
        left_out, reason = known, ("pairs", "show people that this model was trained on")
    else:
        try:
            drawn = distinct_pairs(index.first, np.flatnonzero(~trained), PAIRS, seed=0)
        except NotEnough:  # not one pair of a class; `_check_enough` explains what is needed
            drawn = PairList.of([], [], [])
        pairs = limit_pairs_per_person(drawn, index.person_of)
        left_out, reason = trained, ("people", "were in this model's training set")
    if left_out.any():
        if left_out.all():
            raise NotEnough(
                f"all {reason[0]} of {pairs_csv or index.root} {reason[1]}; calibrate on others"
            )
        notes.append(
            f"{int(left_out.sum()):,} of {len(left_out):,} {reason[0]} left out: they {reason[1]}"
        )
    return pairs, notes


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
