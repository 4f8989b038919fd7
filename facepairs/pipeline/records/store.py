"""Read the TFRecord cache of sampled pairs.

A record is a `tf.train.Example` with `left` and `right` (bytes: a JPEG file, or the crop's uint8
pixels, known by their size), `left_map` and `right_map` (bytes: float64[2, 3], the map from a file
to its crop), `genuine`, `left_id` and `right_id` (int64; image numbers of the index). The shards,
one after the other, have the sampler's own sequence.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from facepairs.errors import BadConfig, BadData, BadImage
from facepairs.images.crop import Crop, CropSpec
from facepairs.images.crop_plan import LFW_FRAME
from facepairs.pipeline.dataset import load_ahead
from facepairs.pipeline.decode import JpegCropper, Maps, crop_each, no_autograph
from facepairs.pipeline.records.check import compare_sizes, file_sizes
from facepairs.pipeline.records.manifest import REBUILD, CacheManifest, read_manifest
from facepairs.pipeline.records.shard import crop_bytes
from facepairs.support.platform import cores
from facepairs.support.words import command_line

INTERLEAVED_SHARDS = 16
SHUFFLE_BYTES = 64 << 20  # of the shuffle buffer: thousands of JPEG pairs, 800 raw ones
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
            BadData: Something is missing, left over, truncated or damaged.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        problems = compare_sizes(file_sizes(folder), manifest)
        for name, problem in problems.items():
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise BadData(
                f"{folder / name}: {problem}{more}; see all with: "
                f"{command_line('cache', 'check', folder)}, and {REBUILD}"
            )
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

    def batches(
        self,
        batch_size: int,
        shuffle_seed: int | None,
        repeat: bool,
        start_step: int = 0,
        pair_range: tuple[int, int] | None = None,
    ) -> tf.data.Dataset:
        """Read batches as `make_dataset` builds them.

        Args:
            batch_size: Pairs per batch.
            shuffle_seed: None for the sampler's order; otherwise every pass has another order, a
                function of the seed and the pass.
            repeat: Whether passes follow one another without end, each of `pairs // batch_size`
                batches; a single pass ends with a batch that may be smaller.
            start_step: How many batches to skip without decoding them.
            pair_range: The pairs [begin, end) of each batch whose images are loaded, as in
                `make_dataset`.

        Returns:
            The dataset. While iterating, it raises `tf.errors.FailedPreconditionError` if a pass
            has another length than in the manifest, `DataLossError` for a damaged record and
            `InvalidArgumentError` for an image that cannot be decoded.

        Raises:
            BadConfig: The batch is larger than the cache.
        """
        steps = self.pairs // batch_size if repeat else -(-self.pairs // batch_size)
        if not steps:
            raise BadConfig(
                f"{self.folder} holds {self.pairs:,} pairs, too few for a batch of {batch_size}; "
                "build a larger cache or use a smaller batch"
            )
        first_pass, skipped = divmod(start_step, steps)
        # A shard truncated between two records ends without an error, so records are counted.
        counted = tf.data.experimental.assert_cardinality(self.pairs)

        def one_pass(number: tf.Tensor) -> tf.data.Dataset:
            return (
                self._records(shuffle_seed, number)
                .apply(counted)
                .batch(batch_size, drop_remainder=repeat)
                .skip(tf.where(number == first_pass, tf.constant(skipped, tf.int64), 0))
            )

        passes = tf.data.Dataset.range(first_pass, tf.int64.max if repeat else first_pass + 1)
        batches = passes.flat_map(no_autograph(one_pass))
        return load_ahead(batches, self._decoder(batch_size, pair_range))

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

    def _decoder(
        self, batch_size: int, pair_range: tuple[int, int] | None
    ) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
        """Return a function from serialised records, string[B], to a batch."""
        manifest = self.manifest
        begin, end = pair_range or (0, batch_size)
        label = {"genuine": tf.io.FixedLenFeature([], tf.int64)}
        names = ("left", "right", "left_map", "right_map")
        stored = {name: tf.io.FixedLenFeature([], tf.string) for name in names}
        crops_of = _crops_of(manifest, 2 * (end - begin))

        def decode(records: tf.Tensor) -> dict[str, tf.Tensor]:
            own = records[begin:end] if pair_range else records
            values = tf.io.parse_example(own, {**stored, **label})
            labels = (tf.io.parse_example(records, label) if pair_range else values)["genuine"]
            contents = tf.concat([values["left"], values["right"]], axis=0)
            maps = tf.concat([values["left_map"], values["right_map"]], axis=0)
            to_crop = tf.reshape(tf.io.decode_raw(maps, tf.float64), (-1, 2, 3))
            return {"images": crops_of(contents, to_crop), "genuine": tf.cast(labels, tf.bool)}

        return decode


def _crops_of(manifest: CacheManifest, images: int) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return a function from stored contents, string[N], and maps, float64[N, 2, 3], to crops.

    Args:
        manifest: Contents of the cache.
        images: The usual N.
    """
    side, pixel_bytes = manifest.crop_px, crop_bytes(manifest.crop_px)
    aligned = manifest.alignment != LFW_FRAME
    jpegs = JpegCropper(CropSpec(manifest.frame_px, side), aligned)

    def pixels(contents: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.io.decode_raw(contents, tf.uint8), (-1, side, side, 3))

    def crop(content: bytes, to_crop: Maps) -> Crop:
        if len(content) == pixel_bytes:
            return np.frombuffer(content, np.uint8).reshape(side, side, 3)
        cropped = jpegs.crop(content, to_crop)
        if cropped is None:
            raise BadImage("a photo in the cache is no JPEG that can be read quickly")
        return cropped

    def crops_of(contents: tf.Tensor, to_crop: tf.Tensor) -> tf.Tensor:
        def one_by_one() -> tf.Tensor:
            return crop_each(crop, side, [contents, to_crop])

        is_file = tf.not_equal(tf.strings.length(contents), pixel_bytes)
        usual = tf.logical_and(tf.reduce_all(is_file), tf.equal(tf.size(contents), images))
        return tf.cond(
            usual,
            lambda: jpegs.batch(tf.ensure_shape(contents, [images]), to_crop, one_by_one),
            one_by_one,
        )

    return pixels if manifest.encoding == "raw" else crops_of
