"""Training objectives by name, one short class a file.

Training draws genuine pairs only for a tower, a person once a batch. What is impostor, or
negative, is then another pair's image; the classes say which.
"""

from collections.abc import Callable, Sequence
from typing import Any

from facepairs.models.losses.arcface import ArcFace
from facepairs.models.losses.base import PairLoss
from facepairs.models.losses.binary import BinaryLogit
from facepairs.models.losses.cosface import CosFace
from facepairs.models.losses.cross_entropy import DifferenceCrossEntropy
from facepairs.models.losses.identity import SINGLETONS, IdentityLoss
from facepairs.models.losses.in_batch import InBatchContrastive
from facepairs.models.losses.margin import MarginContrastive
from facepairs.models.losses.supervised import SupervisedContrastive
from facepairs.models.losses.triplet import TripletInBatch

__all__ = [
    "SINGLETONS",
    "ArcFace",
    "BinaryLogit",
    "CosFace",
    "DifferenceCrossEntropy",
    "IdentityLoss",
    "InBatchContrastive",
    "MarginContrastive",
    "PairLoss",
    "SupervisedContrastive",
    "TripletInBatch",
    "build_loss",
]


def build_loss(
    name: str,
    dimensions: int,
    temperature: float = 0.1,
    margin: float = 0.0,
    photos: Sequence[int] = (),
    singletons: str = "classes",
) -> PairLoss:
    """Build an objective on embeddings of so many `dimensions` by name.

    `margin` 0 stands for the loss's own. `photos` int[P], how many each person trained on has, and
    `singletons` are for cosface and arcface. Raises ValueError for another name, or for people that
    cannot be classes; configuration checks the rest.
    """
    given: dict[str, Any] = {"margin": margin} if margin else {}
    people = (photos, dimensions, temperature)
    makers: dict[str, Callable[[], PairLoss]] = {
        "in-batch": lambda: InBatchContrastive(temperature),
        "supervised": lambda: SupervisedContrastive(temperature),
        "margin": lambda: MarginContrastive(**given),
        "triplet": lambda: TripletInBatch(**given),
        "triplet-hard": lambda: TripletInBatch(mining="hard", **given),
        "cross-entropy": lambda: DifferenceCrossEntropy(temperature),
        "cosface": lambda: CosFace(*people, singletons=singletons, **given),
        "arcface": lambda: ArcFace(*people, singletons=singletons, **given),
    }
    if name not in makers:
        raise ValueError(f"loss {name!r}; known: {', '.join(makers)}")
    return makers[name]()
