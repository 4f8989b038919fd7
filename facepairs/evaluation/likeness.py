"""Find copies, wrong folders and one person in two folders, by the embeddings of a folder of faces.

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
from facepairs.grouping.linkage import GroupMeans, average_linkage, unit_rows

COPY = 0.993
SAME_BYTES = 0.999999  # reported as duplicates
MEDIAN_LIMIT = 0.91  # of the scores of people: .85 for LFW, .97 for drawn people
SAMPLE = 1000  # people
BLOCK = 256  # rows compared with all others at once
MIN_PHOTOS = 3  # in a folder: of two photos that differ, neither is the wrong one
SAME_PERSON = 0.055  # height at which two people are proposed to be one
MOST_PAIRS = 1000  # of such people
STRANGER = 0.11  # height at which the photos of a folder are grouped, see `find_mislabelled`

Embeddings = npt.NDArray[np.float32]


def likeness_findings(
    index: FaceIndex, embeddings: Embeddings, cohort: Embeddings | None
) -> Iterator[Finding]:
    """Yield photos in a wrong folder, copies within a folder, and folders of one person.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
        cohort: The model's, see `grouping.linkage`.
    """
    if not tells_apart(index, embeddings):
        reason = (
            "most of these people look alike to the included model, as in drawings or in "
            "stretched photos"
        )
        yield make_finding("labels_unchecked", [], reason=reason)
        return
    for image in find_mislabelled(index, embeddings):
        yield make_finding("mislabelled", [index.name(image)])
    yield from _copies(index, embeddings)
    for pair in find_same_people(index, embeddings, cohort):
        one, other = (np.array(index.images_of(person)) for person in pair)
        photos = [
            index.name(own[np.nanargmax(embeddings[own] @ np.nansum(embeddings[others], axis=0))])
            for own, others in ((one, other), (other, one))
        ]
        people = " and ".join(index.people[person] for person in pair)
        yield make_finding("same_person", photos, people=people)


def tells_apart(index: FaceIndex, embeddings: Embeddings) -> bool:
    """Return whether the model tells most people apart; it does not for drawings, for instance.

    Arguments as for `likeness_findings`.
    """
    usable = np.isfinite(embeddings[:, 0])
    number = np.unique(index.person_of[usable], return_inverse=True)[1]
    means = unit_rows(GroupMeans.of(embeddings[usable], number, None).mean)
    means = means[:: max(1, len(means) // SAMPLE)]
    scores = (means @ means.T)[np.triu_indices(len(means), 1)]
    return not len(scores) or bool(np.median(scores) < MEDIAN_LIMIT)


def find_same_people(
    index: FaceIndex, embeddings: Embeddings, cohort: Embeddings | None
) -> Iterator[tuple[int, int]]:
    """Yield pairs of people who may be one, by their numbers, the most alike first.

    Measured on LFW with the included model: of its 16.5 million pairs of people 23 are proposed; 21
    are one person under two names, or show one person under a wrong name, or look it. Of people
    whose photos were dealt to two folders, 65 % are found, and 83 % of those with three or more
    photos in each. See `scripts/studies/same_people.py`.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
        cohort: The model's, see `grouping.linkage`.
    """
    usable = np.isfinite(embeddings[:, 0])
    people, number = np.unique(index.person_of[usable], return_inverse=True)
    if not len(people):
        return
    means = GroupMeans.of(embeddings[usable], number, cohort)
    for _, one, other in means.nearest(SAME_PERSON, MOST_PAIRS):
        yield int(people[one]), int(people[other])


def find_mislabelled(index: FaceIndex, embeddings: Embeddings) -> Iterator[int]:
    """Yield the photos that probably show another person than the rest of their folder.

    The photos of a folder are grouped. Where at least half of them make one group, the others are
    found. With 3 % of the photos exchanged for other people's, 96 % of those are found among View
    1's training people, and 95 % of what is found are such; among its test people 95 % and 95 %.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
    """
    is_usable = np.isfinite(embeddings[:, 0])
    for person in range(len(index.people)):
        images = np.array(index.images_of(person))
        images = images[is_usable[images]]
        if len(images) < MIN_PHOTOS:
            continue
        group = average_linkage(embeddings[images], STRANGER).labels(STRANGER)
        size = np.bincount(group)
        if 2 * size.max() >= len(images):
            yield from images[group != size.argmax()].tolist()


def _copies(index: FaceIndex, embeddings: Embeddings) -> Iterator[Finding]:
    for person, name in enumerate(index.people):
        images = index.images_of(person)
        rows = embeddings[images.start : images.stop]
        for group in _groups(_pairs_above(rows, COPY, SAME_BYTES)):
            photos = [index.name(images.start + image) for image in group]
            yield make_finding("near_duplicate", photos, people=name)


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
