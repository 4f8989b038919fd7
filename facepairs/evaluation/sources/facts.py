"""What a verifier costs, and where it comes from: beside its figures when several are compared."""

import time
from dataclasses import dataclass

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.verification.loading import Model
from facepairs.verification.verifier import Verifier

TIMED = 7


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is known of a verifier beside its errors; None where nothing is.

    Attributes:
        network_ms: CPU time of the network for one face on this machine, in milliseconds. Finding
            the face is not in it.
        network_mb: Size of the network's file, in 10⁶ bytes.
        licence: Of the weights.
        training_data: On what it was trained.
    """

    network_ms: float | None = None
    network_mb: float | None = None
    licence: str | None = None
    training_data: str | None = None


def model_facts(model: Model) -> ModelFacts:
    """Time a model's network, and return what its description says."""
    licence, training_data = _described(model)
    return ModelFacts(
        network_ms=_network_ms(Verifier(model, threads=1)),
        network_mb=model.network_path.stat().st_size / 1e6,
        licence=licence,
        training_data=training_data,
    )


def _network_ms(verifier: Verifier) -> float:
    side = verifier.bundle.framing.crop_px
    crop = np.random.default_rng(0).integers(0, 256, (1, side, side, 3), np.uint8)
    embeds = verifier.bundle.kind == "embedding"
    start = 0.0
    for call in range(1 + TIMED):
        if call == 1:  # the first one is slower
            start = time.thread_time()
        if embeds:
            verifier.scorer.embed(crop)
        else:
            verifier.scorer.score_pairs(crop, crop)
    elapsed_s = time.thread_time() - start
    return 1000 * elapsed_s / TIMED / (1 if embeds else 2)  # a pair shows two faces


def _described(model: Model) -> tuple[str | None, str | None]:
    """Return licence and training data."""
    if not isinstance(model, Bundle):
        return model.licence, model.trained_with
    trained = model.training
    counted = f"{trained.images or 0:,} photos of {trained.people or 0:,} people"
    return model.weights_licence, trained.data or (counted if trained.images else None)
