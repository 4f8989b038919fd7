"""Scores of many pairs of photos, each of which is read once.

First `PhotoReader.read` embeds every photo. Then the scores follow. A photo that cannot be used
fails the pairs it is in.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import ScoreArray, Scorer
from facepairs.photos.face_sample import FaceSample
from facepairs.support.parallel import thread_map

CHUNK_PAIRS = 512  # scored at a time
READING = "reading photos"  # the phase that progress shows

Indices = npt.NDArray[np.integer[Any]]


def score_samples(
    scorer: Scorer, samples: Mapping[int, FaceSample], left: Indices, right: Indices
) -> ScoreArray:
    """Score pairs of faces.

    Args:
        scorer: The network.
        samples: The face of each photo, by its number, as `PhotoReader.read` returned it.
        left: integer[N], numbers of photos.
        right: integer[N], the same.

    Returns:
        float32[N], NaN where a photo cannot be used.
    """
    bad = [number for number, sample in samples.items() if sample.error]
    usable = np.flatnonzero(~(np.isin(left, bad) | np.isin(right, bad)))

    def score(rows: Indices) -> ScoreArray:
        sides = ([samples[number] for number in side[rows].tolist()] for side in (left, right))
        return score_faces(scorer, *sides)

    scores = np.full(len(left), np.nan, np.float32)
    chunks = (usable[at : at + CHUNK_PAIRS] for at in range(0, len(usable), CHUNK_PAIRS))
    scores[usable] = np.concatenate([np.zeros(0, np.float32), *thread_map(score, chunks)])
    return scores


def score_faces(
    scorer: Scorer, left: Sequence[FaceSample], right: Sequence[FaceSample]
) -> ScoreArray:
    """Score faces that `PhotoReader.read` returned with others, pair by pair: float32[N]."""
    rows = (
        np.stack([face.embedding for face in side])  # type: ignore[misc]
        for side in (left, right)
    )
    return scorer.compare(*rows)
