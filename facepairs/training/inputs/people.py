"""Choose the people that a training learns from, and find the faces in their photos.

Does not import TensorFlow, so mistakes are reported before it is loaded.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.choices import Align, Store
from facepairs.config import Settings
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_people
from facepairs.data.split import PeopleSplit, split_people
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.photos.crop import CropPlan
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.photo_table import PhotoTable, photo_records
from facepairs.pipeline.records.manifest import read_manifest
from facepairs.support import console
from facepairs.support.words import command_line, counted

FEW_PEOPLE = 30  # at which an error rate of nothing may be 12 %
UNREADABLE = ("not_image", "unreadable", "unsupported")


def usable_photos(
    index: FaceIndex, align: Align, skip_bad: bool, fit_faces: bool = False
) -> tuple[FaceIndex, PhotoTable]:
    """Inspect every photo of an index once, and return the usable ones.

    Args:
        index: The photos.
        align: With `landmarks`, a photo must show a face.
        skip_bad: Leave unusable photos out instead of raising.
        fit_faces: Of several faces use the one that fits the folder, not the most prominent one.

    Raises:
        BadData: A photo cannot be read or shows no face, and `skip_bad` is false; names the first.
    """
    records = list(photo_records(index, align))
    table = PhotoTable.of(records, align)
    usable = [record for image, record in enumerate(records) if image not in table.problems]
    index, table = choose_usable(index, table, skip_bad)
    if fit_faces and align == "landmarks":
        table = _with_subjects(index, table, usable)
    return index, table


def _with_subjects(index: FaceIndex, table: PhotoTable, records: list[PhotoRecord]) -> PhotoTable:
    """Return the table with the landmarks of the faces that fit their folders."""
    from facepairs.verification.verifier import subject_faces  # needs ONNX Runtime

    subjects = subject_faces(index, range(len(index)), dict(enumerate(records)))
    if not subjects.numbers or table.landmarks is None:
        return table
    console.log(subjects.describe())
    landmarks = table.landmarks.copy()
    for image, number in subjects.numbers.items():
        landmarks[image] = records[image].usable[number - 1].landmarks
    return replace(table, landmarks=landmarks)


def choose_usable(
    index: FaceIndex, table: PhotoTable, skip_bad: bool
) -> tuple[FaceIndex, PhotoTable]:
    """Return the usable photos of an index whose photos were inspected.

    Args:
        index: The photos.
        table: What was found in them.
        skip_bad: Leave unusable photos out instead of raising.

    Raises:
        BadData: A photo is unusable, and `skip_bad` is false; names the first.
    """
    index = replace(index, content=table.content)
    problems = [f"{index.path(k)}: {reason}" for k, (_, reason) in sorted(table.problems.items())]
    problems += [
        f"{index.root / path}: not an image that can be read"
        for path, reason in index.skipped
        if reason in UNREADABLE and "/" in path
    ]
    if problems and not skip_bad:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise BadData(
            f"{problems[0]}{more}; list all of them with: "
            f"{command_line('data', 'check', index.root)}, or leave them out",
            "skip_bad",
        )
    if problems:
        console.log(f"{counted(len(problems), 'unusable file')} skipped")
        index, table = index.without(table.problems), table.without(table.problems)
    return index, table


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
    index, table = usable_photos(index, config.align, config.skip_bad, fit_faces=not config.lists)
    return (
        index,
        table.crop_plan(config.recipe.crop_spec, config.align),
        choose_people(index, config),
    )


def describe_few_people(split: PeopleSplit) -> str:
    """Say that figures of a few people mean little; "" where they are enough."""
    parts = {"calibration": len(split.calibration), "test": len(split.test)}
    few = [f"{count} {name} people" for name, count in parts.items() if 0 < count < FEW_PEOPLE]
    if not few:
        return ""
    return (
        f"few people ({', '.join(few)}), so figures mean little; add people, or calibrate the "
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
