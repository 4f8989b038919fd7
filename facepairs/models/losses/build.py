"""Build an objective by name."""

from collections.abc import Callable, Sequence
from typing import Any

from facepairs.models.losses.arcface import ArcFace
from facepairs.models.losses.base import PairLoss
from facepairs.models.losses.cosface import CosFace
from facepairs.models.losses.cross_entropy import DifferenceCrossEntropy
from facepairs.models.losses.in_batch import InBatchContrastive
from facepairs.models.losses.margin import MarginContrastive
from facepairs.models.losses.supervised import SupervisedContrastive
from facepairs.models.losses.triplet import TripletInBatch


def build_loss(
    name: str,
    dimensions: int,
    temperature: float = 0.1,
    margin: float | None = None,
    photos: Sequence[int] = (),
    singletons: str = "classes",
) -> PairLoss:
    """Build an objective on embeddings.

    Args:
        name: in-batch, supervised, margin, triplet, triplet-hard, cross-entropy, cosface, arcface.
        dimensions: Length of an embedding.
        temperature: Divides cosines; not for margin and triplet losses.
        margin: The loss's margin; None for its own default.
        photos: int[P], how many photos each training person has; for cosface and arcface.
        singletons: See `IdentityLoss`; for cosface and arcface.

    Raises:
        ValueError: For an unknown name, or when no person can be a class. The configuration checks
            the other arguments.
    """
    margins: dict[str, Any] = {} if margin is None else {"margin": margin}
    identities: dict[str, Any] = {
        "photos": photos,
        "dimensions": dimensions,
        "temperature": temperature,
        "singletons": singletons,
        **margins,
    }
    builders: dict[str, Callable[[], PairLoss]] = {
        "in-batch": lambda: InBatchContrastive(temperature),
        "supervised": lambda: SupervisedContrastive(temperature),
        "margin": lambda: MarginContrastive(**margins),
        "triplet": lambda: TripletInBatch(**margins),
        "triplet-hard": lambda: TripletInBatch(mining="hard", **margins),
        "cross-entropy": lambda: DifferenceCrossEntropy(temperature),
        "cosface": lambda: CosFace(**identities),
        "arcface": lambda: ArcFace(**identities),
    }
    if name not in builders:
        raise ValueError(f"loss {name!r}; known: {', '.join(builders)}")
    return builders[name]()
