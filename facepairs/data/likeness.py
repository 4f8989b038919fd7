"""Find copies of photos, and one person in two folders, by the embeddings of a folder of faces.

Measured with the default model on LFW, whose people it has not seen. Of 50 photos, all mirrored or
cropped copies are above COPY, 98 % of those brightened, 84 % of those at half the size and 34 % of
those saved at low quality; of 60 others, 50 % of those turned grey and 7 % of those stretched by a
fifth; of 242,257 pairs of photos of one person, 25 are. Consecutive shots of a studio are as alike.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from facepairs.data.findings import Finding, make_finding
from facepairs.data.index import FaceIndex

COPY = 0.993
SAME_BYTES = 0.999999  # reported as duplicates
MEDIAN_LIMIT = 0.91  # of the scores of people: .85 for LFW, .97 for drawn people
SAMPLE = 1000  # people
BLOCK = 256  # rows compared with all others at once

Embeddings = npt.NDArray[np.float32]


def likeness_findings(
    index: FaceIndex,
    embeddings: Embeddings,
    mislabelled: Iterable[int],
    same_people: Iterable[tuple[int, int]],
) -> Iterator[Finding]:
    """Yield photos in a wrong folder, copies within a folder, and folders of one person.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
        mislabelled: Photos in a wrong folder, if the model tells these people apart.
        same_people: Pairs of people who may be one, if it does.
    """
    means = mean_faces(index, embeddings)
    if not tells_apart(means):
        reason = (
            "most of these people look alike to the included model, as in drawings or in "
            "stretched photos"
        )
        yield make_finding("labels_unchecked", [], reason=reason)
        return
    for image in mislabelled:
        yield make_finding("mislabelled", [index.name(image)])
    yield from _copies(index, embeddings)
    for pair in same_people:
        photos = [
            index.name(_most_alike(index.images_of(one), embeddings, means[other]))
            for one, other in (pair, pair[::-1])
        ]
        people = " and ".join(index.people[person] for person in pair)
        yield make_finding("same_person", photos, people=people)


def mean_faces(index: FaceIndex, embeddings: Embeddings) -> Embeddings:
    """Return the mean embedding of each person: float32[people, D] of length 1, NaN without photos.

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


def _most_alike(images: range, embeddings: Embeddings, other: Embeddings) -> int:
    """Return the photo of a person that is most similar to another one."""
    return images[int(np.nanargmax(embeddings[images.start : images.stop] @ other))]


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
    """Return sorted groups in which every two are a pair; a photo may be in several groups."""
    alike = set(pairs)
    groups: list[list[int]] = []
    for photo in sorted({number for pair in alike for number in pair}):
        fits = (group for group in groups if all((other, photo) in alike for other in group))
        group = next(fits, None)
        if group is None:
            groups.append([photo])
        else:
            group.append(photo)
    return [group for group in groups if len(group) > 1]
