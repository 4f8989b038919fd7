"""Who is trained on, who calibrates, and which of their images can be read.

Nothing here needs TensorFlow, so that a mistake is told before it is loaded.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.beam.listing import index_place
from facepairs.beam.places import Place
from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.data.doctor import unreadable_images
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_people
from facepairs.data.split import PeopleSplit, split_people
from facepairs.errors import BadData, NotEnough
from facepairs.support.parallel import Run, in_order

UNREADABLE = ("unsupported", "not_image", "no_permission", "special_file", "symlink_loop")
Say = Callable[[str], None]
Tick = Callable[[int, int], None]


def readable_index(
    data: Place, skip_bad: bool, say: Say, progress: Tick | None, run: Run = in_order
) -> FaceIndex:
    """Index a folder and decode every image once, where `run` says (default: in threads).

    Raises BadData that names the first unreadable image, or with `skip_bad` leaves them out and
    says how many.
    """
    index = index_place(data)
    left_out = [path for path, reason in index.skipped if reason in UNREADABLE and "/" in path]
    bad = unreadable_images(index, progress, run)
    count = len(left_out) + len(bad)
    if not count:
        return index
    if not skip_bad:
        first = (
            f"{index.path(bad[0][0])}: {bad[0][1]}"
            if bad
            else f"{data / left_out[0]}: not a JPEG, PNG or BMP image that can be read"
        )
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise BadData(
            f"{first}{more}; see them all with: facepairs data check {data}, or go on without them "
            "with --skip-bad"
        )
    say(f"{count} unreadable or unsupported files skipped")
    return index.without(image for image, _ in bad)


def prepare(
    data: Path, config: TrainConfig, say: Say, progress: Tick | None = None
) -> tuple[FaceIndex, PeopleSplit]:
    """Index and check a folder and split its people, as a configuration asks."""
    index = readable_index(data, config.skip_bad, say, progress)
    return index, choose_people(index, config)


def choose_people(index: FaceIndex, config: TrainConfig) -> PeopleSplit:
    """Split the people as the protocol says; under view1 the test people are LFW's own.

    People whom the bundle of `init` knows are trained on and nothing else: its weights have seen
    them, so that neither a threshold nor a figure may come from them.
    """
    people, test_share = np.arange(len(index.people)), config.test_share
    if config.protocol == "view1":
        lists = Path(config.lists) if config.lists else None
        (people,) = read_people(list_path(lists, "peopleDevTrain.txt"), index)
        test_share = 0.0
    known = np.zeros(len(people), bool)
    if config.init:
        known = Bundle.open(config.init).knows([index.people[int(p)] for p in people])
    try:
        split = split_people(
            index, people[~known], config.seed, config.calibration_share, test_share
        )
    except NotEnough as error:
        if not known.any():
            raise
        raise NotEnough(
            f"{error}; {int(known.sum())} more are known to the bundle {config.init}, which can "
            "only be trained on"
        ) from None
    return replace(split, training=np.union1d(split.training, people[known]))
