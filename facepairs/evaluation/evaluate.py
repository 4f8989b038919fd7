"""`evaluate`: a bundle on pairs of people it does not know, or a scores file alone."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList, read_pairs_csv
from facepairs.data.protocol import list_path, read_pairs
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.scores import Scores, read_scores, write_scores
from facepairs.evaluation.summary import summarise
from facepairs.verification.bundle import Bundle
from facepairs.verification.verifier import Verifier

HELDOUT_PAIRS = 6_000
PROTOCOLS = ("heldout", "view1")


@dataclass(frozen=True)
class Evaluation:
    """A summary (JSON-ready) and what people should be told besides."""

    summary: dict[str, Any]
    warnings: list[str]


def evaluate_bundle(
    path: Path | str,
    data: Path,
    protocol: str | None = None,
    lists: Path | None = None,
    pairs_csv: Path | None = None,
    scores_out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Score pairs with a bundle and sum up at the bundle's own threshold.

    `pairs_csv` names the pairs; otherwise `protocol` does (`heldout`: people of `data` that the
    bundle neither trained nor calibrated on; `view1`: pairsDevTest.txt), by default the one that
    the bundle was trained under, else `heldout`. Raises BadData where a protocol's people are known
    to the bundle.
    """
    bundle = Bundle.open(path)
    index = FaceIndex.scan(data)
    own = bundle.training.get("protocol")
    protocol = protocol or (own if own in PROTOCOLS else "heldout")
    if protocol not in PROTOCOLS:
        raise BadData(f"protocol {protocol!r} is unknown; use one of {', '.join(PROTOCOLS)}")
    known = bundle.knows(list(index.people))
    if pairs_csv is not None:
        source, pairs = str(pairs_csv), read_pairs_csv(pairs_csv, index)
    elif protocol == "view1":
        source = "View 1, pairsDevTest.txt"
        pairs = read_pairs(list_path(lists, "pairsDevTest.txt"), index)
    else:
        source, pairs = "held-out people", _heldout(index, known, data)
    leaked = int((known[index.person_of[pairs.left]] | known[index.person_of[pairs.right]]).sum())
    warnings = []
    if leaked:
        line = (
            f"{leaked:,} of {len(pairs):,} pairs show people that {path} was trained or "
            "calibrated on"
        )
        if pairs_csv is None:
            raise BadData(f"{line}: these figures would flatter; train with --protocol {protocol}")
        warnings.append(f"{line}: the figures flatter")
    score = Verifier(bundle).score_images(
        [index.path(i) for i in range(len(index))], pairs.left, pairs.right, progress
    )
    if scores_out is not None:
        write_scores(scores_out, _scores(index, pairs, score))
    summary = summarise(
        pairs.genuine,
        score,
        bundle.threshold,
        calibration=bundle.calibration,
        threshold_source="the bundle's own",
    )
    people = np.unique(index.person_of[pairs.images()])
    summary |= {
        "pairs": source,
        "people": len(people),
        "pairs_with_known_people": leaked,
        "model": bundle.model,
        "bundle": str(path),
    }
    return Evaluation(summary, warnings)


def _heldout(index: FaceIndex, known: np.ndarray, data: Path) -> PairList:
    people = np.flatnonzero(~known)
    try:
        return distinct_pairs(index.first, people, HELDOUT_PAIRS, seed=0)
    except NotEnough as error:
        raise NotEnough(
            f"{data}: {len(people)} people are unknown to the bundle: {error}, or give --pairs"
        ) from None


def _scores(index: FaceIndex, pairs: PairList, score: np.ndarray) -> Scores:
    left, right = ([index.name(int(i)) for i in side] for side in (pairs.left, pairs.right))
    return Scores(left, right, pairs.genuine, pairs.fold, score.astype(np.float64))


def evaluate_scores(path: Path, threshold: float | None = None) -> Evaluation:
    """Sum a scores file up, also one that another system made.

    Without a threshold one is chosen for each part of the pairs on the other parts, never on those
    it is reported on.
    """
    scores = read_scores(path)
    summary = summarise(scores.genuine, scores.score, threshold, fold=scores.fold)
    return Evaluation({**summary, "pairs": str(path)}, [])
