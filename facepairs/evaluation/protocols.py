"""Which pairs verifiers are measured on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.model import Model
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_present_pairs
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, NotEnough
from facepairs.evaluation.pair_scores import IMPOSTORS, add_impostors_for, leave_out_copies

HELDOUT_PAIRS = 6_000
HELDOUT_SEED = 0
PROTOCOLS = ("heldout", "view1")
LISTS = {"view1": "View 1, pairsDevTest.txt", "view2": "View 2, pairs.txt"}


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
    skip_missing: bool = False,
) -> PairSelection:
    """Return the pairs that all models are to score.

    Args:
        models: Bundles and external embedders.
        data: Folder of photos, Person_Name/photo.jpg.
        protocol: `heldout` (people of `data` on whom no bundle was trained or calibrated), `view1`
            (pairsDevTest.txt) or, for external embedders only, `view2` (pairs.txt). By default the
            protocol that the bundles were trained under, or else `heldout`.
        lists: Folder of the official LFW lists.
        pairs_csv: A file with the pairs; replaces the protocol.
        skip_missing: Leave out pairs of an official list whose photos are missing.

    Raises:
        BadConfig: The protocol is unknown, or not possible with these models.
        BadData: A list cannot be read.
        NotEnough: Too few people are unknown to the bundles.
    """
    index = FaceIndex.scan(data)
    protocol = _choose_protocol(models, protocol)
    if pairs_csv is not None:
        listed = leave_out_copies(index, read_pairs_csv(pairs_csv, index))
        return PairSelection(index, listed, str(pairs_csv), "")
    if protocol in LISTS:
        source = LISTS[protocol]
        path = list_path(lists, source.split()[-1])
        pairs, missing = read_present_pairs(path, index, skip_missing)
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
    pairs = add_impostors_for(models, index, pairs, count=IMPOSTORS)
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
    if protocol not in (*PROTOCOLS, "view2"):
        known = ", ".join((*PROTOCOLS, "view2"))
        raise BadConfig(f"protocol {protocol!r} is unknown; use one of {known}", "protocol")
    if protocol == "view2" and trained_under:
        raise BadConfig(
            "View 2 needs a network for each of its ten folds, a bundle has one; run crossval, or "
            "choose another protocol",
            "protocol",
        )
    return protocol
