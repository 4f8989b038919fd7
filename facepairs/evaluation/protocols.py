"""Which pairs verifiers are measured and calibrated on."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.model import Model
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_pairs
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.published_pairs import READERS, read_published
from facepairs.data.sampler import distinct_impostors, distinct_pairs
from facepairs.errors import BadConfig, NotEnough
from facepairs.photos.photo import read_image_file
from facepairs.support import console
from facepairs.support.words import counted

HELDOUT_PAIRS = 6_000
HELDOUT_SEED = 0
IMPOSTORS = 30_000  # a tenth of them look alike, which suffices for an FMR of .001
MOST_IMPOSTORS = 300_000  # of many people, as large galleries need rarer errors
PROTOCOLS = ("heldout", "view1")
LISTS = {
    "view1": "View 1, pairsDevTest.txt",
    "view2": "View 2, pairs.txt",
    "xqlfw": "XQLFW, xqlfw_pairs.txt",
    "calfw": "CALFW, pairs_CALFW.txt",
    "cplfw": "CPLFW, pairs_CPLFW.txt",
    "agedb-30": "AgeDB-30, 04_FINAL_protocol_30_years.mat",
    "cfp-fp": "CFP-FP, Split/FP",
}
FOLDED = {*LISTS} - {"view1"}  # where each fold's threshold comes from the others


@dataclass(frozen=True, eq=False)
class PairSelection:
    """Pairs of an index to be scored.

    Attributes:
        index: The photos.
        pairs: The pairs.
        source: Where they come from: a protocol or a file.
        protocol: Its name, "" for the pairs of a CSV file.
        people_left_out: People on whom a model was trained or calibrated.
        missing_pairs: Pairs of an official list that were left out because photos are missing.
    """

    index: FaceIndex
    pairs: PairList
    source: str
    protocol: str
    people_left_out: int = 0
    missing_pairs: int = 0


def choose_pairs(
    models: Sequence[Model],
    data: Path,
    protocol: str | None = None,
    lists: Path | None = None,
    pairs_csv: Path | None = None,
) -> PairSelection:
    """Return the pairs that all models are to score.

    Args:
        models: Bundles and external embedders.
        data: Folder of photos, Person_Name/photo.jpg.
        protocol: `heldout` (people of `data` on whom no bundle was trained or calibrated), a key
            of LISTS, or by default the protocol that the bundles were trained under, or else
            `heldout`. `view2` is for external embedders only.
        lists: Folder of the official lists; pairs whose photos are missing are left out.
        pairs_csv: A file with the pairs; replaces the protocol.

    Raises:
        BadConfig: The protocol is unknown, or not possible with these models.
        BadData: A list cannot be read.
        NotEnough: Too few people are unknown to the bundles.
    """
    protocol = _choose_protocol(models, protocol)
    source = LISTS.get(protocol, "")
    if source and Path(source.split()[-1]).name in READERS and pairs_csv is None:
        path = list_path(lists, source.split()[-1])
        index, pairs, missing = read_published(path, data)
        return PairSelection(index, pairs, source, protocol, missing_pairs=missing)
    index = FaceIndex.scan(data)
    if pairs_csv is not None:
        listed = leave_out_copies(index, read_pairs_csv(pairs_csv, index))
        return PairSelection(index, listed, str(pairs_csv), "")
    if source:
        path = list_path(lists, source.split()[-1])
        pairs, missing = read_pairs(path, index, skip_missing=True)
        return PairSelection(index, pairs, source, protocol, missing_pairs=missing)
    known = np.logical_or.reduce(
        [model.origin.identities.knows(list(index.people)) for model in models]
    )
    people = np.flatnonzero(~known)
    try:
        pairs = distinct_pairs(index.first, people, HELDOUT_PAIRS, HELDOUT_SEED)
    except NotEnough:
        raise NotEnough(
            f"{data}: {len(people):,} of {len(known):,} people are unknown to the measured models, "
            f"{_lacking(index, people)}; measure on other people, or list the pairs",
            "pairs",
        ) from None
    pairs = add_impostors_for(models, index, pairs)
    pairs = leave_out_copies(index, pairs)
    source = f"people of {data.absolute().name}/"
    if all(model.origin.lists_training for model in models):
        know = "models do" if models[1:] else "model does"
        source = f"people whose folder names the {know} not know"
    return PairSelection(index, pairs, source, protocol, people_left_out=int(known.sum()))


def _lacking(index: FaceIndex, people: npt.NDArray[np.integer]) -> str:
    """Return why some people form no genuine or no impostor pairs."""
    if len(people) > 1 and not (index.image_counts[people] > 1).any():
        return "but none of them has two photos, which a genuine pair needs"
    return "too few for genuine and impostor pairs"


def _choose_protocol(models: Sequence[Model], wanted: str | None) -> str:
    """Return the protocol to follow; a single bundle cannot be measured by View 2's ten folds."""
    trained_under = {model.origin.protocol for model in models if model.origin.protocol}
    protocol = wanted or "heldout"
    if not wanted and len(trained_under) == 1 and trained_under <= set(PROTOCOLS):
        protocol = trained_under.pop()
    if protocol not in ("heldout", *LISTS):
        known = ", ".join(("heldout", *LISTS))
        raise BadConfig(f"protocol {protocol!r} is unknown; use one of {known}", "protocol")
    if protocol == "view2" and trained_under:
        raise BadConfig(
            "View 2 needs a network for each of its ten folds, a bundle has one; run crossval, or "
            "choose another protocol",
            "protocol",
        )
    return protocol


def add_impostors_for(models: Sequence[Model], index: FaceIndex, pairs: PairList) -> PairList:
    """Add impostor pairs as `add_impostors` does, unless a network has to score each of them."""
    if all(model.network.embeds for model in models):
        return add_impostors(index, pairs)
    return pairs


def add_impostors(index: FaceIndex, pairs: PairList, count: int | None = None) -> PairList:
    """Return the genuine pairs of `pairs` and many impostor pairs of the photos in it.

    With an embedding network they cost next to nothing, and rare errors need many of them.

    Args:
        index: The photos.
        pairs: Pairs of at least two people.
        count: How many, or fewer where fewer exist; None for one of every two people, but from
            30,000 to 300,000.
    """
    images = pairs.images()  # in the order of people, as the index has them
    first = np.append(np.unique(index.person_of[images], return_index=True)[1], len(images)).astype(
        np.int64
    )
    people = len(first) - 1
    if count is None:
        count = min(max(IMPOSTORS, people * (people - 1) // 2), MOST_IMPOSTORS)
    drawn = distinct_impostors(first, np.arange(people), count, seed=0)
    genuine = pairs.where(pairs.genuine)
    return PairList.of(
        np.concatenate([genuine.left, images[drawn.left]]),
        np.concatenate([genuine.right, images[drawn.right]]),
        np.repeat([True, False], [len(genuine), len(drawn)]),
    )


def leave_out_copies(index: FaceIndex, pairs: PairList) -> PairList:
    """Drop pairs of a file and its copy, and log how many.

    They count neither as genuine nor as impostor pairs.
    """
    left, right = pairs.left, pairs.right
    copies = index.sizes[left] == index.sizes[right]
    images = np.unique(np.concatenate([left[copies], right[copies]])).tolist()
    content = {image: _content(index, image) for image in images}
    copies[copies] = [
        content[one] == content[other]
        for one, other in zip(left[copies].tolist(), right[copies].tolist(), strict=True)
    ]
    if copies.any():
        first = int(np.flatnonzero(copies)[0])
        names = [index.name(int(side[first])) for side in (pairs.left, pairs.right)]
        console.log(
            f"warning: left out: {counted(int(copies.sum()), 'pair')} of identical files, such as "
            f"{' and '.join(names)}"
        )
    return pairs.where(~copies)


def _content(index: FaceIndex, image: int) -> str:
    """Return a key that copies of a photo share: the SHA-256 of its file."""
    try:
        return hashlib.sha256(read_image_file(index.path(image))).hexdigest()
    except OSError:  # whoever reads the photos says what is wrong
        return index.name(image)
