"""Pairs that show people on whom a model was trained or calibrated: its figures are too good."""

from pathlib import Path

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.identities import hashed_in
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.evaluation.protocols import LISTS, PairSelection
from facepairs.evaluation.scores import ScoreTable
from facepairs.verification.loading import Model
from facepairs.verification.provenance import Provenance

Known = tuple[int | None, list[str]]
"""The number of pairs that show people whom a model knows, None where it cannot be known, and
warnings."""


def known_in_selection(model: Model, path: str, selection: PairSelection) -> Known:
    """Count the pairs of an index that show people whom a model knows.

    Args:
        model: A bundle or an external embedder.
        path: Of the model, for messages.
        selection: The pairs.

    Raises:
        BadData: There are such pairs, although the pairs are those of a protocol.
    """
    names, person = list(selection.index.people), selection.index.person_of
    mapped = isinstance(model, Bundle) and model.map is not None
    # View 2 takes its thresholds from its own folds: calibration alone changes nothing there.
    view2 = selection.protocol == "view2"
    known = model.trained_on(names) if view2 and not mapped else model.knows(names)
    pairs = selection.pairs
    of_pair = known[person[pairs.left]] | known[person[pairs.right]]
    if not model.lists_training and (view2 or not of_pair.any()):
        return None, [describe_unknown_training(path)]
    return _judge(int(of_pair.sum()), len(pairs), path, selection.protocol)


def known_in_file(scores: ScoreTable, known_by: Provenance | None, path: Path) -> Known:
    """Count the pairs of a scores file that show people whom its model knows.

    Args:
        scores: The pairs; people are told by the folders of their photos.
        known_by: What made the scores, None where that is not known.
        path: The file, for messages.

    Raises:
        BadData: As `known_in_selection`.
    """
    if known_by is None:
        return None, [
            f"{path}: of unknown origin (no {path.name}.json beside it): the people of the pairs "
            "may be those that its model was trained on"
        ]
    if known_by.identities is None:
        one_network = known_by.embedder_sha256 is not None
        return None, [describe_unknown_training(known_by.model)] if one_network else []
    hashes = known_by.identities.training
    if known_by.protocol != "view2":  # it was looked at when they were scored
        hashes |= known_by.identities.calibration
    sides = np.array([[person_name(name) for name in side] for side in scores.sides], object)
    people, numbers = np.unique(sides.astype(str), return_inverse=True)
    if not people[0]:
        return None, [
            f"{path}: photos are not named Person_Name/photo.jpg, so their people may be those "
            f"that {known_by.model} was trained on"
        ]
    known = hashed_in(people.tolist(), hashes)[numbers.reshape(2, -1)]
    return _judge(int(known.any(axis=0).sum()), len(scores), known_by.model, known_by.protocol)


def describe_unknown_training(model: str) -> str:
    """Return a warning about a model that does not list the people of its training."""
    return f"the training people of {model} are unknown; they may be those of these pairs"


def _judge(count: int, pairs: int, model: str, protocol: str | None) -> Known:
    """Return the count and a warning; raise BadData where the pairs are those of a protocol."""
    if not count:
        return 0, []
    line = f"{count:,} of {pairs:,} pairs show people that {model} was trained or calibrated on"
    if protocol:
        advice = f", or train by protocol {protocol}" if protocol in LISTS else ""
        raise BadData(f"{line}, so the figures would be too good; measure on other people{advice}")
    return count, [f"{line}: the figures are too good; measure on other people"]
