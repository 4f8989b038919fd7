"""Choose the people that a training learns from, and check their images.

Does not import TensorFlow, so mistakes are reported before it is loaded.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.data.doctor import unreadable_images
from facepairs.data.index import FaceIndex, ReadFile
from facepairs.data.lfw.lists import list_path, read_people
from facepairs.data.split import PeopleSplit, split_people
from facepairs.errors import BadData, NotEnough
from facepairs.support.parallel import OrderedMap, thread_map
from facepairs.support.progress import MessageCallback, ProgressCallback, ignore_progress

UNREADABLE = (
    "broken_link",
    "no_permission",
    "not_image",
    "special_file",
    "symlink_loop",
    "unsupported",
)


def readable_index(
    data: Path,
    skip_bad: bool,
    log: MessageCallback,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
) -> FaceIndex:
    """Index a folder and decode every image once.

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        skip_bad: Leave unreadable images out instead of raising.
        log: Receives the number of files left out.
        progress: Counts the images decoded.
        ordered_map: Runs the decoding; in threads by default.

    Raises:
        BadData: The folder cannot be indexed, or an image cannot be read and `skip_bad` is false.
    """
    return keep_readable(FaceIndex.scan(data), skip_bad, log, progress, ordered_map)


def keep_readable(
    index: FaceIndex,
    skip_bad: bool,
    log: MessageCallback,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
    read_file: ReadFile | None = None,
) -> FaceIndex:
    """Decode every image of an index once, and return the index of the readable ones.

    Args:
        index: The images to check.
        skip_bad: Leave unreadable images out instead of raising.
        log: Receives the number of files left out.
        progress: Counts the images decoded.
        ordered_map: Runs the decoding; in threads by default.
        read_file: Reads an image by its name; by default from the file below `index.root`.

    Raises:
        BadData: An image cannot be read and `skip_bad` is false; names the first one.
    """
    unsupported = [path for path, reason in index.skipped if reason in UNREADABLE and "/" in path]
    broken = unreadable_images(index, progress, ordered_map, read_file)
    count = len(unsupported) + len(broken)
    if not count:
        return index
    if not skip_bad:
        first = (
            f"{index.path(broken[0][0])}: {broken[0][1]}"
            if broken
            else f"{index.root / unsupported[0]}: not a JPEG, PNG or BMP image that can be read"
        )
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise BadData(
            f"{first}{more}; list all of them with: facepairs data check {index.root}, or leave "
            "them out with --skip-bad"
        )
    log(f"{count} unreadable or unsupported files skipped")
    return index.without(image for image, _ in broken)


def prepare(
    data: Path,
    config: TrainConfig,
    log: MessageCallback,
    progress: ProgressCallback = ignore_progress,
) -> tuple[FaceIndex, PeopleSplit]:
    """Index and check a folder, and split its people as the settings ask.

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        config: The training's settings.
        log: Receives the number of files left out.
        progress: Counts the images decoded.

    Raises:
        BadData: An image cannot be read and `config.skip_bad` is false.
        NotEnough: There are too few people to train on and to calibrate with.
    """
    index = readable_index(data, config.skip_bad, log, progress)
    return index, choose_people(index, config)


def choose_people(index: FaceIndex, config: TrainConfig) -> PeopleSplit:
    """Split the people as the protocol asks; under `view1` the test people are LFW's own.

    People whom the bundle of `config.init` knows are only trained on: its weights depend on their
    photos, so neither a threshold nor a figure may come from them.

    Raises:
        NotEnough: There are too few people to train on and to calibrate with.
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
            f"{error}; {int(known.sum())} more are known to the bundle {config.init} and can only "
            "be trained on"
        ) from None
    return replace(split, training=np.union1d(split.training, people[known]))
