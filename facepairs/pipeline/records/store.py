"""Read the TFRecord cache of sampled pairs.

A record is a `tf.train.Example` with `left` and `right` (bytes: a crop's JPEG, or its
uint8 pixels), `genuine`,
`left_id` and `right_id` (int64; image numbers of the index). The shards, one after the other, have
the sampler's own sequence.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from facepairs.errors import BadConfig, BadData
from facepairs.pipeline.dataset import WHOLE, Batch, load_ahead, no_autograph
from facepairs.pipeline.decode import decode_jpegs
from facepairs.pipeline.records.manifest import (
    REBUILD,
    CacheManifest,
    check_sizes,
    read_manifest,
)
from facepairs.support import console
from facepairs.support.platform import cores

INTERLEAVED_SHARDS = 16
SHUFFLE_BYTES = 64 << 20  # of the shuffle buffer: thousands of JPEG pairs, 900 raw ones
READ_BYTES = 1 << 20
_DIFFERENCES = {
    "index_fingerprint": "the folder of faces is another or has changed",
    "people_digest": "its pairs are of other people",
    "detector": "its faces were found by another detector",
}


@dataclass(frozen=True)
class RecordStore:
    """A cache of pairs to train from.

    Attributes:
        folder: The cache.
        manifest: Its contents.
    """

    folder: Path
    manifest: CacheManifest

    @classmethod
    def open(cls, folder: Path | str) -> "RecordStore":
        """Check the manifest, the file names and sizes of a cache, without reading the shards.

        Raises:
            BadData: Something is missing, truncated or damaged.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        check_sizes(folder, manifest)
        return cls(folder, manifest)

    @property
    def pairs(self) -> int:
        """How many pairs the cache has."""
        return self.manifest.pairs

    def check_matches(self, **expected: object) -> None:
        """Check that the cache holds the pairs that a training needs.

        Args:
            **expected: Values of fields of `CacheManifest`.

        Raises:
            BadData: The cache holds other pairs; the message names the differences.
        """
        differences = [
            _DIFFERENCES.get(name, f"{name} is {actual}, not {value}")
            for name, value in expected.items()
            if (actual := getattr(self.manifest, name)) != value
        ]
        if differences:
            raise BadData(
                f"{self.folder}: not a cache of this training's pairs ({'; '.join(differences)}); "
                f"{REBUILD} with the training's own settings"
            )

    def find_damage(self) -> Path | None:
        """Read all shards; return the first with a damaged record or another number of records."""
        progress, read = console.progress("checking the cache"), 0
        for shard in self.manifest.shards:
            path = self.folder / shard.name
            records = tf.data.TFRecordDataset(os.fsencode(path), buffer_size=READ_BYTES)
            try:
                count = records.reduce(tf.constant(0, tf.int64), lambda number, _: number + 1)
            except tf.errors.OpError:
                return path
            if int(count) != shard.pairs:
                return path
            read += shard.pairs
            progress(read, self.pairs)
        return None

    def batches(
        self,
        batch_size: int,
        shuffle_seed: int | None,
        start: int | tf.Tensor = 0,
        part: tuple[int, int] = WHOLE,
    ) -> tf.data.Dataset:
        """Read batches as `make_dataset` builds them, without end.

        Args:
            batch_size: Pairs per batch; a pass over the cache has `pairs // batch_size` of them.
            shuffle_seed: None for the order of the shards; otherwise every pass has another order,
                a function of the seed and the pass.
            start: How many batches to skip without decoding them; a tensor is int64.
            part: As in `make_dataset`.

        Returns:
            The dataset. While iterating, it raises `tf.errors.FailedPreconditionError` if a pass
            has another length than in the manifest, `DataLossError` for a damaged record and
            `InvalidArgumentError` for an image that cannot be decoded.

        Raises:
            BadConfig: The batch is larger than the cache.
        """
        if self.pairs < batch_size:
            raise BadConfig(
                f"{self.folder} holds {self.pairs:,} pairs, too few for a batch of {batch_size}; "
                "build a larger cache or use a smaller batch"
            )
        steps = self.pairs // batch_size
        first_pass, skipped = start // steps, start % steps
        # A shard truncated between two records ends without an error, so records are counted.
        counted = tf.data.experimental.assert_cardinality(self.pairs)

        def one_pass(number: tf.Tensor) -> tf.data.Dataset:
            batches = self._records(shuffle_seed, number).apply(counted).batch(batch_size, True)
            return batches.skip(tf.where(number == first_pass, tf.cast(skipped, tf.int64), 0))

        passes = tf.data.Dataset.range(first_pass, tf.int64.max)
        batches = passes.flat_map(no_autograph(one_pass)).shard(*part)
        return load_ahead(batches, self._decoder(batch_size))

    def _records(self, shuffle_seed: int | None, number: tf.Tensor) -> tf.data.Dataset:
        """Read the serialised records of one pass."""
        names = [os.fsencode(self.folder / shard.name) for shard in self.manifest.shards]
        shards = tf.constant(names)
        if shuffle_seed is None:
            return tf.data.TFRecordDataset(shards, buffer_size=READ_BYTES)
        # Shuffling also uses the graph's seed; if unset, that would be the process's own.
        tf.compat.v1.set_random_seed(1 + shuffle_seed % (2**31 - 2))
        buffered = max(1, SHUFFLE_BYTES * self.pairs // self.manifest.total_bytes)
        return (
            tf.data.Dataset.from_tensor_slices(shards)
            .shuffle(len(names), 2 * number, reshuffle_each_iteration=False)
            .interleave(
                no_autograph(lambda shard: tf.data.TFRecordDataset(shard, buffer_size=READ_BYTES)),
                cycle_length=INTERLEAVED_SHARDS,
                num_parallel_calls=cores(),
                deterministic=True,
            )
            .shuffle(min(buffered, self.pairs), 2 * number + 1, reshuffle_each_iteration=False)
        )

    def _decoder(self, batch_size: int) -> Callable[[tf.Tensor], Batch]:
        """Return a function from serialised records, string[B], to a batch; see `batches`."""
        features = {
            "left": tf.io.FixedLenFeature([], tf.string),
            "right": tf.io.FixedLenFeature([], tf.string),
            "genuine": tf.io.FixedLenFeature([], tf.int64),
        }
        count, side_px = 2 * batch_size, self.manifest.crop_px

        def decode(records: tf.Tensor) -> Batch:
            pairs = tf.io.parse_example(records, features)
            crops = tf.ensure_shape(tf.concat([pairs["left"], pairs["right"]], axis=0), [count])
            if self.manifest.encoding == "raw":
                pixels = tf.io.decode_raw(crops, tf.uint8, fixed_length=3 * side_px**2)
                images = tf.reshape(pixels, [count, side_px, side_px, 3])
            else:
                images = decode_jpegs(crops, side_px)
            left, right = tf.split(images, 2)
            return (left, right), tf.cast(pairs["genuine"], tf.float32)

        return decode
