"""Scores of many pairs of image files, in bounded memory.

`score` and, by `score_files`, all other commands score pairs through this module alone.
An embedding network embeds every image once, and the scores follow from the embeddings. A pair
network runs once per pair; a cache keeps the crops of images that several pairs show. Both are one
pass: somebody does `BulkScorer.work` on each of its `items`, and `collect` takes the results. Work,
items and results can be pickled. An image that cannot be used fails the pairs it is in. Faces that
were found are kept in the default `FaceCache`, so that no photo is searched twice.
"""

import filecmp
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from facepairs.data.index import find_file
from facepairs.errors import BadImage
from facepairs.faces.align import AlignedFace, FaceCells, align_and_keep, unaligned_face
from facepairs.images.crop import Crop
from facepairs.images.photo import Photo, open_photo
from facepairs.support.checksum import file_stamp
from facepairs.support.parallel import batches
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.pairs.partial_results import RowResults
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray

if TYPE_CHECKING:
    from facepairs.verification.verifier import Verifier

CACHE_BYTES = 256 * 2**20  # decoded crops that are kept for further pairs
ROWS_PER_SAVE = 512  # the work that a kill may cost

Indices = npt.NDArray[np.integer[Any]]


def same_content(one: Path, other: Path) -> bool:
    """Return whether two files are the same or copies: that their faces match says nothing."""
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError:  # it is gone by now
        return False


class PhotoFolder(Protocol):
    """Photos by their names in a list; `str` names the folder in messages. Picklable."""

    def open(self, name: str) -> Photo:
        """Open a photo; raises BadImage."""
        ...

    def stamp(self, name: str) -> str:
        """Return what changes whenever a photo is written; "" where that is not known."""
        return ""

    def same_content(self, one: str, other: str) -> bool:
        """Return whether two photos are copies, as far as that is known."""
        return False


@dataclass(frozen=True)
class LocalPhotos(PhotoFolder):
    """The photos below a folder of this machine.

    Attributes:
        root: The folder that names count from.
    """

    root: Path

    def __str__(self) -> str:
        return str(self.root.resolve())

    def open(self, name: str) -> Photo:
        """Open a photo; raises BadImage."""
        return open_photo(find_file(self.root, name), str(Path(self.root, name)))

    def stamp(self, name: str) -> str:
        """Return what changes whenever a photo is written; "" where there is none."""
        return file_stamp(find_file(self.root, name))

    def same_content(self, one: str, other: str) -> bool:
        """Return whether two photos are copies."""
        return same_content(find_file(self.root, one), find_file(self.root, other))


@dataclass(frozen=True)
class CropReader:
    """Reads images as a verifier's network sees them; picklable.

    Attributes:
        verifier: Whose network sees the crops.
        photos: The images by name.
        details: Also report each image's face and hints, see `Computed`.
    """

    verifier: "Verifier"
    photos: PhotoFolder
    details: bool = False

    def __call__(self, name: str) -> AlignedFace:
        """Return the image's most prominent face, or the whole image; raises BadImage."""
        model, photo = self.verifier.bundle, self.photos.open(name)
        if model.aligned:
            return align_and_keep(photo, model.framing, self.details)
        return unaligned_face(photo, model.framing, self.details)


class PairRows(NamedTuple):
    """Some pairs: their row numbers and the numbers of their images, -1 in malformed rows."""

    rows: Indices
    left: Indices
    right: Indices


class PairBatch(NamedTuple):
    """Pairs that one work item scores: row numbers, image numbers, and the images' names."""

    rows: list[int]
    left: list[int]
    right: list[int]
    names: dict[int, str]


class Computed(NamedTuple):
    """The result of one work item.

    `tried` is the number of its images or pairs, `values` float32[len(rows), width] those of the
    rows that were computed, and `errors` the reasons of failure by image number. `faces` has what a
    `CropReader` with `details` reports of each image: the cells of `AlignedFace.to_cells`.
    """

    tried: int
    rows: list[int]
    values: ScoreArray
    errors: dict[int, str]
    faces: dict[int, FaceCells]


def embed_images(reader: CropReader, images: list[tuple[int, str]]) -> Computed:
    """Embed images, given by number and name, in one call of the network."""
    faces, errors = _read_faces(reader, dict(images))
    values = np.zeros((0, 0), np.float32)
    if faces:
        values = reader.verifier.scorer.embed(_stack(faces, list(faces)))
    return Computed(len(images), list(faces), values, errors, _face_cells(reader, faces))


class ScorePairs:
    """Scores a few pairs in one call of the network; threads share its cache of crops."""

    def __init__(self, reader: CropReader) -> None:
        self._reader = reader
        crop_bytes = 3 * reader.verifier.bundle.framing.crop_px**2
        self._cache = CropCache(reader, max(2, CACHE_BYTES // crop_bytes))

    def __reduce__(self) -> Any:
        """Pickle it without its cache."""
        return ScorePairs, (self._reader,)

    def __call__(self, batch: PairBatch) -> Computed:
        """Return the scores of the pairs whose two images can be used: values float32[n, 1]."""
        faces, errors = _read_faces(self._cache.get, batch.names)
        pairs = zip(batch.rows, batch.left, batch.right, strict=True)
        usable = [pair for pair in pairs if pair[1] in faces and pair[2] in faces]
        rows, scores = [], np.zeros(0, np.float32)
        if usable:
            rows, left, right = map(list, zip(*usable, strict=True))
            scores = self._reader.verifier.scorer.score_pairs(
                _stack(faces, left), _stack(faces, right)
            )
        cells = _face_cells(self._reader, faces)
        return Computed(len(batch.rows), rows, scores[:, None], errors, cells)


def _read_faces(
    read: Callable[[str], AlignedFace], names: Mapping[int, str]
) -> tuple[dict[int, AlignedFace], dict[int, str]]:
    """Read images by number; return the faces, and the errors of images that cannot be used."""
    faces: dict[int, AlignedFace] = {}
    errors: dict[int, str] = {}
    for image, name in names.items():
        try:
            faces[image] = read(name)
        except BadImage as error:
            errors[image] = str(error)
    return faces, errors


def _stack(faces: Mapping[int, AlignedFace], images: list[int]) -> Crop:
    return np.stack([faces[image].crop for image in images])


def _face_cells(reader: CropReader, faces: Mapping[int, AlignedFace]) -> dict[int, FaceCells]:
    return {image: face.to_cells() for image, face in faces.items()} if reader.details else {}


class CropCache:
    """Faces by image name, at most `capacity`; the least recently used leave first.

    Thread-safe: while an image is in the cache, only the first thread that asks for it reads it.
    """

    def __init__(self, read: Callable[[str], AlignedFace], capacity: int) -> None:
        self.capacity = capacity
        self._read = read
        self._lock = threading.Lock()
        self._faces: OrderedDict[str, Future[AlignedFace | BadImage]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._faces)

    def get(self, name: str) -> AlignedFace:
        """Return the face of an image; raises BadImage."""
        with self._lock:
            is_new = name not in self._faces
            future = self._faces.setdefault(name, Future())
            self._faces.move_to_end(name)
            if len(self._faces) > self.capacity:
                self._faces.popitem(last=False)
        if is_new:
            try:
                future.set_result(self._read(name))
            except BadImage as error:
                future.set_result(error)
            except BaseException as error:
                future.set_exception(error)  # for threads that wait for it
                raise
        face = future.result()
        if isinstance(face, BadImage):
            raise type(face)(str(face))
        return face


@dataclass(frozen=True)
class BulkScorer:
    """Scores pairs of images that are given by number: `work` on all `items`, `collect`, `scores`.

    Attributes:
        reader: Reads an image by its name.
        name_of: Returns an image's name by its number.
        results: Rows are images for an embedding network, pairs for a pair network.
        on_errors: Called with what is wrong with images, by number.
        on_faces: Called with `Computed.faces` where there are any.
    """

    reader: CropReader
    name_of: Callable[[int], str]
    results: RowResults
    on_errors: Callable[[dict[int, str]], None]
    on_faces: Callable[[dict[int, FaceCells]], None] | None = None

    @cached_property
    def work(self) -> Callable[[Any], Computed]:
        """What is to be done with each of `items`."""
        return partial(embed_images, self.reader) if self._embeds else ScorePairs(self.reader)

    def items(self, pairs: Iterable[PairRows]) -> Iterator[Any]:
        """Yield the work on the rows of `results` that are not done.

        Args:
            pairs: All pairs; pairs that show the same images should follow one another.
        """
        if not self._embeds:
            return self._pair_batches(pairs)
        missing = map(int, np.flatnonzero(~self.results.done))
        return batches(((image, self.name_of(image)) for image in missing), BATCH_CROPS)

    def collect(
        self, work_done: Iterable[Computed], progress: ProgressCallback = ignore_progress
    ) -> None:
        """Keep the results of all `items`; `progress` counts the rows of `results`."""
        done = saved = int(self.results.done.sum())
        total = len(self.results.done)
        for computed in work_done:
            self.results.put(computed.rows, computed.values)
            if computed.errors:
                self.on_errors(computed.errors)
            if computed.faces and self.on_faces:
                self.on_faces(computed.faces)
            done += computed.tried
            if done - saved >= ROWS_PER_SAVE:
                self.results.save()
                saved = done
            progress(done, total)
        self.results.save()
        if done < total:  # malformed rows
            progress(total, total)

    @property
    def _embeds(self) -> bool:
        return self.reader.verifier.bundle.kind == "embedding"

    def _pair_batches(self, pairs: Iterable[PairRows]) -> Iterator[PairBatch]:
        """Cut the pairs that are not done into batches of one network call."""
        for chunk in pairs:
            todo = ~self.results.done[chunk.rows] & (chunk.left >= 0) & (chunk.right >= 0)
            for part in batches(np.flatnonzero(todo).tolist(), max(1, BATCH_CROPS // 2)):
                rows, left, right = (numbers[part].tolist() for numbers in chunk)
                names = {image: self.name_of(image) for image in dict.fromkeys([*left, *right])}
                yield PairBatch(rows, left, right, names)

    def scores(self, pairs: PairRows) -> ScoreArray:
        """Return the scores of some pairs: float32[N], NaN where an image failed or is -1."""
        scores = np.full(len(pairs.rows), np.nan, np.float32)
        done = self.results.done
        if not self._embeds:
            usable = np.flatnonzero(done[pairs.rows])
            if len(usable):
                scores[usable] = self.results.get(pairs.rows[usable])[:, 0]
            return scores
        usable = np.flatnonzero((pairs.left >= 0) & (pairs.right >= 0))
        left, right = pairs.left[usable], pairs.right[usable]
        both = done[left] & done[right]
        if both.any():
            embeddings = self.results.get(np.concatenate([left[both], right[both]]))
            halves = np.split(embeddings, 2)
            scores[usable[both]] = self.reader.verifier.scorer.compare(*halves)
        return scores
