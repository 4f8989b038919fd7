"""Writes one shard of a pair cache: the unit of work of a build, whichever machine does it."""

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

from facepairs.beam.places import Place, Uri, copy_to
from facepairs.data.index import StringTable
from facepairs.data.pairs import PairList
from facepairs.errors import BadData, BadImage
from facepairs.pipeline.decode import Decoder, batch_decoder, crop_decoder
from facepairs.pipeline.records.manifest import RecordShard
from facepairs.support.atomic import scratch_folder

READ_PAIRS = 64  # whose files are in memory at a time

_tracing = Lock()  # or threads that begin together would each build a graph of their own


@dataclass(frozen=True)
class ShardPlan:
    """What a shard will hold; `pairs` name images by their numbers in the index.

    `images` int32[M] are all of those, sorted, `names` their paths below the folder of faces and
    `sizes` int64[M] those of the files (-1: unknown).
    """

    name: str
    pairs: PairList
    images: npt.NDArray[np.int32]
    names: StringTable
    sizes: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ShardWriter:
    """Writes shards to `folder` from the images below `root`, as `build_cache` describes them."""

    root: Place
    folder: Place
    encoding: str
    frame_px: int
    crop_px: int

    def __call__(self, plan: ShardPlan) -> RecordShard:
        """Write a shard, which gets its name when it is whole.

        Raises BadData where a file has changed or the place cannot be written, BadImage for an
        image that TensorFlow cannot decode.
        """
        try:
            with self._at_hand(plan.name) as path:
                with tf.io.TFRecordWriter(str(path)) as writer:
                    for record in self._records(plan):
                        writer.write(record)
                with open(path, "rb") as handle:
                    digest = hashlib.file_digest(handle, "sha256").hexdigest()
                shard = RecordShard(plan.name, len(plan.pairs), path.stat().st_size, digest)
        except tf.errors.OpError as error:
            raise self._unwritten(plan, error.message) from None
        except OSError as error:
            raise self._unwritten(plan, error.strerror) from None
        return shard

    def _unwritten(self, plan: ShardPlan, why: str | None) -> BadData:
        return BadData(f"{self.folder / plan.name}: {why}; choose another place or free space")

    @contextmanager
    def _at_hand(self, name: str) -> Iterator[Path]:
        """Give a local file to write, which is in its place afterwards."""
        if isinstance(self.folder, Uri):
            with scratch_folder("facepairs-shard") as local:
                yield local / name
                copy_to(local / name, self.folder / name)
            return
        temporary = self.folder / f".{name}.tmp-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            yield temporary
            temporary.replace(self.folder / name)
        finally:
            temporary.unlink(missing_ok=True)

    def _records(self, plan: ShardPlan) -> Iterator[bytes]:
        """Yield serialised records; the same values give the same bytes."""
        for start in range(0, len(plan.pairs), READ_PAIRS):
            pairs = plan.pairs.where(slice(start, start + READ_PAIRS))
            sides = np.concatenate([pairs.left, pairs.right])
            stored = self._stored(plan, np.searchsorted(plan.images, sides))
            left, right = stored[: len(pairs)], stored[len(pairs) :]
            numbers = zip(
                pairs.left.tolist(), pairs.right.tolist(), pairs.genuine.tolist(), strict=True
            )
            for (left_id, right_id, genuine), one, other in zip(numbers, left, right, strict=True):
                yield _record(one, other, int(genuine), left_id, right_id)

    def _stored(self, plan: ShardPlan, images: npt.NDArray[np.int64]) -> list[bytes]:
        """Give what is kept of some images, by their numbers in the plan."""
        paths = [self.root / plan.names[image] for image in images.tolist()]
        files = [_file(*both) for both in zip(paths, plan.sizes[images].tolist(), strict=True)]
        if self.encoding == "jpeg":
            return files
        try:
            crops = self._crops(files)
        except tf.errors.OpError:
            for path, file in zip(paths, files, strict=True):
                self._try(path, file)
            raise
        return [crop.tobytes() for crop in crops]

    def _crops(self, files: list[bytes]) -> npt.NDArray[np.uint8]:
        """Decode files to uint8[files, crop_px, crop_px, 3]; the last is repeated in a short batch.

        The graph is made for batches of one length.
        """
        missing = 2 * READ_PAIRS - len(files)
        whole = tf.constant(files + files[-1:] * missing)
        crops: npt.NDArray[np.uint8] = _decoder(self.frame_px, self.crop_px)(whole).numpy()
        return crops[: len(files)]

    def _try(self, path: Place, file: bytes) -> None:
        try:
            crop_decoder(self.frame_px, self.crop_px)(tf.constant(file))
        except tf.errors.OpError:
            raise BadImage(f"{path}: TensorFlow cannot decode it; mend or remove it") from None


def _decoder(frame_px: int, crop_px: int) -> Decoder:
    with _tracing:
        return _traced(frame_px, crop_px)


@lru_cache(maxsize=1)
def _traced(frame_px: int, crop_px: int) -> Decoder:
    files = tf.TensorSpec([2 * READ_PAIRS], tf.string)
    decode = tf.function(batch_decoder(frame_px, crop_px, 2 * READ_PAIRS), autograph=False)
    traced: Decoder = decode.get_concrete_function(files)
    return traced


def _file(path: Place, size: int) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; build the cache anew") from None
    if size not in (-1, len(data)):
        raise BadData(f"{path}: changed since the folder was read; build the cache anew")
    return data


def _record(left: bytes, right: bytes, genuine: int, left_id: int, right_id: int) -> bytes:
    feature = {
        "left": _bytes(left),
        "right": _bytes(right),
        "genuine": _integer(genuine),
        "left_id": _integer(left_id),
        "right_id": _integer(right_id),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    serialised: bytes = example.SerializeToString(deterministic=True)
    return serialised


def _bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _integer(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
