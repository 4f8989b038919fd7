"""`evaluate`: measure verifiers, scores files and `crossval` folders, and compare several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from facepairs.bundles.model import Model, open_model
from facepairs.data.groups import PeopleGroups, read_families, read_groups
from facepairs.errors import BadConfig, BadImage
from facepairs.evaluation.error_rates import decide
from facepairs.evaluation.factors import (
    FACES,
    Column,
    measure_faces,
    not_measured,
    read_factors,
)
from facepairs.evaluation.identification import measure_identification
from facepairs.evaluation.measurement import Measurement, measure_model, measure_scores
from facepairs.evaluation.metrics.comparison import Comparison, compare
from facepairs.evaluation.metrics.curves import FARS
from facepairs.evaluation.pair_scores import PhotoScores, describe_unusable, score_pairs
from facepairs.evaluation.protocols import PairSelection, choose_pairs
from facepairs.evaluation.report.statement import (
    EvaluationRecord,
    history_table,
    record_of,
    statement_table,
)
from facepairs.evaluation.report.table import Table, html_of, text_of
from facepairs.evaluation.report.tables import evaluation_tables
from facepairs.evaluation.scores import ScoredPairs, match_pairs, write_scores
from facepairs.evaluation.sources import find_sources, kind_of, known_in_selection
from facepairs.evaluation.summary import About, Summary
from facepairs.photos.subject_faces import MOST_PROMINENT
from facepairs.support.extras import require_extra
from facepairs.support.results import Result
from facepairs.support.words import counted
from facepairs.verification.verifier import Verifier, subject_faces

if TYPE_CHECKING:
    from facepairs.evaluation.report.figures import Figure

Place = str | Path


class EvaluationResult(Result, frozen=True, kw_only=True):
    """The figures of an evaluation.

    Attributes:
        record: How it was made: on what, by whom thresholds were chosen, with which versions.
        models: The figures of each verifier, or of each file of scores.
        comparison: None for one verifier.
        warnings: Limits of the figures, one line each.
    """

    record: EvaluationRecord
    models: list[Summary]
    comparison: Comparison | None
    warnings: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """One measurement, or several that were compared; printed, the tables of `facepairs evaluate`.

    Attributes:
        measurements: All on the same pairs; those of scores files keep their order.
        comparison: None for one verifier.
        record: How it was made.
        warnings: Limits of the figures, one line each.
    """

    measurements: tuple[Measurement, ...]
    comparison: Comparison | None
    record: EvaluationRecord
    warnings: Sequence[str] = ()

    @property
    def summary(self) -> Summary:
        """The figures of the verifier, or of the first one of several."""
        return self.measurements[0].summary

    def __repr__(self) -> str:
        names = ", ".join(measurement.summary.about.name for measurement in self.measurements)
        return f"Evaluation of {names} on {counted(len(self.measurements[0].pairs), 'pair')}"

    def __str__(self) -> str:
        return text_of(self.tables(brief=True))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the tables that `facepairs evaluate` prints."""
        return html_of(self.tables(brief=True), self.warnings)

    def tables(self, brief: bool = False) -> list[Table]:
        """Return the tables of the report: text, HTML page and notebook show them.

        Args:
            brief: Only those that `facepairs evaluate` prints.
        """
        tables = evaluation_tables(self.measurements, self.comparison, brief)
        if brief:
            return tables
        first = statement_table(self.measurements, self.record, self.warnings)
        return [first, *tables, history_table(self.measurements, self.record)]

    def with_command(self, command: str) -> "Evaluation":
        """Return it with the command line that made it."""
        return replace(self, record=msgspec.structs.replace(self.record, command=command))

    def figures(self) -> "dict[str, Figure]":
        """Draw the figures of the report: `roc` and `det`, then `scores-1`, … of each verifier.

        A notebook shows a figure, and its `figure` is Matplotlib's.
        """
        from facepairs.evaluation.report.figures import evaluation_figures

        return {figure.key: figure for figure in evaluation_figures(self.measurements)}

    @property
    def result(self) -> EvaluationResult:
        """All figures, as JSON has them."""
        return EvaluationResult(
            record=self.record,
            models=[measured.summary for measured in self.measurements],
            comparison=self.comparison,
            warnings=list(self.warnings),
        )


def evaluate(
    sources: Place | Sequence[Place],
    data: Place | None = None,
    *,
    protocol: str | None = None,
    lists: Place | None = None,
    pairs: Place | None = None,
    scores_out: Place | None = None,
    groups: Place | None = None,
    families: Place | None = None,
    factors: Place | None = None,
    identification: bool = False,
) -> Evaluation:
    """Measure one or several sources of scores; compare several on the same pairs.

    Photos without a usable face are counted as failures to acquire, and their pairs left out.

    Examples:
        >>> facepairs.evaluate("run/bundle", "photos").summary.auc
        >>> facepairs.evaluate(["run/bundle", "default"], "photos").comparison
        >>> facepairs.evaluate("scores.csv").figures()["det"]

    Args:
        sources: Verifiers (bundles, `default`, TOML files of embedders), scores files and folders
            of `crossval`. As a list they may end with the folder of photos.
        data: The folder of photos, Person_Name/photo.jpg; needed for verifiers.
        protocol: Which pairs: `heldout`, `view1`, `view2`, `cfp-fp`, `agedb-30`, `calfw`, `cplfw`
            or `xqlfw`; by default as the bundle was trained.
        lists: Folder of the official lists.
        pairs: CSV file left,right,genuine of the pairs instead, with paths below `data`.
        scores_out: Scores file to write, for a single verifier.
        groups: Groups of people (CSV person,group), to measure the errors within them.
        families: Families or households (CSV person,family): intervals then take families as the
            sample, because relatives resemble each other.
        factors: Factors of photos (CSV photo,…) or of pairs (CSV left,right,…), to measure the
            errors by their levels; verifiers that find faces also have size, pose and sharpness of
            the faces, and `faces` means these alone.
        identification: Also measure how well people of `data` whom a single verifier does not
            know are identified, see `facepairs.evaluation.identification`.

    Raises:
        BadConfig: Arguments do not fit together.
        BadImage: Too few photos can be used.
        BadData: A bundle knows people of a protocol's pairs, the pairs of several sources differ,
            or a file cannot be read.
        NotEnough: A class is missing or too rare.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extra("measure", "facepairs.evaluate")
    words = [str(source) for source in ([sources] if isinstance(sources, Place) else sources)]
    words += [] if data is None else [str(data)]
    named, folder = find_sources(words)
    for_models = {
        "protocol": protocol,
        "lists": lists,
        "pairs": pairs,
        "out": scores_out,
        "identification": identification,
    }
    kinds = {path: kind_of(path) for path, _ in named}
    verifiers = [path for path, kind in kinds.items() if kind not in ("scores", "view2")]
    given = [name for name, value in for_models.items() if value]
    if given and not verifiers:
        raise BadConfig("a scores file already has its pairs; give a verifier and photos", *given)
    alone = [name for name in ("out", "identification") if for_models[name]]
    if alone and sum(path in verifiers for path, _ in named) > 1:
        raise BadConfig("works for one verifier at a time; give one", *alone)
    people_groups = read_groups(Path(groups)) if groups else None
    relatives = read_families(Path(families)) if families else None
    columns: list[Column] | None = None
    if factors is not None:
        columns = [] if str(factors) == FACES else read_factors(Path(factors))
    models = {path: open_model(path) for path in verifiers}  # what is wrong with one is said here
    selection, measured = None, dict[str, Measurement]()
    if models and folder is not None:
        lists_path, pairs_path = (
            None if place is None else Path(place) for place in (lists, pairs)
        )
        selection = choose_pairs(list(models.values()), folder, protocol, lists_path, pairs_path)
        for people in (people_groups, relatives):
            if people is not None:
                people.check_names(selection.index.people)
        measured = _measure_models(
            models, dict(named), selection, people_groups, relatives, columns, identification
        )
    if scores_out is not None:
        (one,) = measured.values()
        write_scores(Path(scores_out), one.pairs)
    for path, name in named:
        if path not in models:
            measured[path] = measure_scores(Path(path), name, people_groups, relatives, columns)
    measurements = tuple(measured[path] for path, _ in named)
    if selection is None:
        _check_people_of(measurements[0].pairs, people_groups, relatives)
    comparison = compare_measurements(measurements) if len(measurements) > 1 else None
    warnings = [line for measured in measurements for line in measured.warnings]
    warnings += not_measured(columns or (), measurements[0].pairs)
    lines = list(dict.fromkeys(warnings))  # several may share a warning
    scores = [
        str(scores_out) if scores_out and path in models else None if path in models else path
        for path, _ in named
    ]
    record = record_of(measurements, scores, folder, selection, groups, families, factors)
    return Evaluation(measurements, comparison, record, lines)


def _check_people_of(pairs: ScoredPairs, *files: PeopleGroups | None) -> None:
    """Raise BadData for a name that is neither in pairs nor known to their model."""
    origin = pairs.origin
    for file in filter(None, files):
        names = list(file.lines)
        people = pairs.attempted.people_names
        if origin and origin.identities:
            people += compress(names, origin.identities.knows(names))
        file.check_names(people)


def _measure_models(
    models: Mapping[str, Model],
    names: Mapping[str, str],
    chosen: PairSelection,
    groups: PeopleGroups | None,
    families: PeopleGroups | None,
    columns: Sequence[Column] | None,
    identification: bool,
) -> dict[str, Measurement]:
    """Measure models, by their paths, on the pairs whose photos all of them can use.

    Raises:
        BadData: A model knows people of a protocol's pairs; this is found before photos are read.
        BadImage: The photos that can be used form no genuine or no impostor pairs.
    """
    index, pairs = chosen.index, chosen.pairs
    known = {path: known_in_selection(model, path, chosen) for path, model in models.items()}
    faces = MOST_PROMINENT
    if chosen.protocol == "heldout" and any(model.aligned for model in models.values()):
        images = range(len(index)) if identification else pairs.images().tolist()
        faces = subject_faces(index, images)
    used = {path: faces if model.aligned else MOST_PROMINENT for path, model in models.items()}
    scored, identified = dict[str, PhotoScores](), None
    for path, model in models.items():
        verifier = Verifier(model)
        scored[path] = score_pairs(verifier, index, pairs, used[path])
        if identification:  # of a single model
            identified = measure_identification(verifier, index, used[path])
    failures = {
        image: error for found in scored.values() for image, error in found.failures.items()
    }
    usable = pairs.show_none_of(failures)
    pairs_left_out, rest = int((~usable).sum()), pairs.genuine[usable]
    if failures and (rest.all() or not rest.any()):
        raise BadImage(f"{describe_unusable(failures)}; the others form too few pairs")
    left_out = []
    if chosen.missing_pairs:
        left_out.append(f"left out: {counted(chosen.missing_pairs, 'pair')} of missing photos")
    if failures:
        pairs_shown, why = counted(pairs_left_out, "pair"), describe_unusable(failures)
        left_out.append(f"left out: {pairs_shown} of unusable photos: {why}")
    unusable, measured = {index.name(image) for image in failures}, {}
    for path, model in models.items():
        known_pairs, warnings = known[path]
        about = About(
            name=names[path],
            source=path,
            pairs=chosen.source,
            scored_by=model.place,
            network_sha256=model.network.embedder_sha256,
            manifest_sha256=model.manifest_sha256,
            thresholds_set_on=model.profile.errors.measured_on if model.profile.errors else None,
            alignment=model.alignment,
            pairs_with_known_people=known_pairs,
            people_left_out=chosen.people_left_out,
            photos_left_out=len(failures),
            pairs_left_out=pairs_left_out,
            other_faces=len(used[path].numbers),
        )
        of_faces = None
        if columns is not None:
            of_faces = measure_faces(index, scored[path].samples)
        measured[path] = measure_model(
            model,
            replace(scored[path].pairs.without_photos(unusable), families=families),
            about,
            protocol=chosen.protocol,
            groups=groups,
            factors=columns,
            samples={index.name(image): face for image, face in scored[path].samples.items()},
            of_faces=of_faces,
            identification=identified,
            faces={index.name(image): face for image, face in used[path].numbers.items()},
            warnings=[*warnings, *left_out],
        )
    return measured


def compare_measurements(measurements: Sequence[Measurement]) -> Comparison:
    """Compare verifiers on the first one's pairs, in its order, all by the same rules."""
    first = measurements[0].pairs
    orders = [
        match_pairs(
            first, one.pairs, (measurements[0].summary.about.source, one.summary.about.source)
        )
        for one in measurements
    ]
    ordered = list(zip(measurements, orders, strict=True))
    scores = [one.pairs.score[order] for one, order in ordered]
    accepted = [one.decided.accepted[order] for one, order in ordered]
    source, accuracies = measurements[0].decided.source, None
    if all(one.decided.source is source for one in measurements):
        accuracies = [one.summary.balanced_accuracy for one in measurements]
    else:  # the threshold of each part of the pairs comes from the others, of every verifier
        again = [decide(first.genuine, score, None, first.fold) for score in scores]
        accepted, source = [one.accepted for one in again], again[0].source
    decided = None
    if all(one.summary.verify_point for one in measurements):
        decided = [one.by_default.accepted[order] for one, order in ordered]
    return compare(
        [one.summary.about.name for one in measurements],
        first.genuine,
        scores,
        accepted,
        FARS,
        first.sample,
        decided=decided,
        accuracies=accuracies,
        threshold_source=source,
    )
