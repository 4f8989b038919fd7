"""Photos that probably show another person than the rest of their folder.

The default model compares every photo with others of its folder. A photo stands out where it is
unlike them although they are alike among themselves.
"""

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.data.index import FaceIndex
from facepairs.verification.scorer import ScoreArray, pair_scores

MIN_PHOTOS = 3  # of two that differ, neither is the wrong one
CHUNK_PAIRS = 4096  # scored at once
MAX_OTHERS = 20  # photos of its folder that a photo is compared with

# Chosen on the 90 folders of View 1 training people (LFW) whom a model trained on the others had
# not seen: with 3 % of the photos exchanged for other people's, 84 % of those are found, and 88 %
# of the photos found are such. On View 1's 272 folders of test people: 79 % and 85 %.
OTHERS_WEIGHT = 0.25
STANDS_OUT = 3.0

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def find_mislabelled(index: FaceIndex, embeddings: ScoreArray, calibration: Calibration) -> Indices:
    """Return the photos that probably show another person than the rest of their folder.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
        calibration: Turns scores of the embeddings into probabilities.

    Returns:
        Numbers of photos, rising.
    """
    left, right = pairs_within_folders(index, np.isfinite(embeddings[:, 0]))
    score = np.zeros(len(left))
    for start in range(0, len(left), CHUNK_PAIRS):
        part = slice(start, start + CHUNK_PAIRS)
        score[part] = pair_scores(embeddings[left[part]], embeddings[right[part]])
    log_odds = calibration.scale * score + calibration.offset
    return np.flatnonzero(_standing_out(index, left, right, log_odds) > STANDS_OUT)


def pairs_within_folders(
    index: FaceIndex, usable: npt.NDArray[np.bool_]
) -> tuple[Indices, Indices]:
    """Return the pairs that tell whose photos stand out: two int64[P] of image numbers.

    In folders of MIN_PHOTOS or more, each photo is paired with all others of its folder, or with
    about MAX_OTHERS spread over it.
    """
    left, right = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for person in range(len(index.people)):
        images = index.images_of(person)
        photos = images.start + np.flatnonzero(usable[images.start : images.stop])
        if len(photos) >= MIN_PHOTOS:
            first, second = _circle(len(photos), MAX_OTHERS // 2)
            left.append(photos[first])
            right.append(photos[second])
    return np.concatenate(left), np.concatenate(right)


def _circle(count: int, steps: int) -> tuple[Indices, Indices]:
    """Pair each place of a circle with those at up to `steps` distances in both directions."""
    distances = np.unique(np.linspace(1, count // 2, min(steps, count // 2)).astype(np.int64))
    left = np.tile(np.arange(count), len(distances))
    right = (left + np.repeat(distances, count)) % count
    once = np.unique(np.sort([left, right], axis=0), axis=1)  # half a circle comes from both ends
    return once[0], once[1]


def _standing_out(index: FaceIndex, left: Indices, right: Indices, log_odds: Floats) -> Floats:
    """Return how much each photo stands out of its folder: float64[N], -inf without pairs.

    `log_odds` are those of one person in both photos of a pair.
    """

    def sums(of: Indices, size: int) -> Floats:
        """Return the log odds of all pairs and their number: float64[2, size]."""
        weights = (log_odds, np.ones(len(of)))
        return np.array([np.bincount(of, weight, size) for weight in weights], np.float64)

    photos = len(index)
    own, own_pairs = sums(left, photos) + sums(right, photos)
    folder, folder_pairs = sums(index.person_of[left].astype(np.int64), len(index.people))
    rest, rest_pairs = folder[index.person_of] - own, folder_pairs[index.person_of] - own_pairs
    known = (own_pairs > 0) & (rest_pairs > 0)
    value = np.full(photos, -np.inf)
    value[known] = OTHERS_WEIGHT * (rest / np.maximum(rest_pairs, 1))[known]
    value[known] -= own[known] / own_pairs[known]
    return value
