"""Choose the people that a training learns from, and find the faces in their photos.

Does not import TensorFlow, so mistakes are reported before it is loaded.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.choices import Store
from facepairs.config import Settings
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_people
from facepairs.data.split import PeopleSplit, split_people
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.photos.crop import CropPlan
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.photo_table import photo_records, plan_crops, unusable_photos
from facepairs.pipeline.records.manifest import read_manifest
from facepairs.support import console
from facepairs.support.words import command_line, counted

FEW_PEOPLE = 30  # at which an error rate of nothing may be 12 %
UNREADABLE = ("not_image", "unreadable", "unsupported")


def usable_photos(
    index: FaceIndex, config: Settings, fit_faces: bool
) -> tuple[FaceIndex, CropPlan]:
    """Inspect every photo of an index once; return the usable ones, and how they are cropped.

    Args:
        index: The photos.
        config: The training's settings.
        fit_faces: Of several faces use the one that fits the folder, not the most prominent one.

    Raises:
        BadData: A photo cannot be read or shows no face, and `config.skip_bad` is false; names the
            first.
    """
    index, records = keep_usable(index, list(photo_records(index, config.align)), config)
    numbers: dict[int, int] = {}
    if fit_faces and config.align == "landmarks":
        from facepairs.verification.verifier import subject_faces  # needs ONNX Runtime

        subjects = subject_faces(index, range(len(index)), dict(enumerate(records)))
        numbers = subjects.numbers
        if numbers:
            console.log(subjects.describe())
    return index, plan_crops(records, config.recipe.crop_spec, config.align, numbers)


def keep_usable(
    index: FaceIndex, records: list[PhotoRecord], config: Settings
) -> tuple[FaceIndex, list[PhotoRecord]]:
    """Return the usable photos of an index, and their records.

    Args:
        index: The photos.
        records: One of each.
        config: The training's settings.

    Raises:
        BadData: As `usable_photos`.
    """
    index = replace(index, content=np.array([record.content for record in records], np.int64))
    unusable = unusable_photos(records, config.align)
    problems = [f"{index.path(image)}: {reason}" for image, reason in unusable.items()]
    problems += [
        f"{index.root / path}: not an image that can be read"
        for path, reason in index.skipped
        if reason in UNREADABLE and "/" in path
    ]
    if problems and not config.skip_bad:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise BadData(
            f"{problems[0]}{more}; list all of them with: "
            f"{command_line('data', 'check', index.root)}, or leave them out",
            "skip_bad",
        )
    if problems:
        console.log(f"{counted(len(problems), 'unusable file')} skipped")
        index = index.without(unusable)
        records = [record for image, record in enumerate(records) if image not in unusable]
    return index, records


def prepare(
    data: Path, config: Settings, store: Store = "auto"
) -> tuple[FaceIndex, CropPlan, PeopleSplit]:
    """Index a folder, find the faces in its photos, and split its people as the settings ask.

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        config: The training's settings.
        store: Where images will come from.

    Raises:
        BadConfig: The store does not go with the settings.
        BadData: A photo cannot be used and `config.skip_bad` is false.
        NotEnough: There are too few people to train on and to calibrate with.
    """
    # Mistakes are reported before all photos are searched.
    if store == "tfrecord" and not config.pair_cache:
        raise BadConfig("store tfrecord needs the folder of a pair cache", "pair_cache")
    if config.pair_cache:
        if store not in ("auto", "tfrecord"):
            raise BadConfig(f"store {store} cannot use a pair cache; leave one out", "store")
        read_manifest(Path(config.pair_cache))
    index = FaceIndex.scan(data)
    choose_people(index, config)
    index, plan = usable_photos(index, config, fit_faces=not config.lists)
    return index, plan, choose_people(index, config)


def describe_few_people(split: PeopleSplit) -> str:
    """Warn in words of too few people to measure errors; "" where there are enough."""
    parts = {"calibration": len(split.calibration), "test": len(split.test)}
    few = [f"{count} {name} people" for name, count in parts.items() if 0 < count < FEW_PEOPLE]
    if not few:
        return ""
    return (
        f"too few people to measure errors well ({', '.join(few)}); add people, or calibrate the "
        "included model with facepairs calibrate"
    )


def choose_people(index: FaceIndex, config: Settings) -> PeopleSplit:
    """Split the people; where `config.lists` asks for View 1, the test people are LFW's own.

    People on whom the bundle of `config.init` was trained are only trained on again: its weights
    depend on their photos, so neither a threshold nor a figure may come from them.

    Raises:
        NotEnough: There are too few people to train on and to calibrate with.
    """
    people, test_share = np.arange(len(index.people)), config.test_share
    if config.lists:
        path = list_path(Path(config.lists), "peopleDevTrain.txt")
        (people,) = read_people(path, index, config.skip_bad)
        test_share = 0.0
    known = np.zeros(len(people), bool)
    if config.start:
        names = [index.people[int(p)] for p in people]
        known = config.start.identities.trained_with(names)
    try:
        split = split_people(
            index,
            people[~known],
            config.seed,
            config.calibration_share,
            test_share,
            config.validation_share,
        )
    except NotEnough as error:
        if not known.any():
            raise
        raise NotEnough(
            f"{error}; {int(known.sum())} more people are those whom the bundle {config.init} was "
            "trained on, so they cannot be held out"
        ) from None
    return replace(split, training=np.union1d(split.training, people[known]))
