"""`crossval`: LFW's View 2, fold by fold; finished folds are not trained again.

RUN/METHOD/config.toml          the settings, equal for all folds of a method
RUN/METHOD/fold-01/ …           a run folder per fold, with scores.csv and, at the end, fold.json
RUN/METHOD/scores.csv           the scores of all finished folds
RUN/METHOD/result.json          the figures of a method
RUN/result.json                 the figures of all methods
"""

import gc
import itertools
import logging
from dataclasses import dataclass
from pathlib import Path

import keras

from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.evaluation.pair_scores import score_pairs
from facepairs.faces.photo_table import PhotoTable
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.training.loop.interrupt import stop_on_signal
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder.folder import RunFolder, check_place
from facepairs.training.train import train_people
from facepairs.training.view2.fold_record import FinishedFold, fold_folder, read_fold, write_fold
from facepairs.training.view2.folds import View2, check_unknown
from facepairs.training.view2.methods import MARKS, Plan, keep_settings
from facepairs.training.view2.results import CrossvalResults, check_all_data, write_results
from facepairs.verification.verifier import Verifier


@dataclass(frozen=True)
class CrossvalReport:
    """The result of a cross-validation.

    Attributes:
        out: The run folder.
        interrupted: Whether it was stopped; `resume` continues it.
        results: The figures of all methods that have finished folds in `out`.
    """

    out: Path
    interrupted: bool
    results: CrossvalResults


def crossval(
    view: View2,
    photos: PhotoTable,
    plan: Plan,
    out: Path,
    resume: bool = False,
    log: MessageCallback = ignore_message,
    progress: ProgressFactory = ignore_phases,
) -> CrossvalReport:
    """Train, score and record the folds that are not finished, then summarise all that are.

    Args:
        view: The protocol, from `prepare_view2`.
        photos: What was found in the photos, from `prepare_view2`.
        plan: Methods and folds, from `make_plan`.
        out: The run folder.
        resume: Continue the run in `out`.
        log: Receives messages.
        progress: Shows the progress of each phase.

    Raises:
        BadRun: `out` holds a run and `resume` is false, or was made with other settings or images,
            or a network knows people of its fold.
        FacepairsError: Anything else that the user can correct.
    """
    folds = view.select_folds(plan.folds)
    check_place(out, view.index.root, resume, MARKS)
    # One network per fold in one process looks to TensorFlow like needless tracing, so it warns.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with RunFolder(out, resume) as run, stop_on_signal(log) as should_stop:
        check_all_data(out, view.digests)
        for method, config in plan.configs.items():
            keep_settings(out / method, method, config, view.digests)

        def finish_fold(method: str, config: TrainConfig, fold: int) -> bool:
            """Run a fold unless it is finished; return False if stopped."""
            folder = fold_folder(out / method, fold)
            finished = read_fold(folder, method, fold)
            if not finished:
                split = view.split(fold, config)
                log(f"{method}, fold {fold}: {len(split.training):,} people to train on")
                finished = run_fold(
                    view, photos, fold, split, method, config, folder, log, progress
                )
                if not finished:
                    return False
                run.log(f"{method} fold {fold}: accuracy {finished.record.accuracy:.4f}")
            log(f"{method}, fold {fold}: accuracy {finished.record.accuracy:.4f}")
            return True

        interrupted = False
        try:
            for (method, config), fold in itertools.product(plan.configs.items(), folds):
                if should_stop() or not finish_fold(method, config, fold):
                    interrupted = True
                    break
        except KeyboardInterrupt:
            interrupted = True
        results = write_results(out, len(view.sets), view.digests)
    return CrossvalReport(out, interrupted, results)


def run_fold(
    view: View2,
    photos: PhotoTable,
    fold: int,
    split: PeopleSplit,
    method: str,
    config: TrainConfig,
    folder: Path,
    log: MessageCallback = ignore_message,
    progress: ProgressFactory = ignore_phases,
) -> FinishedFold | None:
    """Train on a split, check that the bundle knows nobody of the fold, and score the fold.

    Args:
        view: The protocol.
        photos: What was found in the photos.
        fold: The fold's number.
        split: The people to train and to calibrate on.
        method: The method's name.
        config: The method's settings.
        folder: The run folder of the fold; training continues from its checkpoint if there is one.
        log: Receives messages.
        progress: Shows the progress of each phase.

    Returns:
        The finished fold, or None if training was stopped.

    Raises:
        BadRun: The bundle knows people of the fold; nothing has been scored.
    """
    keras.utils.clear_session()  # otherwise the networks of all folds would stay in memory, …
    gc.collect()  # … and so would their features, which are in reference cycles
    options = TrainOptions(
        log=log,
        progress=progress,
        store_folder=folder.parent.parent,
    )
    crops = photos.crop_plan(config.recipe.crop_spec, config.align)
    trained = train_people(view.index, crops, split, config, folder, options, resume=True)
    if trained.interrupted:
        return None
    bundle = Bundle.open(trained.bundle)
    check_unknown(bundle, view.index, view.people_of(fold), fold)
    display = progress(f"scoring fold {fold}")
    scored = score_pairs(Verifier(bundle), view.index, view.pairs_of(fold), display)
    return write_fold(folder, method, split, scored, bundle, config, trained)
