"""Scores of many pairs of photos, each of which is read once.

First `PhotoReader.read` finds the embedding of every photo, or the crop that a pair network sees:
in threads here, or on other machines. Then the scores follow. A photo that cannot be used fails the
pairs it is in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import BATCH_CROPS, ScoreArray
from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.photos import Named, PhotoReader, SeenPhoto

CHUNK_PAIRS = 512  # scored at a time

Indices = npt.NDArray[np.integer[Any]]
OrderedMap = Callable[[Callable[..., Any], Iterable[Any]], Iterator[Any]]


def score_photos(
    reader: PhotoReader,
    photos: Sequence[Named],
    left: Indices,
    right: Indices,
    ordered_map: OrderedMap = thread_map,
    strict: bool = False,
) -> tuple[ScoreArray, dict[int, SeenPhoto]]:
    """Score pairs of photos.

    Args:
        reader: Reads the photos; knows the network.
        photos: Name and source of each photo.
        left: integer[N], numbers of photos.
        right: integer[N], the same.
        ordered_map: Reads the photos: in threads, or on other machines.
        strict: Raise what is wrong with the first photo that cannot be used.

    Returns:
        float32[N], NaN where a photo cannot be used; and what was found in the photos, by number.

    Raises:
        BadImage: A photo cannot be used, and `strict` is true.
    """
    numbers = np.unique(np.concatenate([left, right])).tolist()
    found: dict[int, SeenPhoto] = {}
    progress = console.progress("reading photos")
    for batch in ordered_map(reader.read, batches([photos[n] for n in numbers], BATCH_CROPS)):
        for seen in batch:
            if strict and seen.error:
                raise seen.error
            found[numbers[len(found)]] = seen
        progress(len(found), len(numbers))
    is_usable = np.zeros(len(photos), bool)
    is_usable[[number for number, seen in found.items() if not seen.error]] = True
    usable = np.flatnonzero(is_usable[left] & is_usable[right])

    def score(rows: Indices) -> ScoreArray:
        sides = ([found[number] for number in side[rows].tolist()] for side in (left, right))
        return reader.score(*sides)

    scores = np.full(len(left), np.nan, np.float32)
    chunks = (usable[at : at + CHUNK_PAIRS] for at in range(0, len(usable), CHUNK_PAIRS))
    scores[usable] = np.concatenate([np.zeros(0, np.float32), *thread_map(score, chunks)])
    return scores, found


def check_positions(values: Indices, images: int) -> Indices:
    """Check positions in a list of images; NumPy would count a negative one from the end.

    Raises:
        BadData: They are no positions.
    """
    values = np.asarray(values)
    if values.ndim != 1 or not (values.size == 0 or np.issubdtype(values.dtype, np.integer)):
        raise BadData(f"pairs are {values.dtype} {list(values.shape)}, not whole numbers [N]")
    if values.size and not 0 <= values.min() <= values.max() < images:
        raise BadData(f"pairs name images {values.min()} to {values.max()}; there are {images}")
    return values
