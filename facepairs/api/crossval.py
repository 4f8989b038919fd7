"""`crossval`: LFW's View 2, before and after TensorFlow is loaded."""

from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.support.extras import require_extras
from facepairs.support.machine import require_room_to_train
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder.folder import check_place, check_unlocked
from facepairs.training.view2.folds import prepare_view2
from facepairs.training.view2.methods import MARKS, Plan

if TYPE_CHECKING:  # importing it loads TensorFlow
    from facepairs.training.view2.crossval import CrossvalReport


def crossval(
    data: Path | str,
    lists: Path | str,
    out: Path | str,
    plan: Plan,
    *,
    resume: bool = False,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
) -> "CrossvalReport":
    """Measure methods by LFW's View 2, as `facepairs crossval` does.

    Ten times, a network is trained on nine sets of people and tested on the tenth.

    Examples:
        >>> plan = facepairs.make_plan("difference,siamese-small", folds="1-3")
        >>> facepairs.crossval("lfw/lfw-deepfunneled", "lfw", "view2", plan).results.methods

    Args:
        data: LFW's folder of `Person_Name/photo.jpg`.
        lists: Folder of LFW's people.txt and pairs.txt.
        out: Folder for one run folder per fold, and the results.
        plan: Methods, their settings and folds, from `make_plan`.
        resume: Continue in `out`; finished folds stay.
        options: Messages and progress; nothing else of it is used.

    Raises:
        BadData: A photo or a list cannot be used.
        BadRun: `out` holds something already, or was made with other settings or images.
        MissingExtra: The packages for training are not installed.
    """
    require_extras(["train"], "facepairs.crossval")
    folder, place, log = Path(data), Path(out), options.log
    check_place(place, folder, resume, MARKS)
    check_unlocked(place)
    require_room_to_train()
    finding = options.progress("finding faces")
    view, photos = prepare_view2(folder, Path(lists), plan.folds, plan.align, log, finding)
    with options.starting():
        from facepairs.training.view2.crossval import crossval as run

    return run(view, photos, plan, place, resume, log, options.progress)
