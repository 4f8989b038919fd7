"""`crossval`: LFW's View 2, fold by fold; a fold that is done is never trained again.

RUN/METHOD/config.toml          the settings that all folds of a method share
RUN/METHOD/fold-01/ …           a run folder each, with scores.csv and, once done, fold.json
RUN/METHOD/scores.csv           all done folds together
RUN/METHOD/result.json          a method's figures
RUN/result.json                 those of all methods
"""

import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.training.loop.interrupt import stop_on_signal
from facepairs.training.run_folder.folder import RunFolder
from facepairs.training.train import TrainOptions, train
from facepairs.training.view2.fold_record import DoneFold, fold_folder, read_fold, write_fold
from facepairs.training.view2.folds import View2, check_unknown
from facepairs.training.view2.methods import Plan, check_place, keep_settings
from facepairs.training.view2.results import CrossvalResults, check_all_data, write_results
from facepairs.verification.verifier import Verifier

Say = Callable[[str], None]
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class CrossvalReport:
    """Results of all methods that `out` has folds of; `interrupted`: go on with `--resume`."""

    out: Path
    interrupted: bool
    results: CrossvalResults


def crossval(
    view: View2,
    plan: Plan,
    out: Path,
    resume: bool = False,
    say: Say = lambda line: None,
    progress: Callable[[str], Tick] | None = None,
) -> CrossvalReport:
    """Train, score and record the folds that are not done yet, then sum up all that are.

    `view` comes from `prepare_view2`, `plan` from `make_plan`. Raises BadRun where `out` holds
    something and `resume` is not given, or was made with other settings or images, and where a
    network knows people of its fold; else a FacepairsError for whatever the user can mend.
    """
    tick = progress or (lambda label: lambda done, total: None)
    folds = view.asked(plan.folds)
    check_place(out, view.index.root, resume)
    # A network a fold in one process: TensorFlow would take tracing each for a mistake.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with RunFolder(out, resume) as run, stop_on_signal(say) as should_stop:
        check_all_data(out, view.digests)
        for method, config in plan.configs.items():
            keep_settings(out / method, method, config, view.digests)
        try:
            interrupted = not all(
                not should_stop() and _do_fold(view, run, method, config, fold, say, tick)
                for method, config in plan.configs.items()
                for fold in folds
            )
        except KeyboardInterrupt:
            interrupted = True
        results = write_results(out, len(view.sets), view.digests)
    return CrossvalReport(out, interrupted, results)


def _do_fold(
    view: View2,
    run: RunFolder,
    method: str,
    config: TrainConfig,
    fold: int,
    say: Say,
    tick: Callable[[str], Tick],
) -> bool:
    """Do a fold unless it is done; False: it was asked to stop, and has saved."""
    folder = fold_folder(run.path / method, fold)
    done = read_fold(folder, method, fold)
    if done is None:
        split = view.split(fold, config)
        say(f"{method}, fold {fold}: {len(split.training):,} people to train on")
        done = run_fold(view, fold, split, method, config, folder, say, tick)
        if done is None:
            return False
        run.log(f"{method} fold {fold}: accuracy {done.record['accuracy']:.4f}")
    say(f"{method}, fold {fold}: accuracy {done.record['accuracy']:.4f}")
    return True


def run_fold(
    view: View2,
    fold: int,
    split: PeopleSplit,
    method: str,
    config: TrainConfig,
    folder: Path,
    say: Say,
    tick: Callable[[str], Tick],
) -> DoneFold | None:
    """Train on a split, make sure that nobody of the fold is known, and score the fold.

    Goes on from the fold's checkpoint where there is one; None where it was asked to stop. Raises
    BadRun, before anything is scored, where the bundle knows people of the fold.
    """
    keras.utils.clear_session()  # ten networks in one process would pile up, …
    gc.collect()  # … and the vectors of each, which graphs and networks hold in circles
    options = TrainOptions(
        resume=True,
        log=say,
        progress=tick,
        images_in_tensorboard=False,
        store_folder=folder.parent.parent,
    )
    report = train(view.index, split, config, folder, options)
    if report.bundle is None:
        return None
    bundle = Bundle.open(report.bundle)
    check_unknown(bundle, view.index, view.people_of(fold), fold)
    pairs = view.pairs_of(fold)
    score = Verifier(bundle).score_images(
        view.index.paths,
        pairs.left,
        pairs.right,
        tick(f"scoring fold {fold}"),
    )
    trained = {"epochs": report.epochs, "minutes": round(report.seconds / 60, 2)}
    return write_fold(folder, method, view.index, split, pairs, score, bundle, config, trained)
