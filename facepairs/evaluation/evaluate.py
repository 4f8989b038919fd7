"""`evaluate`: measure verifiers, scores files and `crossval` folders, and compare several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facepairs.errors import BadConfig
from facepairs.evaluation.measurement import (
    Measurement,
    measure_model,
    measure_scores,
    measure_view2,
)
from facepairs.evaluation.metrics.comparison import Comparison, compare
from facepairs.evaluation.metrics.thresholds import FARS
from facepairs.evaluation.protocols import PairSelection, choose_pairs
from facepairs.evaluation.scores import match_pairs
from facepairs.evaluation.serialize import to_plain
from facepairs.evaluation.sources import Kind, find_sources
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.loading import open_model

SCHEMA = 2


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One measurement, or several that were compared.

    Attributes:
        measurements: All on the same pairs in the same order.
        comparison: None for one verifier.
        data: The folder of photos, if one was given.
        selection: The pairs that were scored here, if any were.
    """

    measurements: tuple[Measurement, ...]
    comparison: Comparison | None
    data: Path | None
    selection: PairSelection | None

    @property
    def warnings(self) -> list[str]:
        """What limits the figures, one line each."""
        return [line for one in self.measurements for line in one.warnings]

    def to_json(self) -> dict[str, Any]:
        """Return the summary of one verifier, or those of all with their comparison."""
        first: dict[str, Any] = to_plain(self.measurements[0].summary)
        if self.comparison is None:
            return first
        models = [
            {"name": one.name, "source": one.source, **to_plain(one.summary)}
            for one in self.measurements
        ]
        return {"schema": SCHEMA, "models": models, "comparison": to_plain(self.comparison)}


def evaluate(
    sources: Sequence[str],
    *,
    protocol: str | None = None,
    lists: Path | None = None,
    pairs_csv: Path | None = None,
    scores: Path | None = None,
    scores_out: Path | None = None,
    threshold: float | None = None,
    progress: ProgressFactory = ignore_phases,
) -> Evaluation:
    """Measure one or several sources of scores; compare several on the same pairs.

    Args:
        sources: Verifiers, scores files, `crossval` folders and the folder of photos
            (`find_sources`).
        protocol, lists, pairs_csv: Choose the pairs for verifiers (`choose_pairs`).
        scores: A scores file to read; refused with a verifier.
        scores_out: Scores file to write, for a single verifier.
        threshold: For a single scores file.
        progress: Called with the name of each phase.

    Raises:
        BadConfig: Arguments do not fit together.
        BadData: A bundle knows people of a protocol's pairs, the pairs of several sources differ,
            or a file cannot be read.
        NotEnough: A class is missing or too rare.
    """
    score_sources, data = find_sources(sources, scores)
    for_models = {"--protocol": protocol, "--pairs": pairs_csv, "--out": scores_out}
    _check_options([source.kind for source in score_sources], threshold, for_models)
    models = {source: open_model(source.path) for source in score_sources if source.kind == "model"}
    selection = None
    if models and data is not None:
        selection = choose_pairs(list(models.values()), data, protocol, lists, pairs_csv)
    measurements: list[Measurement] = []
    for source in score_sources:
        if selection is not None and source in models:
            one = measure_model(source, models[source], selection, scores_out, progress)
        elif source.kind == "view2":
            one = measure_view2(source)
        else:
            one = measure_scores(source, threshold)
        if measurements:
            first = measurements[0]
            names = (first.source, one.source)
            one = one.take(match_pairs(first.scores, one.scores, names))
        measurements.append(one)
    comparison = None
    if len(measurements) > 1:
        genuine = measurements[0].scores.genuine
        comparison = compare(
            [one.name for one in measurements],
            genuine,
            [one.scores.score for one in measurements],
            [one.accepted == genuine for one in measurements],
            FARS,
            progress=progress("comparing"),
        )
    return Evaluation(tuple(measurements), comparison, data, selection)


def _check_options(
    kinds: list[Kind], threshold: float | None, for_models: Mapping[str, object]
) -> None:
    """Raise BadConfig unless the options fit the kinds of the sources."""
    if threshold is not None and kinds != ["scores"]:
        raise BadConfig("--threshold goes with one scores file; other sources have their own")
    given = [name for name, value in for_models.items() if value is not None]
    if given and "model" not in kinds:
        raise BadConfig(f"{given[0]} goes with a bundle; scores have their pairs already")
    if for_models["--out"] is not None and kinds.count("model") > 1:
        raise BadConfig(
            "--out takes the scores of one verifier; for several use --report-dir, which keeps "
            "those of each"
        )
