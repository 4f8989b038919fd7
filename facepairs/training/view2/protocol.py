"""LFW's View 2: ten sets of people; each set is tested by a network that learned from the others.

Decides who is trained on, calibrated on and tested on in a fold, and checks that no one is in two
of these groups. Does not import TensorFlow.

References:
    Huang, Ramesh, Berg and Learned-Miller, *Labeled Faces in the Wild*, UMass Amherst 07-49, 2007.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.model import Model
from facepairs.config import Settings, TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_pairs, read_people
from facepairs.data.pairs import PairList
from facepairs.data.split import PeopleSplit, split_people
from facepairs.errors import BadConfig, BadData, BadRun
from facepairs.photos.crop import CropPlan
from facepairs.training.inputs.people import usable_photos

NAMED_PEOPLE = 3  # that a message lists
People = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View2:
    """The protocol on one folder.

    Attributes:
        index: The images.
        sets: `sets[k - 1]` are the people of fold k.
        pairs: All pairs; `pairs.fold` counts from 1.
    """

    index: FaceIndex
    sets: tuple[People, ...]
    pairs: PairList

    def select_folds(self, folds: tuple[int, ...]) -> tuple[int, ...]:
        """Return `folds`, or all folds when it is empty.

        Raises:
            BadConfig: The lists do not have one of them.
        """
        count = len(self.sets)
        for fold in folds:
            if not 1 <= fold <= count:
                raise BadConfig(f"no fold {fold}; the lists have folds 1 to {count}", "fold")
        return folds or tuple(range(1, count + 1))

    def pairs_of(self, fold: int) -> PairList:
        """Return the pairs of a fold."""
        return self.pairs.where(self.pairs.fold == fold)

    def people_of(self, fold: int) -> People:
        """Return the people unknown to a fold's network: those of its set and of its pairs."""
        shown = self.index.person_of[self.pairs_of(fold).images()]
        return np.union1d(self.sets[fold - 1], shown)

    def people_outside(self, fold: int) -> People:
        """Return the people of the other sets."""
        return np.concatenate([s for k, s in enumerate(self.sets, 1) if k != fold])

    def split(self, fold: int, config: TrainConfig) -> PeopleSplit:
        """Split the other sets' people for training and calibration; the fold's are the test.

        Raises:
            NotEnough: They are too few to form the pairs.
        """
        shares = config.calibration_share, 0.0, config.validation_share
        split = split_people(self.index, self.people_outside(fold), config.seed, *shares)
        return replace(split, test=self.people_of(fold))


def prepare_view2(
    data: Path,
    lists: Path,
    folds: tuple[int, ...],
    config: Settings,
) -> tuple[View2, CropPlan]:
    """Index a folder, find the faces in its photos, and read the two lists.

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        lists: Folder of `people.txt` and `pairs.txt`.
        folds: The folds to run.
        config: The settings.

    Raises:
        BadData: An image is missing or cannot be read, or a line of a list cannot be used.
        BadConfig: The lists do not have one of the folds.
    """
    view = read_view2(FaceIndex.scan(data), lists)
    view.select_folds(folds)
    index, crops = usable_photos(view.index, config, fit_faces=False)  # the same photos, all usable
    return replace(view, index=index), crops


def read_view2(index: FaceIndex, lists: Path) -> View2:
    """Read `people.txt` and `pairs.txt`.

    Args:
        index: The images.
        lists: Folder of the two lists.

    Raises:
        BadData: The lists contradict each other or the images.
    """
    people_path, pairs_path = list_path(lists, "people.txt"), list_path(lists, "pairs.txt")
    sets, pairs = read_people(people_path, index), read_pairs(pairs_path, index)[0]
    count = int(pairs.fold.max())
    if count < 2 or len(sets) != count:
        raise BadData(
            f"{people_path} has {len(sets)} sets and {pairs_path} {count} folds; View 2 needs as "
            "many sets as folds, two or more: download the official lists again"
        )
    view = View2(index, tuple(sets), pairs)
    for fold in range(1, count + 1):
        for person in np.intersect1d(view.people_of(fold), view.people_outside(fold)).tolist():
            raise BadData(
                f"{people_path} and {pairs_path}: {index.people[person]} is in fold {fold} and in "
                "another one; download the official lists again"
            )
    return view


def check_unknown(model: Model, index: FaceIndex, people: People, fold: int) -> None:
    """Check that a model was neither trained nor calibrated on some people.

    Args:
        model: The model of a fold.
        index: The images.
        people: int64[P], the people of the fold.
        fold: The fold's number, for the message.

    Raises:
        BadRun: It was, on at least one of them.
    """
    names = [index.people[int(person)] for person in people]
    known = [
        name
        for name, knows in zip(names, model.origin.identities.knows(names), strict=True)
        if knows
    ]
    if known:
        more = ", …" if len(known) > NAMED_PEOPLE else ""
        raise BadRun(
            f"{model.place}: was trained or calibrated on {len(known)} of the {len(names)} "
            f"people of fold {fold} ({', '.join(known[:NAMED_PEOPLE])}{more}), so its figures "
            f"would be too good; remove {model.files.folder.parent} and run that fold again"
        )
