"""`crossval`: LFW's View 2, fold by fold; finished folds are not trained again.

RUN/config.toml       the settings, equal for all folds
RUN/fold-01/ …        a run folder per fold; its scores.csv is written at the end
RUN/scores.csv        the scores of all finished folds
RUN/result.json       how the networks of these folds decide

All figures follow from the last two: `facepairs evaluate RUN` computes them again.
"""

import gc
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.model import open_model
from facepairs.config import Settings, TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadRun, FacepairsError
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.pair_scores import refuse_unusable, score_pairs
from facepairs.evaluation.scores import ScoredPairs, read_scores, write_scores
from facepairs.evaluation.sources import RESULT, SCORES, CrossvalResult, FoldNetwork
from facepairs.evaluation.summary import Summary
from facepairs.photos.crop import CropPlan
from facepairs.support import console
from facepairs.support.extras import require_extra
from facepairs.support.lock import held
from facepairs.support.results import Result, write_json
from facepairs.training.run_folder import (
    BUNDLE,
    LOCK,
    Run,
    begin_run,
    check_place,
    settings_of_run,
)
from facepairs.training.stop import stop_on_signal
from facepairs.training.view2.protocol import View2, check_unknown, prepare_view2
from facepairs.verification.provenance import Provenance, provenance_of
from facepairs.verification.verifier import Verifier

FIXED = ("init", "lists", "pair_cache", "skip_bad")  # the model or the protocol decides them


class CrossvalReport(Result, frozen=True, kw_only=True):
    """The result of a cross-validation.

    Attributes:
        out: The run folder.
        model: The model of the settings.
        interrupted: Whether it was stopped; `resume` continues it.
        summary: The figures of all finished folds in `out`; None without any.
    """

    out: str
    model: str
    interrupted: bool
    summary: Summary | None


def crossval(
    data: Path | str,
    lists: Path | str,
    out: Path | str,
    config: TrainConfig | None = None,
    *,
    folds: Sequence[int] = (),
    resume: bool = False,
) -> CrossvalReport:
    """Measure the training of a model by LFW's View 2, as `facepairs crossval` does.

    Ten times, a network is trained on nine sets of people and tested on the tenth.

    Examples:
        >>> config = facepairs.TrainConfig(model="difference")
        >>> facepairs.crossval("lfw/lfw-deepfunneled", "lfw", "view2", config, folds=[1, 2]).summary

    Args:
        data: LFW's folder of `Person_Name/photo.jpg`.
        lists: Folder of LFW's people.txt and pairs.txt.
        out: Folder for one run folder per fold, and the results.
        config: The settings, the same for all folds; None for the defaults. No one is set aside as
            test people: those are the fold's set.
        folds: Numbers of the folds, from 1; all folds when empty.
        resume: Continue in `out` with its settings; finished folds stay.

    Raises:
        BadConfig: A setting or the folds cannot be used.
        BadData: A photo or a list cannot be used.
        BadRun: `out` holds something already, or was made with other people, photos or pairs, or a
            network knows people of its fold.
        MissingExtra: The packages for training are not installed.
    """
    require_extra("train", "facepairs.crossval")
    folder, place, numbers = Path(data), Path(out), tuple(sorted(set(folds)))
    given = (config or TrainConfig()).replace(test_share=0.0)
    settings = settings_of_run(given, place, resume, changeable=frozenset())
    usual = TrainConfig(model=settings.model).resolve()
    if fixed := [name for name in FIXED if getattr(settings, name) != getattr(usual, name)]:
        raise BadConfig(f"{fixed[0]} is decided by the model and the protocol", *fixed)
    check_place(place, folder, resume)
    view, crops = prepare_view2(folder, Path(lists), numbers, settings)
    return run_folds(view, crops, settings, place, numbers)


def run_folds(
    view: View2, crops: CropPlan, config: Settings, out: Path, folds: tuple[int, ...]
) -> CrossvalReport:
    """Train and score the folds that are not finished, then summarise all that are.

    Args:
        view: The protocol, from `prepare_view2`.
        crops: How photos are cropped, from `prepare_view2`.
        config: The settings.
        out: The run folder; a run in it is continued.
        folds: Numbers of the folds; all folds when empty.

    Raises:
        BadRun: As `crossval`.
    """
    interrupted = False
    with held(out / LOCK, out), stop_on_signal() as should_stop:
        begin_run(out, config)
        try:
            for fold in view.select_folds(folds):
                folder = fold_folder(out, fold)
                finished = read_fold(folder, fold)
                if finished:
                    _check_fold(view, fold, folder, finished)
                elif not should_stop():
                    split = view.split(fold, config)
                    console.log(f"fold {fold}: {len(split.training):,} people to train on")
                    finished = run_fold(view, crops, fold, split, config, folder)
                if interrupted := not finished:
                    break
                console.log(f"fold {fold} is finished")
        except KeyboardInterrupt:
            interrupted = True
        summary = _summarise(view, config.model, out)
    return CrossvalReport(
        out=str(out), model=config.model, interrupted=interrupted, summary=summary
    )


def run_fold(
    view: View2,
    crops: CropPlan,
    fold: int,
    split: PeopleSplit,
    config: Settings,
    folder: Path,
) -> ScoredPairs | None:
    """Train on a split, check that the bundle knows no people of the fold, and score the fold.

    Args:
        view: The protocol.
        crops: How photos are cropped.
        fold: The fold's number.
        split: The people to train and to calibrate on.
        config: The settings.
        folder: The run folder of the fold; training continues from its checkpoint if there is one.

    Returns:
        The scores of the fold, or None if training was stopped.

    Raises:
        BadRun: The bundle knows people of the fold; nothing has been scored.
    """
    with console.waiting("starting TensorFlow"):
        import keras

        from facepairs.training.fit import fit_people
    # One network per fold in one process looks to TensorFlow like needless tracing, so it warns.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    keras.utils.clear_session()  # otherwise the networks of all folds would stay in memory, …
    gc.collect()  # … and so would their features, which are in reference cycles
    run = fit_people(view.index, crops, split, config, folder)
    if run.interrupted:
        return None
    model = open_model(run.bundle)
    check_unknown(model, view.index, view.people_of(fold), fold)
    scored = score_pairs(Verifier(model), view.index, view.pairs_of(fold))
    refuse_unusable(scored.failures, skip_bad=False)
    balanced = operating_point(model.profile, balanced=True)
    origin = provenance_of(model, f"LFW View 2, fold {fold}", balanced, protocol="view2")
    write_scores(folder / SCORES, replace(scored.pairs, origin=origin))
    return read_fold(folder, fold)


def fold_folder(out: Path, fold: int) -> Path:
    """Return the run folder of a fold, such as `fold-01`."""
    return out / f"fold-{fold:02}"


def read_fold(folder: Path, fold: int) -> ScoredPairs | None:
    """Return a fold's scores; None when it is not finished or its files do not fit together."""
    try:
        scores = read_scores(folder / SCORES)
    except (OSError, FacepairsError):
        return None
    fits = Run.read(folder) and set(scores.fold.tolist()) == {fold}
    return scores if fits and _network(scores, fold) else None


def _network(scores: ScoredPairs, fold: int) -> FoldNetwork | None:
    """Return how the network decides that scored a fold; None where its scores do not tell."""
    origin = scores.origin
    if origin is None or origin.calibration is None:
        return None
    return FoldNetwork(fold, origin.calibration)


def _check_fold(view: View2, fold: int, folder: Path, scores: ScoredPairs) -> None:
    """Raise BadRun where a finished fold is of other people or pairs than the lists name."""
    check_unknown(open_model(folder / BUNDLE), view.index, view.people_of(fold), fold)
    pairs = view.pairs_of(fold)
    for side, names in ((pairs.left, scores.left), (pairs.right, scores.right)):
        if list(names) != [view.index.name(image) for image in side.tolist()]:
            raise BadRun(f"{folder}: has scores of other pairs; choose another folder", "out")


def _summarise(view: View2, model: str, out: Path) -> Summary | None:
    """Write the scores and trainings of the finished folds, and measure them, if any."""
    folds = range(1, len(view.sets) + 1)
    found = {fold: read_fold(fold_folder(out, fold), fold) for fold in folds}
    done = {fold: scores for fold, scores in found.items() if scores}
    networks = [decides for fold, scores in done.items() if (decides := _network(scores, fold))]
    if not networks:
        return None
    (alignment, *_) = (scores.origin.alignment for scores in done.values() if scores.origin)
    provenance = Provenance(model=model, alignment=alignment, pairs="LFW View 2", protocol="view2")
    write_scores(out / SCORES, _join([*done.values()], provenance))
    write_json(out / RESULT, CrossvalResult(folds=networks, folds_in_all=len(folds)))
    return measure_scores(out, model).summary


def _join(parts: list[ScoredPairs], origin: Provenance) -> ScoredPairs:
    """Return the scores of all folds."""
    alike = [part.alike for part in parts if part.alike is not None]
    return ScoredPairs(
        [name for part in parts for name in part.left],
        [name for part in parts for name in part.right],
        np.concatenate([part.genuine for part in parts]),
        np.concatenate([part.fold for part in parts]),
        np.concatenate([part.score for part in parts]),
        LookAlikes.join(alike) if len(alike) == len(parts) else None,
        origin=origin,
    )
