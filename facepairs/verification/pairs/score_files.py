"""Scores and embeddings of a list of image files, with results in memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from facepairs.errors import BadData, BadImage
from facepairs.support.parallel import thread_map
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.pairs.bulk import BulkScorer, CropReader, Indices, LocalPhotos, PairRows
from facepairs.verification.pairs.partial_results import RowResults
from facepairs.verification.scorer import ScoreArray

if TYPE_CHECKING:
    from facepairs.verification.verifier import Verifier

CHUNK_PAIRS = 1024


def score_files(
    verifier: "Verifier",
    paths: Sequence[Path | str],
    left: Indices,
    right: Indices,
    *,
    progress: ProgressCallback = ignore_progress,
    workers: int | None = None,
    errors: dict[int, str] | None = None,
) -> ScoreArray:
    """Score pairs of image files.

    Args:
        verifier: What scores them.
        paths: Image files.
        left: integer[N], positions in `paths`.
        right: integer[N], positions in `paths`.
        progress: Counts images for an embedding network, else pairs.
        workers: Number of threads, by default one per core.
        errors: Is filled with what is wrong with images, by position; their pairs score NaN.

    Returns:
        float32[N] in the order of the pairs.

    Raises:
        BadImage: An image cannot be used, and `errors` is None.
        BadData: `left` and `right` are no positions in `paths`, or differ in length.
    """
    left, right = _checked_positions(left, len(paths)), _checked_positions(right, len(paths))
    if len(left) != len(right):
        raise BadData(f"{len(left)} left images and {len(right)} right ones make no pairs")
    images, numbers = np.unique(np.concatenate([left, right]), return_inverse=True)
    pairs = PairRows(np.arange(len(left)), numbers[: len(left)], numbers[len(left) :])
    rows = len(images) if verifier.bundle.kind == "embedding" else len(left)
    scorer = _scorer_in_memory(verifier, paths, images, rows, errors)
    by_image = np.lexsort((pairs.right, pairs.left))
    work = scorer.items(_chunks(pairs, by_image))
    scorer.collect(thread_map(scorer.work, work, workers), progress)
    chunks = [scorer.scores(chunk) for chunk in _chunks(pairs, pairs.rows)]
    return np.concatenate([np.zeros(0, np.float32), *chunks])


def embed_files(
    verifier: "Verifier",
    paths: Sequence[Path | str],
    images: Indices,
    *,
    progress: ProgressCallback = ignore_progress,
    errors: dict[int, str] | None = None,
) -> ScoreArray:
    """Embed image files.

    Args:
        verifier: With an embedding network.
        paths: Image files.
        images: integer[M], distinct positions in `paths`.
        progress: Counts images.
        errors: Is filled with what is wrong with images, by position; their rows are NaN.

    Returns:
        float32[M, D] in the order of `images`.

    Raises:
        BadImage: An image cannot be used, and `errors` is None.
        BadData: `images` are no positions in `paths`.
    """
    images = _checked_positions(images, len(paths))
    scorer = _scorer_in_memory(verifier, paths, images, len(images), errors)
    scorer.collect(thread_map(scorer.work, scorer.items([])), progress)
    done = scorer.results.done
    if not done.any():
        return np.full((len(images), 1), np.nan, np.float32)
    embeddings = scorer.results.get(np.arange(len(images)))
    embeddings[~done] = np.nan
    return embeddings


def _scorer_in_memory(
    verifier: "Verifier",
    paths: Sequence[Path | str],
    images: Indices,
    rows: int,
    errors: dict[int, str] | None,
) -> BulkScorer:
    """Return a scorer of the images at these positions, with results in memory."""

    def handle_errors(found: dict[int, str]) -> None:
        if errors is None:
            raise BadImage(next(iter(found.values())))
        errors.update({int(images[number]): error for number, error in found.items()})

    def name_of(number: int) -> str:
        return str(paths[int(images[number])])

    reader = CropReader(verifier, LocalPhotos(Path()))
    return BulkScorer(reader, name_of, RowResults(rows), handle_errors)


def _chunks(pairs: PairRows, order: Indices) -> Iterator[PairRows]:
    for start in range(0, len(order), CHUNK_PAIRS):
        part = order[start : start + CHUNK_PAIRS]
        yield PairRows(*(numbers[part] for numbers in pairs))


def _checked_positions(values: Indices, images: int) -> Indices:
    """Check positions; NumPy would count a negative one from the end."""
    values = np.asarray(values)
    if values.ndim != 1 or not (values.size == 0 or np.issubdtype(values.dtype, np.integer)):
        raise BadData(f"pairs are {values.dtype} {list(values.shape)}, not whole numbers [N]")
    if values.size and not 0 <= values.min() <= values.max() < images:
        raise BadData(f"pairs name images {values.min()} to {values.max()}; there are {images}")
    return values
