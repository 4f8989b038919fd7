"""Photos that look like copies of one photo, and folders that look like one person.

By embeddings of the default model: of single photos, and of people as the mean of their photos.

Measured on the 1,708 people of three of LFW's View 2 sets, by networks trained on the other nine.
Of 486,000 pairs of people 7 are above SAME_PERSON, and at least 3 of them are one person under two
names. Of people whose photos were dealt to two folders, it finds about half, and nearly all with
three or more photos in each. Of 46 photos, about 95 % of mirrored or cropped copies are above COPY,
75 % of those brightened or saved at low quality, and fewer than half of those at half the size; of
26,634 pairs of photos of one person, 1 is, of the same picture.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from facepairs.data.index import FaceIndex
from facepairs.doctor.findings import Finding, make_finding, shorten
from facepairs.verification.scorer import ScoreArray

COPY = 0.96
SAME_BYTES = 0.9999  # reported as duplicates
SAME_PERSON = 0.70
PAIRS_OF_PEOPLE = 500_000  # that SAME_PERSON was chosen on; with e times as many, it rises by RISE
RISE = 0.034  # keeps the expected number of false proposals
MEDIAN_LIMIT = 0.45  # of the scores of people: .21 for LFW, .60 and more for drawn people
SAMPLE = 1000  # people
BLOCK = 256  # rows compared with all others at once


def mean_faces(index: FaceIndex, embeddings: ScoreArray) -> ScoreArray:
    """Return the mean of each person's photos: float32[people, D] of length 1, NaN without photos.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
    """
    usable = np.flatnonzero(np.isfinite(embeddings).all(axis=1))
    means = np.full((len(index.people), embeddings.shape[1]), np.nan, np.float32)
    if len(usable):
        people, first = np.unique(index.person_of[usable], return_index=True)
        sums = np.add.reduceat(embeddings[usable], first, axis=0)
        means[people] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def tells_apart(means: ScoreArray) -> bool:
    """Return whether the model tells most people apart; it does not for drawings, for instance.

    Args:
        means: As from `mean_faces`.
    """
    means = means[np.isfinite(means).all(axis=1)]
    means = means[:: max(1, len(means) // SAMPLE)]
    scores = (means @ means.T)[np.triu_indices(len(means), 1)]
    return not len(scores) or bool(np.median(scores) < MEDIAN_LIMIT)


def alike_findings(
    index: FaceIndex, embeddings: ScoreArray, means: ScoreArray
) -> Iterator[Finding]:
    """Yield a finding for each group of copies within a folder, and of folders of one person.

    Args:
        index: The photos.
        embeddings: As for `mean_faces`.
        means: Its result.
    """
    for person, name in enumerate(index.people):
        images = index.images_of(person)
        rows = embeddings[images.start : images.stop]
        for group in _groups(_pairs_above(rows, COPY, SAME_BYTES)):
            photos = [index.name(images.start + image) for image in group]
            yield make_finding("near_duplicate", photos, people=name)
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


def _most_alike(images: range, embeddings: ScoreArray, others: ScoreArray) -> int:
    """Return the photo of a person that is most like other people."""
    return images[int(np.nanargmax(embeddings[images.start : images.stop] @ others))]


def _pairs_above(
    rows: ScoreArray, threshold: float, most: float = np.inf
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
