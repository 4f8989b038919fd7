"""The TFRecord cache of sampled pairs as a store to train from.

A record is a `tf.train.Example` with `left`, `right` (bytes: the image file as it is, or the raw
uint8 crop), `genuine`, `left_id`, `right_id` (int64; image numbers of the index). RecordShard after shard
they are the sampler's own sequence.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from facepairs.errors import BadConfig, BadData
from facepairs.pipeline.decode import batch_decoder, plain
from facepairs.pipeline.records.manifest import CacheManifest, misplaced, read_manifest

INTERLEAVED_SHARDS = 16
SHUFFLE_BYTES = 64 << 20  # held to shuffle: thousands of JPEG pairs, 800 raw ones
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class RecordStore:
    """A cache to train from; `manifest` says what is in it."""

    folder: Path
    manifest: CacheManifest

    @classmethod
    def open(cls, folder: Path | str) -> "RecordStore":
        """Check a cache's manifest, file names and sizes; `facepairs cache check` reads it all.

        Raises BadData for whatever is missing, left over, cut or damaged.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        problems = misplaced(folder, manifest)
        for name, problem in problems.items():
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise BadData(
                f"{folder / name}: {problem}{more}; see all with: facepairs cache check {folder}, "
                "and build the cache anew"
            )
        return cls(folder, manifest)

    @property
    def pairs(self) -> int:
        """How many pairs a pass has."""
        return self.manifest.pairs

    def matches(
        self,
        index_fingerprint: str,
        people_digest: str,
        seed: int,
        genuine_share: float,
        frame_px: int,
        crop_px: int,
        *,
        rebuild: str,
    ) -> None:
        """Raise BadData, with `rebuild` as the command to run, unless the cache holds just this."""
        has = self.manifest
        stale = [
            f"{name} is {there}, not {wanted}"
            for name, there, wanted in (
                ("seed", has.seed, seed),
                ("genuine_share", has.genuine_share, genuine_share),
                ("frame_px", has.frame_px, frame_px),
                ("crop_px", has.crop_px, crop_px),
            )
            if there != wanted
        ]
        if has.people_digest != people_digest:
            stale.insert(0, "its pairs are of other people")
        if has.index_fingerprint != index_fingerprint:
            stale.insert(0, "the folder of faces is another or has changed")
        if stale:
            raise BadData(
                f"{self.folder}: not the pairs that this training asks for "
                f"({'; '.join(stale)}); build the cache anew with: {rebuild}"
            )

    def batches(
        self,
        batch_size: int,
        shuffle_seed: int | None,
        repeat: bool,
        start_step: int = 0,
        part: tuple[int, int] | None = None,
    ) -> tf.data.Dataset:
        """Read batches as `make_dataset` gives them: in order, or shuffled by a seed.

        Without a seed the pairs come in the sampler's order. With one, every pass has an order of
        its own, a function of seed and pass alone. With `repeat` passes follow without end, each
        `pairs // batch_size` steps long; a single pass ends with a batch that may be short.
        `start_step` steps are passed over without decoding them. `part` is that of `make_dataset`.

        Raises BadConfig for a batch larger than the cache. While iterating, raises
        tf.errors.FailedPreconditionError for a pass of another length than the manifest's,
        DataLossError for a damaged record, InvalidArgumentError for an image that cannot be
        decoded.
        """
        steps = self.pairs // batch_size if repeat else -(-self.pairs // batch_size)
        if not steps:
            raise BadConfig(
                f"{self.folder} holds {self.pairs:,} pairs, too few for a batch of {batch_size}; "
                "build a larger cache or use a smaller batch"
            )
        first, skipped = divmod(start_step, steps)
        shards = tf.constant([os.fsencode(self.folder / s.name) for s in self.manifest.shards])
        # A shard cut between two records ends without an error, so the count is checked.
        counted = tf.data.experimental.assert_cardinality(self.pairs)

        def one_pass(number: tf.Tensor) -> tf.data.Dataset:
            if shuffle_seed is None:
                records = tf.data.TFRecordDataset(shards, buffer_size=READ_BYTES)
            else:
                records = self._mixed(shards, shuffle_seed, number)
            return (
                records.apply(counted)
                .batch(batch_size, drop_remainder=repeat)
                .skip(tf.where(number == first, tf.constant(skipped, tf.int64), 0))
            )

        return (
            tf.data.Dataset.range(first, tf.int64.max if repeat else first + 1)
            .flat_map(plain(one_pass))
            .map(
                plain(self._decoder(batch_size, part)),
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
            .prefetch(tf.data.AUTOTUNE)
        )

    def _mixed(self, shards: tf.Tensor, seed: int, number: tf.Tensor) -> tf.data.Dataset:
        # Shuffling takes its other seed from the graph; unset, that would be the process's own.
        tf.compat.v1.set_random_seed(1 + seed % (2**31 - 2))
        held = max(1, SHUFFLE_BYTES * self.pairs // self.manifest.total_bytes)
        return (
            tf.data.Dataset.from_tensor_slices(shards)
            .shuffle(len(self.manifest.shards), 2 * number, reshuffle_each_iteration=False)
            .interleave(
                plain(lambda shard: tf.data.TFRecordDataset(shard, buffer_size=READ_BYTES)),
                cycle_length=INTERLEAVED_SHARDS,
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
            .shuffle(min(held, self.pairs), 2 * number + 1, reshuffle_each_iteration=False)
        )

    def _decoder(
        self, batch_size: int, part: tuple[int, int] | None
    ) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
        """Make a function from serialised records string[B] to a batch, all in one call."""
        side = self.manifest.crop_px
        begin, end = part or (0, batch_size)
        crops_of = batch_decoder(self.manifest.frame_px, side, 2 * (end - begin))
        label = {"genuine": tf.io.FixedLenFeature([], tf.int64)}
        wanted = {
            "left": tf.io.FixedLenFeature([], tf.string),
            "right": tf.io.FixedLenFeature([], tf.string),
            **label,
        }

        def decode(records: tf.Tensor) -> dict[str, tf.Tensor]:
            values = tf.io.parse_example(records[begin:end] if part else records, wanted)
            labels = (tf.io.parse_example(records, label) if part else values)["genuine"]
            images = tf.concat([values["left"], values["right"]], axis=0)
            if self.manifest.encoding == "raw":
                crops = tf.reshape(tf.io.decode_raw(images, tf.uint8), (-1, side, side, 3))
            else:
                crops = crops_of(images)
            return {"images": crops, "genuine": tf.cast(labels, tf.bool)}

        return decode
