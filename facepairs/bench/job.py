"""The work that rows share: the same pairs of the same folder, and a crop and batch size to use.

A row is a function that takes a `Job` and yields a `Batch` after the other, without end. It raises
`Skip` where it cannot run.
"""

import pickle
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bench.rows import Settings, Spec
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadData
from facepairs.photos.crop import CropPlan, CropSpec
from facepairs.photos.photo_table import photo_records, plan_crops, unusable_photos
from facepairs.support import console
from facepairs.support.words import command_line, counted

SEED = 0
FRAME_PX = 250
BLOCK_PAIRS, BLOCKS = 1024, 8
PREPARED = "prepared"  # the file with the index and the crop plan, pickled


class Skip(Exception):
    """Raised by a row that cannot run on this folder or machine; the message says why."""


class Batch(NamedTuple):
    """A batch that a row yields, in the types of the row's own library.

    Attributes:
        pairs: Number of pairs.
        images: One array with the left images first and the right ones after them, or a tuple of
            two arrays.
        genuine: One label per pair.
    """

    pairs: int
    images: Any
    genuine: Any


class Job:
    """The pairs to load: the first 8,192 of the sampler's epoch 0, again and again.

    They are cut to whole batches, so that a batch of this size has the same pairs in every pass.

    Args:
        spec: The run.

    Attributes:
        settings: Those of the bench.
        name: Name of the row.
        batch_size: Pairs per batch.
        crop_px: Side of the crops.
        cache: Path of the row's cache on disk.
    """

    def __init__(self, spec: Spec) -> None:
        self.settings, self.name = spec.settings, spec.name
        self.batch_size, self.crop_px = spec.settings.batch_size, spec.settings.crop_px
        self._prepared_file = Path(spec.folder) / PREPARED
        self.cache = Path(spec.folder) / f"{spec.name}.store"

    @cached_property
    def sampler(self) -> PairSampler:
        """The sampler of the pairs; raises `NotEnough` if the photos make none."""
        return PairSampler(self.index.first, np.arange(len(self.index.people)), SEED)

    def blocks(self) -> Iterator[PairList]:
        """Yield the pairs of one pass after another, without end; sampling them is part of it."""
        whole_batches = BLOCK_PAIRS * BLOCKS // self.batch_size * self.batch_size
        while True:
            blocks = [self.sampler.block(0, number, BLOCK_PAIRS) for number in range(BLOCKS)]
            yield PairList.join(blocks).where(slice(whole_batches))

    @cached_property
    def pairs(self) -> PairList:
        """The pairs of one pass, for libraries that need a list."""
        return next(self.blocks())

    def batches(self) -> Iterator[PairList]:
        """Yield one batch of pairs at a time, without end."""
        for block in self.blocks():
            for start in range(0, len(block), self.batch_size):
                yield block.where(slice(start, start + self.batch_size))

    @cached_property
    def image_order(self) -> npt.NDArray[np.int32]:
        """The image numbers of every batch, left then right: int32[batches, 2 * batch_size]."""
        left, right = (
            side.reshape(-1, self.batch_size) for side in (self.pairs.left, self.pairs.right)
        )
        return np.concatenate([left, right], axis=1)

    @cached_property
    def paths(self) -> list[str]:
        """The full path of every image."""
        return [f"{self.index.root}/{name}" for name in self.index.names()]

    def prepare(self) -> None:
        """Find the face in every photo, and save index and crop plan for all workers.

        It reads every file once, so that no row waits for the disk. Photos that cannot be read or
        show no face are left out and counted.

        Raises:
            BadData: The folder cannot be indexed, or none of its photos can be used.
        """
        index, align = _draw_people(self.settings), self.settings.align
        records = list(photo_records(index, align))
        if problems := unusable_photos(records, align):
            image, reason = min(problems.items())
            hint = command_line("data", "check", index.root)
            first = f"{index.path(image)}: {reason}; list all of them with: {hint}"
            if len(problems) == len(index):
                raise BadData(first)
            console.log(f"{counted(len(problems), 'photo')} left out, such as {first}")
            index = index.without(problems)
            records = [record for image, record in enumerate(records) if image not in problems]
        plan = plan_crops(records, CropSpec(FRAME_PX, self.crop_px), align)
        self._prepared_file.write_bytes(pickle.dumps((index, plan)))

    @cached_property
    def _prepared(self) -> tuple[FaceIndex, CropPlan]:
        data = self._prepared_file.read_bytes()
        saved: tuple[FaceIndex, CropPlan] = pickle.loads(data)  # noqa: S301 - written by us
        return saved

    @property
    def index(self) -> FaceIndex:
        """The photos, as `prepare` has saved them."""
        return self._prepared[0]

    @property
    def plan(self) -> CropPlan:
        """How the photos are cropped, as `prepare` has saved it."""
        return self._prepared[1]

    @property
    def unaligned(self) -> CropPlan:
        """The plan that takes the centre square of every image."""
        return CropPlan(self.plan.spec, self.plan.jpegs)


def _draw_people(settings: Settings) -> FaceIndex:
    """Return the index of the folder, or of as many of its people as are wanted."""
    index = FaceIndex.scan(settings.data)
    most = settings.most_images
    if most is None or len(index) <= most:
        return index
    order = np.random.Generator(np.random.Philox(SEED)).permutation(len(index.people))
    counts = index.image_counts
    drawn = order[np.cumsum(counts[order]) - counts[order] < most]
    left_out = np.repeat(~np.isin(np.arange(len(index.people)), drawn), counts)
    return index.without(np.flatnonzero(left_out).tolist())
