"""`crossval`: LFW's View 2, fold by fold; finished folds are not trained again.

RUN/METHOD/config.toml          the settings, equal for all folds of a method
RUN/METHOD/fold-01/ …           a run folder per fold; its scores.csv is written at the end
RUN/METHOD/scores.csv           the scores of all finished folds
RUN/METHOD/result.json          the figures of a method, which `facepairs evaluate` reads
"""

import gc
import itertools
import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.operating_point import operating_point
from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.errors import FacepairsError
from facepairs.evaluation.lookalikes import CLUSTERS
from facepairs.evaluation.metrics.summary import FoldSummary, Summary, summarise
from facepairs.evaluation.pair_scores import score_pairs
from facepairs.evaluation.protocols import CATEGORIES, OUTSIDE_LABELS
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.evaluation.serialize import write_json
from facepairs.faces.photo_table import PhotoTable
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.extras import require_extras
from facepairs.support.machine import require_room_to_train
from facepairs.training.interrupt import stop_on_signal
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder import RESULT, Run, RunFolder, check_place, check_unlocked
from facepairs.training.view2.plan import METHODS, Plan, check_data, keep_settings, read_config
from facepairs.training.view2.protocol import View2, check_unknown, prepare_view2
from facepairs.verification.provenance import Provenance, provenance_of, read_provenance
from facepairs.verification.verifier import Verifier

SCORES = "scores.csv"


@dataclass(frozen=True, kw_only=True)
class FoldFigures(FoldSummary):
    """Figures of a fold, and how its network was trained; `people` in each part of the split."""

    calibration: Calibration
    people: dict[str, int]
    epochs: int
    minutes: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class MethodFigures(Summary):
    """Figures of a method over its finished folds; `minutes` is the time of all trainings."""

    method: str
    folds_done: int
    folds_in_all: int
    minutes: float


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
    methods: dict[str, MethodFigures]


@dataclass(frozen=True, eq=False)
class FinishedFold:
    """The scores of a fold, and the training, threshold and calibration of its network."""

    number: int
    scores: ScoreTable
    run: Run
    threshold: float
    calibration: Calibration


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
        options: Messages and progress; nothing else of it is used.

    Raises:
        BadData: A photo or a list cannot be used.
        BadRun: `out` holds something already, or was made with other settings or images, or a
            network knows people of its fold.
        MissingExtra: The packages for training are not installed.
    """
    require_extras(["train"], "facepairs.crossval")
    folder, place = Path(data), Path(out)
    check_place(place, folder, resume, METHODS)
    check_unlocked(place)
    require_room_to_train()
    finding = options.progress("finding faces")
    view, photos = prepare_view2(folder, Path(lists), plan.folds, plan.align, options.log, finding)
    return run_folds(view, photos, plan, place, resume, options)


def run_folds(
    view: View2,
    photos: PhotoTable,
    plan: Plan,
    out: Path,
    resume: bool = False,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
) -> CrossvalReport:
    """Train and score the folds that are not finished, then summarise all that are.

    Args:
        view: The protocol, from `prepare_view2`.
        photos: What was found in the photos, from `prepare_view2`.
        plan: Methods and folds, from `make_plan`.
        out: The run folder.
        resume: Continue the run in `out`.
        options: Messages and progress.

    Raises:
        BadRun: As `crossval`.
    """
    folds, interrupted = view.select_folds(plan.folds), False
    check_place(out, view.index.root, resume, METHODS)
    with RunFolder(out, resume), stop_on_signal(options.log) as should_stop:
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
                    options.log(f"{method}, fold {fold}: {people}")
                    finished = run_fold(view, photos, fold, split, config, folder, options)
                if interrupted := not finished:
                    break
                options.log(f"{method}, fold {fold} is finished")
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
        options: Messages and progress.

    Returns:
        The finished fold, or None if training was stopped.

    Raises:
        BadRun: The bundle knows people of the fold; nothing has been scored.
    """
    with options.starting():
        import keras

        from facepairs.training.train_people import train_people
    # One network per fold in one process looks to TensorFlow like needless tracing, so it warns.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    keras.utils.clear_session()  # otherwise the networks of all folds would stay in memory, …
    gc.collect()  # … and so would their features, which are in reference cycles
    of_fold = TrainOptions(
        log=options.log, progress=options.progress, store_folder=folder.parent.parent
    )
    crops = photos.crop_plan(config.recipe.crop_spec, config.align)
    run = train_people(view.index, crops, split, config, folder, of_fold, resume=True)
    if run.interrupted:
        return None
    bundle = Bundle.open(run.bundle)
    check_unknown(bundle, view.index, view.people_of(fold), fold)
    display = options.progress(f"scoring fold {fold}")
    scores = score_pairs(Verifier(bundle), view.index, view.pairs_of(fold), display).table()
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
    except (OSError, FacepairsError):
        return None
    if not run or not origin or set(scores.fold.tolist()) != {fold}:
        return None
    threshold, calibration = origin.balanced_threshold, origin.calibration
    if threshold is None or calibration is None:
        return None
    return FinishedFold(fold, scores, run, threshold, calibration)


def _summarise(folder: Path, folds: int) -> MethodFigures | None:
    """Write the scores and figures of a method's finished folds; None where there is none."""
    found = (read_fold(fold_folder(folder, fold), fold) for fold in range(1, folds + 1))
    done = {fold.number: fold for fold in found if fold}
    if not done:
        return None
    scores, config = _join([fold.scores for fold in done.values()]), read_config(folder)
    provenance = Provenance(model=folder.name, pairs="LFW View 2", protocol="view2")
    write_scores(folder / SCORES, scores, provenance)
    summary = summarise(
        scores.genuine,
        scores.score,
        {number: fold.threshold for number, fold in done.items()},
        scores.fold,
        {number: fold.calibration for number, fold in done.items()},
        cluster=scores.cluster,
    )
    rows = [
        FoldFigures(
            **vars(row),
            calibration=done[row.fold].calibration,
            people=done[row.fold].run.people,
            epochs=done[row.fold].run.epochs,
            minutes=round(done[row.fold].run.seconds / 60, 2),
            seed=config.seed,
        )
        for row in summary.folds
    ]
    category = OUTSIDE_LABELS if config.init else CATEGORIES[ALIGNMENTS[config.align]]
    figures = MethodFigures(
        **vars(summary) | {"folds": rows, "category": category},
        method=folder.name,
        folds_done=len(done),
        folds_in_all=folds,
        minutes=round(sum(row.minutes for row in rows), 2),
    )
    write_json(folder / RESULT, figures)
    return figures


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
