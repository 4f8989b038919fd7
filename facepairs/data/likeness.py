"""What embeddings say about a folder of faces: wrong people, copies, one person in two folders.

Measured with the default model on LFW, whose people it has not seen.

Wrong people: a photo stands out where it is unlike the others of its folder although they are alike
among themselves. OTHERS_WEIGHT and STANDS_OUT were chosen on the 90 folders of View 1 training
people: with 3 % of the photos exchanged for other people's, 84 % of those are found, and 88 % of
the photos found are such. On View 1's 272 folders of test people: 79 % and 85 %.

One person in several folders: of 486,000 pairs of people 7 are above SAME_PERSON; of all 16.5
million pairs 12 are above the limit for so many, and 10 of these are one person under two names, or
look it. Of people whose photos were dealt to two folders, it finds 73 %, and all with three or more
photos in each.

Copies: of 50 photos, all mirrored or cropped copies are above COPY, 98 % of those brightened, 84 %
of those at half the size and 34 % of those saved at low quality; of 242,257 pairs of photos of one
person, 25 are.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from facepairs.data.findings import Finding, make_finding, shorten
from facepairs.data.index import FaceIndex

MIN_PHOTOS = 3  # in a folder: of two photos that differ, neither is the wrong one
MAX_OTHERS = 20  # photos of its folder that a photo is compared with
OTHERS_WEIGHT = 0.25
STANDS_OUT = 3.0  # in log odds

COPY = 0.993
SAME_BYTES = 0.999999  # reported as duplicates
SAME_PERSON = 0.96
PAIRS_OF_PEOPLE = 500_000  # that SAME_PERSON was chosen on; with e times as many, it rises by RISE
RISE = 0.0047  # keeps the expected number of false proposals
MEDIAN_LIMIT = 0.91  # of the scores of people: .85 for LFW, .97 for drawn people
SAMPLE = 1000  # people
BLOCK = 256  # rows compared with all others at once

Embeddings = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def likeness_findings(
    index: FaceIndex, embeddings: Embeddings, scale: float, offset: float
) -> Iterator[Finding]:
    """Yield photos in a wrong folder, copies within a folder, and folders of one person.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
        scale: The log odds that two photos with the score s, the product of their rows, show one
            person are `scale * s + offset`.
        offset: See `scale`.
    """
    means = mean_faces(index, embeddings)
    if not tells_apart(means):
        reason = "most of these people look alike to the included model, as drawings do"
        yield make_finding("labels_unchecked", [], reason=reason)
        return
    for image in find_mislabelled(index, embeddings, scale, offset):
        yield make_finding("mislabelled", [index.name(int(image))])
    yield from _copies(index, embeddings)
    yield from _same_people(index, embeddings, means)


def mean_faces(index: FaceIndex, embeddings: Embeddings) -> Embeddings:
    """Return the mean of each person's photos: float32[people, D] of length 1, NaN without photos.

    Arguments as for `likeness_findings`.
    """
    usable = np.flatnonzero(np.isfinite(embeddings).all(axis=1))
    means = np.full((len(index.people), embeddings.shape[1]), np.nan, np.float32)
    if len(usable):
        people, first = np.unique(index.person_of[usable], return_index=True)
        sums = np.add.reduceat(embeddings[usable], first, axis=0)
        means[people] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def tells_apart(means: Embeddings) -> bool:
    """Return whether the model tells most people apart; it does not for drawings, for instance.

    Args:
        means: As from `mean_faces`.
    """
    means = means[np.isfinite(means).all(axis=1)]
    means = means[:: max(1, len(means) // SAMPLE)]
    scores = (means @ means.T)[np.triu_indices(len(means), 1)]
    return not len(scores) or bool(np.median(scores) < MEDIAN_LIMIT)


def _copies(index: FaceIndex, embeddings: Embeddings) -> Iterator[Finding]:
    for person, name in enumerate(index.people):
        images = index.images_of(person)
        rows = embeddings[images.start : images.stop]
        for group in _groups(_pairs_above(rows, COPY, SAME_BYTES)):
            photos = [index.name(images.start + image) for image in group]
            yield make_finding("near_duplicate", photos, people=name)


def _same_people(index: FaceIndex, embeddings: Embeddings, means: Embeddings) -> Iterator[Finding]:
    pairs = len(means) * (len(means) - 1) / 2
    threshold = SAME_PERSON + RISE * math.log(max(pairs / PAIRS_OF_PEOPLE, 1))
    for group in _groups(_pairs_above(means, threshold)):
        total = means[group].sum(axis=0)
        photos = [
            index.name(_most_alike(index.images_of(person), embeddings, total - means[person]))
            for person in group
        ]
        people = shorten([index.people[person] for person in group])
        yield make_finding("same_person", photos, people=people)


def _most_alike(images: range, embeddings: Embeddings, others: Embeddings) -> int:
    """Return the photo of a person that is most like other people."""
    return images[int(np.nanargmax(embeddings[images.start : images.stop] @ others))]


def _pairs_above(
    rows: Embeddings, threshold: float, most: float = np.inf
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of rows whose product is above the threshold, and not above `most`."""
    for start in range(0, len(rows), BLOCK):
        scores = rows[start : start + BLOCK] @ rows[start:].T
        left, right = np.nonzero((scores > threshold) & (scores <= most))
        later = left < right
        yield from zip((start + left[later]).tolist(), (start + right[later]).tolist(), strict=True)


def _groups(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the groups that pairs connect, each sorted."""
    group_of: dict[int, set[int]] = {}
    for left, right in pairs:
        group = group_of.get(left, {left}) | group_of.get(right, {right})
        group_of |= dict.fromkeys(group, group)
    return sorted({min(group): sorted(group) for group in group_of.values()}.values())


def find_mislabelled(
    index: FaceIndex, embeddings: Embeddings, scale: float, offset: float
) -> Indices:
    """Return the photos that probably show another person than the rest of their folder.

    Arguments as for `likeness_findings`.

    Returns:
        Numbers of photos, rising.
    """
    left, right = pairs_within_folders(index, np.isfinite(embeddings[:, 0]))
    score = np.concatenate(
        [
            (embeddings[left[at : at + BLOCK]] * embeddings[right[at : at + BLOCK]]).sum(axis=1)
            for at in range(0, len(left), BLOCK)
        ]
        or [np.zeros(0)]
    )
    log_odds = scale * np.clip(score, -1, 1).astype(np.float64) + offset
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
    """Return how much each photo stands out of its folder: float64[N], -inf without pairs."""

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
