"""Write one shard of a pair cache: the unit of work of a build, on whichever machine it runs."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import ReadFile, StringTable
from facepairs.data.pairs import PairList
from facepairs.errors import BadData, BadImage
from facepairs.pipeline.decode import Decoder, batch_decoder, crop_decoder
from facepairs.pipeline.records.manifest import REBUILD, RecordShard

READ_PAIRS = 64  # how many pairs' files are in memory at a time

_trace_lock = Lock()  # without it, threads that start together would each build a graph


@dataclass(frozen=True)
class ShardPlan:
    """The content of a shard that is to be written.

    Attributes:
        name: File name of the shard.
        pairs: The pairs, by image numbers of the index.
        images: int32[M], the image numbers in `pairs`, sorted and distinct.
        names: The images' paths below the folder of faces, M of them.
        sizes: int64[M], the sizes of the files in bytes; -1 for unknown.
    """

    name: str
    pairs: PairList
    images: npt.NDArray[np.int32]
    names: StringTable
    sizes: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ShardWriter:
    """Writes shards.

    Attributes:
        root: Folder of faces; names the images in messages.
        folder: Where the shards go.
        encoding: `jpeg` copies the image files, `raw` stores uint8[crop_px, crop_px, 3].
        frame_px: Short side of an image to which `crop_px` refers.
        crop_px: Side of the centre square.
        read_file: Reads an image; by default from the file below `root`.
    """

    root: Path
    folder: Path
    encoding: str
    frame_px: int
    crop_px: int
    read_file: ReadFile | None = None

    def __call__(self, plan: ShardPlan) -> RecordShard:
        """Write a shard; it gets its name when it is complete.

        Raises:
            BadData: A file has changed, or the folder cannot be written.
            BadImage: TensorFlow cannot decode an image.
        """
        target = self.folder / plan.name
        try:
            with _completed_file(target) as path:
                with tf.io.TFRecordWriter(str(path)) as writer:
                    for record in self._records(plan):
                        writer.write(record)
                with open(path, "rb") as handle:
                    digest = hashlib.file_digest(handle, "sha256").hexdigest()
                return RecordShard(plan.name, len(plan.pairs), path.stat().st_size, digest)
        except (tf.errors.OpError, OSError) as error:
            problem = error.strerror if isinstance(error, OSError) else error.message
            raise BadData(f"{target}: {problem}; choose another place or free space") from None

    def _records(self, plan: ShardPlan) -> Iterator[bytes]:
        """Yield serialised records; the same plan gives the same bytes."""
        for start in range(0, len(plan.pairs), READ_PAIRS):
            pairs = plan.pairs.where(slice(start, start + READ_PAIRS))
            sides = np.concatenate([pairs.left, pairs.right])
            contents = self._contents(plan, np.searchsorted(plan.images, sides))
            columns = (pairs.left.tolist(), pairs.right.tolist(), pairs.genuine.tolist())
            left, right = contents[: len(pairs)], contents[len(pairs) :]
            for left_id, right_id, genuine, left_bytes, right_bytes in zip(
                *columns, left, right, strict=True
            ):
                yield _record(left_bytes, right_bytes, int(genuine), left_id, right_id)

    def _contents(self, plan: ShardPlan, rows: npt.NDArray[np.int64]) -> list[bytes]:
        """Return what is stored of the images in these rows of the plan."""
        names = [plan.names[row] for row in rows.tolist()]
        sizes = plan.sizes[rows].tolist()
        files = [self._read(name, size) for name, size in zip(names, sizes, strict=True)]
        if self.encoding == "jpeg":
            return files
        try:
            crops = self._decode(files)
        except tf.errors.OpError:
            for name, file in zip(names, files, strict=True):
                self._check_decodable(name, file)
            raise
        return [crop.tobytes() for crop in crops]

    def _read(self, name: str, size: int) -> bytes:
        """Read an image and check that its size is still that in the index."""
        path = self.root / name
        try:
            data = self.read_file(name) if self.read_file else path.read_bytes()
        except OSError as error:
            raise BadData(f"{path}: {error.strerror}; {REBUILD}") from None
        if size not in (-1, len(data)):
            raise BadData(f"{path}: changed since the folder was read; {REBUILD}")
        return data

    def _decode(self, files: list[bytes]) -> npt.NDArray[np.uint8]:
        """Decode images to uint8[files, crop_px, crop_px, 3].

        The graph takes batches of one size, so a short batch repeats its last image.
        """
        missing = 2 * READ_PAIRS - len(files)
        batch = tf.constant(files + files[-1:] * missing)
        with _trace_lock:
            decode = _traced_decoder(self.frame_px, self.crop_px)
        crops: npt.NDArray[np.uint8] = decode(batch).numpy()
        return crops[: len(files)]

    def _check_decodable(self, name: str, file: bytes) -> None:
        """Raise BadImage for an image that TensorFlow cannot decode."""
        try:
            crop_decoder(self.frame_px, self.crop_px)(tf.constant(file))
        except tf.errors.OpError:
            path = self.root / name
            raise BadImage(f"{path}: TensorFlow cannot decode it; repair or remove it") from None


@contextmanager
def _completed_file(target: Path) -> Iterator[Path]:
    """Yield a temporary file that is renamed to `target` when the block ends without an error."""
    temporary = target.with_name(f".{target.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _traced_decoder(frame_px: int, crop_px: int) -> Decoder:
    files = tf.TensorSpec([2 * READ_PAIRS], tf.string)
    decode = tf.function(batch_decoder(frame_px, crop_px, 2 * READ_PAIRS), autograph=False)
    traced: Decoder = decode.get_concrete_function(files)
    return traced


def _record(left: bytes, right: bytes, genuine: int, left_id: int, right_id: int) -> bytes:
    """Serialise one pair."""
    feature = {
        "left": _bytes_feature(left),
        "right": _bytes_feature(right),
        "genuine": _int_feature(genuine),
        "left_id": _int_feature(left_id),
        "right_id": _int_feature(right_id),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    serialised: bytes = example.SerializeToString(deterministic=True)
    return serialised


def _bytes_feature(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _int_feature(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
