"""`evaluate`: verifiers on pairs of people they do not know, scores files, `crossval` folders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.data.index import StringTable
from facepairs.errors import BadConfig
from facepairs.evaluation.compare import compare
from facepairs.evaluation.measured import (
    Measured,
    measure_model,
    measure_scores,
    measure_view2,
)
from facepairs.evaluation.protocols import Task, choose_pairs, leaks
from facepairs.evaluation.scores import Scores, write_scores
from facepairs.evaluation.sources import Source, find_sources, lined_up
from facepairs.evaluation.summary import FARS
from facepairs.verification.opening import Model, open_model
from facepairs.verification.verifier import Verifier

SCHEMA = 1
Tick = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was measured: `summary` (ready for JSON), and what people should be told besides.

    `measured` has a verifier's scores and figures each, all on the same pairs in the same order;
    `comparison` is None for one verifier. `task` holds the photos of pairs that were scored here.
    """

    summary: dict[str, Any]
    warnings: list[str]
    measured: tuple[Measured, ...]
    comparison: dict[str, Any] | None
    data: Path | None
    task: Task | None


def evaluate(
    words: Sequence[str],
    *,
    protocol: str | None = None,
    lists: Path | None = None,
    pairs_csv: Path | None = None,
    scores: Path | None = None,
    threshold: float | None = None,
    progress: Callable[[str], Tick] | None = None,
) -> Evaluation:
    """Measure what the words name, on the same pairs, and compare where they name several.

    `words` as in `find_sources`; `protocol`, `lists` and `pairs_csv` choose pairs for verifiers as
    in `choose_pairs`; `scores` is written with one verifier and else read; `threshold` is for one
    scores file. Raises BadConfig for what does not go together, BadData where a protocol's people
    are known to a bundle or pairs differ.
    """
    sources, data = find_sources(words, scores)
    tick = progress or (lambda label: lambda done, total: None)
    models = {s: open_model(s.path) for s in sources if s.kind == "model"}
    _check_options(sources, threshold, {"--protocol": protocol, "--pairs": pairs_csv})
    task, warnings = None, []
    if models and data is not None:
        task = choose_pairs(list(models.values()), data, protocol, lists, pairs_csv)
    measured = []
    for source in sources:
        if task is not None and source in models:
            one, told = _score(source, models[source], task, scores, tick)
            warnings += told
        elif source.kind == "view2":
            one = measure_view2(source)
            warnings += _unfinished(one)
        else:
            one = measure_scores(source, threshold)
            warnings += _unscored(one)
        measured.append(one)
    lined = _lined_up(measured)
    comparison = _comparison(lined, tick("comparing")) if len(lined) > 1 else None
    return Evaluation(_summary(lined, comparison), warnings, tuple(lined), comparison, data, task)


def _check_options(
    sources: Sequence[Source], threshold: float | None, for_models: dict[str, Any]
) -> None:
    if threshold is not None and [source.kind for source in sources] != ["scores"]:
        raise BadConfig("--threshold goes with one scores file; all else has its own")
    given = [name for name, value in for_models.items() if value is not None]
    if given and not any(source.kind == "model" for source in sources):
        raise BadConfig(f"{given[0]} goes with a bundle; scores have their pairs already")


def _score(
    source: Source,
    model: Model,
    task: Task,
    scores_out: Path | None,
    tick: Callable[[str], Tick],
) -> tuple[Measured, list[str]]:
    known, warnings = leaks(model, source.path, task)
    index, pairs = task.index, task.pairs
    score = Verifier(model).score_images(
        index.paths,
        pairs.left,
        pairs.right,
        tick(f"scoring pairs with {source.name}"),
    )
    scores = _scores(task, score)
    if scores_out is not None:
        write_scores(scores_out, scores)
    measured = measure_model(source, model, scores, own_threshold=task.protocol != "view2")
    facts = {
        **task.facts(),
        "pairs_with_known_people": known,
        "model": model.model,
        "bundle": source.path,
    }
    return replace(measured, summary=measured.summary | facts), warnings


def _scores(task: Task, score: npt.NDArray[np.float32]) -> Scores:
    index, pairs = task.index, task.pairs
    left, right = (
        StringTable(index.name(int(i)) for i in side) for side in (pairs.left, pairs.right)
    )
    return Scores(left, right, pairs.genuine, pairs.fold, score.astype(np.float64))


def _unscored(one: Measured) -> list[str]:
    count = one.scores.unscored
    return [f"{one.source}: {count:,} pairs had no score and are left out"] if count else []


def _unfinished(one: Measured) -> list[str]:
    done, whole = one.about["folds_done"], one.about["folds_in_all"]
    if done == whole:
        return []
    return [f"{one.source}: {done} of {whole} folds are done; the figures are not View 2's yet"]


def _lined_up(measured: list[Measured]) -> list[Measured]:
    first = measured[0]
    lined = [first]
    for other in measured[1:]:
        names = (first.source, other.source)
        lined.append(other.in_order(lined_up(first.scores, other.scores, names)))
    return lined


def _comparison(measured: list[Measured], progress: Tick) -> dict[str, Any]:
    genuine = measured[0].scores.genuine
    return compare(
        [one.name for one in measured],
        genuine,
        [one.scores.score for one in measured],
        [one.accepted == genuine for one in measured],
        FARS,
        progress=progress,
    )


def _summary(measured: list[Measured], comparison: dict[str, Any] | None) -> dict[str, Any]:
    if comparison is None:
        return measured[0].summary
    models = [{"name": one.name, "source": one.source, **one.summary} for one in measured]
    return {"schema": SCHEMA, "models": models, "comparison": comparison}
