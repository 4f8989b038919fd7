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
from facepairs.photos.photo_table import inspect_photos
from facepairs.support.words import command_line

SEED = 0
FRAME_PX = 250
BLOCK_PAIRS, BLOCKS = 1024, 8
PLAN = "plan"  # the file of the crop plan, pickled


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
        index: The images.
        sampler: Draws the pairs.

    Raises:
        BadData: If the folder cannot be indexed.
        NotEnough: If no pairs can be drawn from it.
    """

    def __init__(self, spec: Spec) -> None:
        self.settings, self.name = spec.settings, spec.name
        self.batch_size, self.crop_px = spec.settings.batch_size, spec.settings.crop_px
        self._plan_file = Path(spec.folder) / PLAN
        self.cache = Path(spec.folder) / f"{spec.name}.store"
        self.index = _draw_people(spec.settings)
        self.sampler = PairSampler(self.index.first, np.arange(len(self.index.people)), SEED)

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
        """Find the face in every photo, and save how photos are cropped, for all workers.

        It reads every file once, so that no row waits for the disk.

        Raises:
            BadData: A photo cannot be read or shows no face; names the first.
        """
        table = inspect_photos(self.index, self.settings.align)
        for image, (_, reason) in sorted(table.problems.items()):
            raise BadData(
                f"{self.index.path(image)}: {reason}; list all of them with: "
                + command_line("data", "check", self.index.root)
            )
        plan = table.crop_plan(CropSpec(FRAME_PX, self.crop_px), self.settings.align)
        self._plan_file.write_bytes(pickle.dumps(plan))

    @cached_property
    def plan(self) -> CropPlan:
        """How the images are cropped, as `prepare` has saved it."""
        plan: CropPlan = pickle.loads(self._plan_file.read_bytes())  # noqa: S301 - written by us
        return plan

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
