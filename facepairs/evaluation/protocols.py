"""Which pairs verifiers are measured on, and that they have not seen the people before."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_pairs
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.metrics import Bools
from facepairs.verification.opening import Model

HELDOUT_PAIRS = 6_000
HELDOUT_SEED = 0
PROTOCOLS = ("heldout", "view1")
LISTS = {"view1": "View 1, pairsDevTest.txt", "view2": "View 2, pairs.txt"}


@dataclass(frozen=True, eq=False)
class Task:
    """Pairs of an index to be scored, and where they come from: `protocol` is "" for a file's."""

    index: FaceIndex
    pairs: PairList
    source: str
    protocol: str

    def facts(self) -> dict[str, Any]:
        """Give what a summary tells of the pairs; ready for JSON."""
        people = np.unique(self.index.person_of[self.pairs.images()])
        return {"pairs": self.source, "people": len(people)}


def choose_pairs(
    models: Sequence[Model],
    data: Path,
    protocol: str | None = None,
    lists: Path | None = None,
    pairs_csv: Path | None = None,
) -> Task:
    """Give the pairs that all models are to score.

    `pairs_csv` names the pairs; otherwise `protocol` does (`heldout`: people of `data` whom no
    bundle trained or calibrated on; `view1`: pairsDevTest.txt; `view2`, for embedders made
    elsewhere alone: pairs.txt), by default the one that the bundles were trained under, else
    `heldout`. Raises BadData for a protocol that is not known, NotEnough for too few people.
    """
    index = FaceIndex.scan(data)
    followed = _protocol(models, protocol)
    if pairs_csv is not None:
        return Task(index, read_pairs_csv(pairs_csv, index), str(pairs_csv), "")
    if followed in LISTS:
        source = LISTS[followed]
        return Task(
            index, read_pairs(list_path(lists, source.split()[-1]), index), source, followed
        )
    known = np.logical_or.reduce([model.knows(list(index.people)) for model in models])
    return Task(index, _heldout(index, known, data), "held-out people", followed)


def _protocol(models: Sequence[Model], wanted: str | None) -> str:
    """Give the protocol to follow; a bundle's weights are those of View 1, and not for View 2."""
    own = {str(model.training.get("protocol")) for model in models if isinstance(model, Bundle)}
    protocol = wanted or (own.pop() if len(own) == 1 and own <= set(PROTOCOLS) else "heldout")
    bundles = any(isinstance(model, Bundle) for model in models)
    known = PROTOCOLS if bundles else (*PROTOCOLS, "view2")
    if protocol not in known:
        raise BadData(f"protocol {protocol!r} is unknown; use one of {', '.join(known)}")
    return protocol


def _heldout(index: FaceIndex, known: Bools, data: Path) -> PairList:
    people = np.flatnonzero(~known)
    try:
        return distinct_pairs(index.first, people, HELDOUT_PAIRS, HELDOUT_SEED)
    except NotEnough as error:
        raise NotEnough(
            f"{data}: {len(people)} people are unknown to the bundle: {error}, or give --pairs"
        ) from None


def leaks(model: Model, path: str, task: Task) -> tuple[int, list[str]]:
    """Count the pairs that show people whom the model has seen, and say so in warnings.

    Raises BadData where the pairs are a protocol's.
    """
    if not isinstance(model, Bundle):
        told = f"nobody can tell whom {model.network} was trained on; it may be these people"
        return 0, [told]
    known, person = model.knows(list(task.index.people)), task.index.person_of
    count = int((known[person[task.pairs.left]] | known[person[task.pairs.right]]).sum())
    if not count:
        return 0, []
    line = (
        f"{count:,} of {len(task.pairs):,} pairs show people that {path} was trained or "
        "calibrated on"
    )
    if task.protocol:
        raise BadData(f"{line}: these figures would flatter; train with --protocol {task.protocol}")
    return count, [f"{line}: the figures flatter"]
