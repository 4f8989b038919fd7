"""Write one shard of a pair cache: the unit of work of a build, on whichever machine it runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import ReadFile, StringTable
from facepairs.data.pairs import PairList
from facepairs.errors import BadData
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.decode import ImageCropper
from facepairs.pipeline.records.manifest import REBUILD, RecordShard
from facepairs.support.checksum import file_sha256

READ_PAIRS = 64  # how many pairs' files are in memory at a time


def crop_bytes(crop_px: int) -> int:
    """Return the size of a crop's pixels. Stored content of this size is pixels, not a file."""
    return 3 * crop_px * crop_px


@dataclass(frozen=True)
class ShardPlan:
    """The content of a shard that is to be written.

    Attributes:
        name: File name of the shard.
        pairs: The pairs, by image numbers of the index.
        images: int32[M], the image numbers in `pairs`, sorted and distinct.
        names: The images' paths below the folder of faces, M of them.
        sizes: int64[M], the sizes of the files in bytes; -1 for unknown.
        crops: How these M images are cropped.
    """

    name: str
    pairs: PairList
    images: npt.NDArray[np.int32]
    names: StringTable
    sizes: npt.NDArray[np.int64]
    crops: CropPlan


@dataclass(frozen=True)
class ShardWriter:
    """Writes shards.

    Attributes:
        root: Folder of faces; names the images in messages.
        folder: Where the shards go.
        encoding: `jpeg` copies plain JPEGs that are smaller than their crop, `raw` stores crops.
        read_file: Reads an image; by default from the file below `root`.
    """

    root: Path
    folder: Path
    encoding: str
    read_file: ReadFile | None = None

    def __call__(self, plan: ShardPlan) -> RecordShard:
        """Write a shard; it gets its name when it is complete.

        Raises:
            BadData: A file has changed, or the folder cannot be written.
            BadImage: An image cannot be decoded.
        """
        target = self.folder / plan.name
        try:
            with _completed_file(target) as path:
                with tf.io.TFRecordWriter(str(path)) as writer:
                    for record in self._records(plan):
                        writer.write(record)
                size, digest = path.stat().st_size, file_sha256(path)
                return RecordShard(plan.name, len(plan.pairs), size, digest)
        except (tf.errors.OpError, OSError) as error:
            problem = error.strerror if isinstance(error, OSError) else error.message
            raise BadData(f"{target}: {problem}; choose another place or free space") from None

    def _records(self, plan: ShardPlan) -> Iterator[bytes]:
        """Yield serialised records; the same plan gives the same bytes."""
        cropper = ImageCropper(plan.crops)
        for start in range(0, len(plan.pairs), READ_PAIRS):
            pairs = plan.pairs.where(slice(start, start + READ_PAIRS))
            sides = np.concatenate([pairs.left, pairs.right])
            rows = np.searchsorted(plan.images, sides)
            contents = [self._content(plan, cropper, row) for row in rows.tolist()]
            maps = cropper.maps(rows)
            for number, genuine in enumerate(pairs.genuine.tolist()):
                feature = {"genuine": _int_feature(int(genuine))}
                for side, at in (("left", number), ("right", number + len(pairs))):
                    feature[side] = _bytes_feature(contents[at])
                    feature[f"{side}_map"] = _bytes_feature(maps[at].tobytes())
                    feature[f"{side}_id"] = _int_feature(int(sides[at]))
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                yield example.SerializeToString(deterministic=True)

    def _content(self, plan: ShardPlan, cropper: ImageCropper, row: int) -> bytes:
        """Return the file or the crop of one image."""
        data, name = self._read(plan, row), str(self.root / plan.names[row])
        is_file = (
            self.encoding == "jpeg"
            and len(data) < crop_bytes(plan.crops.spec.crop_px)
            and cropper.is_fast(data, row, name)
        )
        return data if is_file else cropper.crop(data, row, name).tobytes()

    def _read(self, plan: ShardPlan, row: int) -> bytes:
        """Read an image and check that its size is still that in the index."""
        name, size = plan.names[row], int(plan.sizes[row])
        path = self.root / name
        try:
            data = self.read_file(name) if self.read_file else path.read_bytes()
        except OSError as error:
            raise BadData(f"{path}: {error.strerror}; {REBUILD}") from None
        if size not in (-1, len(data)):
            raise BadData(f"{path}: changed since the folder was read; {REBUILD}")
        return data


@contextmanager
def _completed_file(target: Path) -> Iterator[Path]:
    """Yield a temporary file that is renamed to `target` when the block ends without an error."""
    temporary = target.with_name(f".{target.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _bytes_feature(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _int_feature(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
