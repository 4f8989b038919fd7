"""`crossval`: LFW's View 2, fold by fold; finished folds are not trained again.

RUN/METHOD/config.toml          the settings, equal for all folds of a method
RUN/METHOD/fold-01/ …           a run folder per fold; its scores.csv is written at the end
RUN/METHOD/scores.csv           the scores of all finished folds
RUN/METHOD/result.json          how the networks of these folds were trained and decide

All figures follow from the last two: `facepairs evaluate RUN` computes them again.
"""

import gc
import itertools
import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.rates import operating_point
from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.errors import FacepairsError
from facepairs.evaluation.lookalikes import CLUSTERS
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.pair_scores import score_pairs
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.evaluation.serialize import write_json
from facepairs.evaluation.sources.find import (
    RESULT,
    SCORES,
    CrossvalResult,
    FoldTraining,
    ScoreSource,
)
from facepairs.evaluation.summary import Summary
from facepairs.faces.inspection import PhotoTable
from facepairs.support import console
from facepairs.support.extras import require_extras
from facepairs.support.machine import require_room_to_train
from facepairs.training.interrupt import stop_on_signal
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder import Run, RunFolder, check_place, check_unlocked
from facepairs.training.view2.plan import METHODS, Plan, check_data, keep_settings
from facepairs.training.view2.protocol import View2, check_unknown, prepare_view2
from facepairs.verification.provenance import Provenance, provenance_of, read_provenance
from facepairs.verification.verifier import Verifier


@dataclass(frozen=True)
class CrossvalReport:
    """The result of a cross-validation.

    Attributes:
        out: The run folder.
        interrupted: Whether it was stopped; `resume` continues it.
        methods: The figures of all methods that have finished folds in `out`.
    """

    out: Path
    interrupted: bool
    methods: dict[str, Summary]


@dataclass(frozen=True, eq=False)
class FinishedFold:
    """The scores of a fold, and how its network was trained and decides."""

    scores: ScoreTable
    training: FoldTraining


def crossval(
    data: Path | str,
    lists: Path | str,
    out: Path | str,
    plan: Plan,
    *,
    resume: bool = False,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
) -> CrossvalReport:
    """Measure methods by LFW's View 2, as `facepairs crossval` does.

    Ten times, a network is trained on nine sets of people and tested on the tenth.

    Examples:
        >>> plan = facepairs.make_plan("difference,siamese-small", folds="1-3")
        >>> facepairs.crossval("lfw/lfw-deepfunneled", "lfw", "view2", plan).methods

    Args:
        data: LFW's folder of `Person_Name/photo.jpg`.
        lists: Folder of LFW's people.txt and pairs.txt.
        out: Folder for one run folder per fold, and the results.
        plan: Methods, their settings and folds, from `make_plan`.
        resume: Continue in `out`; finished folds stay.
        options: How the trainings run, on one machine.

    Raises:
        BadData: A photo or a list cannot be used.
        BadRun: `out` holds something already, or was made with other settings or images, or a
            network knows people of its fold.
        MissingExtra: The packages for training are not installed.
    """
    require_extras(["train"], "facepairs.crossval")
    folder, place = Path(data), Path(out)
    check_place(place, folder, resume)
    check_unlocked(place)
    require_room_to_train()
    view, photos = prepare_view2(folder, Path(lists), plan.folds, plan.align)
    return run_folds(view, photos, plan, place, options)


def run_folds(
    view: View2,
    photos: PhotoTable,
    plan: Plan,
    out: Path,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
) -> CrossvalReport:
    """Train and score the folds that are not finished, then summarise all that are.

    Args:
        view: The protocol, from `prepare_view2`.
        photos: What was found in the photos, from `prepare_view2`.
        plan: Methods and folds, from `make_plan`.
        out: The run folder; a run in it is continued.
        options: How the trainings run.

    Raises:
        BadRun: As `crossval`.
    """
    folds, interrupted = view.select_folds(plan.folds), False
    with RunFolder(out), stop_on_signal() as should_stop:
        check_data(out, view.digests)
        for method, config in plan.configs.items():
            keep_settings(out / method, config, view.digests)
        try:
            for (method, config), fold in itertools.product(plan.configs.items(), folds):
                folder = fold_folder(out / method, fold)
                finished = read_fold(folder, fold)
                if not finished and not should_stop():
                    split = view.split(fold, config)
                    people = f"{len(split.training):,} people to train on"
                    console.log(f"{method}, fold {fold}: {people}")
                    finished = run_fold(view, photos, fold, split, config, folder, options)
                if interrupted := not finished:
                    break
                console.log(f"{method}, fold {fold} is finished")
        except KeyboardInterrupt:
            interrupted = True
        summaries = {method: _summarise(out / method, len(view.sets)) for method in METHODS}
        methods = {method: figures for method, figures in summaries.items() if figures}
    return CrossvalReport(out, interrupted, methods)


def run_fold(
    view: View2,
    photos: PhotoTable,
    fold: int,
    split: PeopleSplit,
    config: TrainConfig,
    folder: Path,
    options: TrainOptions,
) -> FinishedFold | None:
    """Train on a split, check that the bundle knows nobody of the fold, and score the fold.

    Args:
        view: The protocol.
        photos: What was found in the photos.
        fold: The fold's number.
        split: The people to train and to calibrate on.
        config: The method's settings.
        folder: The run folder of the fold; training continues from its checkpoint if there is one.
        options: How the trainings run.

    Returns:
        The finished fold, or None if training was stopped.

    Raises:
        BadRun: The bundle knows people of the fold; nothing has been scored.
    """
    with console.waiting("starting TensorFlow"):
        import keras

        from facepairs.training.train_people import train_people
    # One network per fold in one process looks to TensorFlow like needless tracing, so it warns.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    keras.utils.clear_session()  # otherwise the networks of all folds would stay in memory, …
    gc.collect()  # … and so would their features, which are in reference cycles
    crops = photos.crop_plan(config.recipe.crop_spec, config.align)
    run = train_people(view.index, crops, split, config, folder, options)
    if run.interrupted:
        return None
    bundle = Bundle.open(run.bundle)
    check_unknown(bundle, view.index, view.people_of(fold), fold)
    scores = score_pairs(Verifier(bundle), view.index, view.pairs_of(fold)).table()
    if scores.cluster is not None:  # clusters of different folds get different numbers
        first = CLUSTERS * (fold - 1)
        numbers = np.where(scores.cluster > 0, scores.cluster + first, 0).astype(np.int16)
        scores = replace(scores, cluster=numbers)
    balanced = operating_point(bundle, balanced=True)
    name, pairs = str(bundle.folder), f"LFW View 2, fold {fold}"
    origin = provenance_of(bundle, name, pairs, balanced, protocol="view2")
    write_scores(folder / SCORES, scores, origin)
    return read_fold(folder, fold)


def fold_folder(method_folder: Path, fold: int) -> Path:
    """Return the run folder of a fold, such as `fold-01`."""
    return method_folder / f"fold-{fold:02}"


def read_fold(folder: Path, fold: int) -> FinishedFold | None:
    """Return a finished fold, or None when it is not finished or its files do not fit together."""
    try:
        run, origin = Run.read(folder), read_provenance(folder / SCORES)
        scores = read_scores(folder / SCORES)
        if not run or not origin or set(scores.fold.tolist()) != {fold}:
            return None
        threshold, seed = origin.balanced_threshold, run.config.seed
    except (OSError, FacepairsError):
        return None
    if threshold is None or origin.calibration is None:
        return None
    minutes = round(run.seconds / 60, 2)
    training = FoldTraining(
        fold, threshold, origin.calibration, run.people, run.epochs, minutes, seed
    )
    return FinishedFold(scores, training)


def _summarise(folder: Path, folds: int) -> Summary | None:
    """Write the scores and trainings of a method's finished folds, and measure them, if any."""
    found = (read_fold(fold_folder(folder, fold), fold) for fold in range(1, folds + 1))
    done = [fold for fold in found if fold]
    if not done:
        return None
    provenance = Provenance(model=folder.name, pairs="LFW View 2", protocol="view2")
    write_scores(folder / SCORES, _join([fold.scores for fold in done]), provenance)
    trainings = [fold.training for fold in done]
    result = CrossvalResult(method=folder.name, folds=trainings, folds_in_all=folds)
    write_json(folder / RESULT, result)
    return measure_scores(ScoreSource("view2", str(folder), folder.name)).summary


def _join(parts: list[ScoreTable]) -> ScoreTable:
    """Return the scores of all folds in one table."""
    clusters = [part.cluster for part in parts if part.cluster is not None]
    return ScoreTable(
        [name for part in parts for name in part.left],
        [name for part in parts for name in part.right],
        np.concatenate([part.genuine for part in parts]),
        np.concatenate([part.fold for part in parts]),
        np.concatenate([part.score for part in parts]),
        np.concatenate(clusters) if len(clusters) == len(parts) else None,
    )
