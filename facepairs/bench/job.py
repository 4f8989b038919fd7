"""The work that every row does: the same pairs of the same folder, the same crop and batch size."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align, ImageModel
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadData
from facepairs.faces.inspection import inspect_photos
from facepairs.faces.photo_table import PhotoTable
from facepairs.images.crop import CropSpec
from facepairs.images.crop_plan import LFW_FRAME, CropPlan
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.support.words import command_line

SEED = 0
FRAME_PX = 250
BLOCK_PAIRS, BLOCKS = 1024, 8
Task = Literal["build", "row", "training"]


@dataclass(frozen=True)
class BenchSettings:
    """What all measurements of a bench have in common.

    Attributes:
        data: Folder of Person_Name/photo.jpg.
        batch_size: Pairs per batch.
        crop_px: Side of the crops, in pixels of a 250-pixel frame.
        seconds: Least time to measure a row in a round.
        model: Network of the training table.
        align: Whether the stores cut aligned faces or centre squares.
        most_images: Use people drawn at random who have about this many images together; None: all.
    """

    data: str
    batch_size: int = 64
    crop_px: int = 112
    seconds: float = 5.0
    model: ImageModel = "difference"
    align: Align = "landmarks"
    most_images: int | None = None


@dataclass(frozen=True)
class Spec:
    """One measurement, sent to its worker process as JSON.

    Attributes:
        settings: What all measurements have in common.
        task: Build a row's cache, measure a row, or measure training from a row's store.
        name: Name of the row.
        function: The row's function as "module:name"; see `rows.Row`.
        module_folder: Folder to import the function's module from; "" inside this package.
        cache: Path of the row's cache on disk; "" for rows without one.
        plan: File of the crop plan, as `save_plan` writes it; "" to inspect the photos again.
    """

    settings: BenchSettings
    task: Task = "row"
    name: str = ""
    function: str = ""
    module_folder: str = ""
    cache: str = ""
    plan: str = ""


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


def inspect_all(
    index: FaceIndex, align: Align, progress: ProgressCallback = ignore_progress
) -> PhotoTable:
    """Read every photo and find its face.

    Raises:
        BadData: A photo cannot be read or shows no face; names the first.
    """
    table = inspect_photos(index, align, progress)
    for image, (_, reason) in sorted(table.problems.items()):
        raise BadData(
            f"{index.path(image)}: {reason}; list all of them with: "
            + command_line("data", "check", index.root)
        )
    return table


def save_plan(path: Path, plan: CropPlan) -> None:
    """Write how images are cropped; workers then need not inspect them."""
    to_crop = np.zeros(0) if plan.to_crop is None else plan.to_crop
    np.savez(path, plain_px=plan.plain_px, to_crop=to_crop, alignment=plan.alignment)


def pair_count(batch_size: int) -> int:
    """Return how many pairs a pass has: 8 blocks of 1,024, cut to whole batches."""
    return BLOCK_PAIRS * BLOCKS // batch_size * batch_size


class Job:
    """The pairs to load: the first 8,192 of the sampler's epoch 0, again and again.

    They are cut to whole batches, so that a batch has the same pairs in every row and every pass.

    Args:
        spec: The measurement.

    Attributes:
        setup_s: Seconds spent in `setup` blocks.

    Raises:
        BadData: If the folder cannot be indexed.
        NotEnough: If no pairs can be drawn from it.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.batch_size, self.crop_px = spec.settings.batch_size, spec.settings.crop_px
        self.frame_px = FRAME_PX
        self.index = _draw_people(FaceIndex.scan(spec.settings.data), spec.settings.most_images)
        self.people = np.arange(len(self.index.people))
        self._sampler = PairSampler(self.index.first, self.people, SEED)
        self.setup_s = 0.0

    def draw(self) -> PairList:
        """Draw the pairs of one pass. Rows call this each pass: sampling is part of their cost."""
        blocks = [self._sampler.block(0, number, BLOCK_PAIRS) for number in range(BLOCKS)]
        return PairList.join(blocks).where(slice(pair_count(self.batch_size)))

    def blocks(self) -> Iterator[PairList]:
        """Yield the pairs of one pass after another, without end."""
        while True:
            yield self.draw()

    @cached_property
    def pairs(self) -> PairList:
        """The pairs of one pass, for libraries that need a list."""
        return self.draw()

    def batches(self) -> Iterator[PairList]:
        """Yield one batch of pairs at a time, without end."""
        for block in self.blocks():
            for start in range(0, len(block), self.batch_size):
                yield block.where(slice(start, start + self.batch_size))

    @cached_property
    def plan(self) -> CropPlan:
        """How the images are cropped.

        Raises:
            BadData: An image cannot be read, or shows no face.
        """
        spec = CropSpec(self.frame_px, self.crop_px)
        if not self.spec.plan:
            align = self.spec.settings.align
            return inspect_all(self.index, align).crop_plan(spec, align)
        with np.load(self.spec.plan) as saved:
            alignment = str(saved["alignment"])
            to_crop = None if alignment == LFW_FRAME else saved["to_crop"]
            return CropPlan(spec, saved["plain_px"], to_crop, alignment)

    @property
    def unaligned_plan(self) -> CropPlan:
        """The centre squares of the same images."""
        return CropPlan(self.plan.spec, self.plan.plain_px)

    @cached_property
    def paths(self) -> list[str]:
        """The full path of every image."""
        return [f"{self.index.root}/{name}" for name in self.index.names()]

    @cached_property
    def image_order(self) -> npt.NDArray[np.int32]:
        """The image numbers of every batch, left then right: int32[batches, 2 * batch_size]."""
        left, right = (
            side.reshape(-1, self.batch_size) for side in (self.pairs.left, self.pairs.right)
        )
        return np.concatenate([left, right], axis=1)

    def squares(
        self, images: npt.NDArray[np.int32], jpeg_only: bool = False
    ) -> npt.NDArray[np.int32]:
        """Return the centre square of every image, read from its header.

        Args:
            images: Image numbers, int32[N].
            jpeg_only: Refuse images that are not JPEGs.

        Returns:
            Top, left and side in pixels, int32[N, 3].

        Raises:
            Skip: If an image is not a JPEG and `jpeg_only` is true.
        """
        from PIL import Image

        def square(number: int) -> tuple[int, int, int]:
            with Image.open(self.paths[number]) as image:
                if jpeg_only and image.format != "JPEG":
                    raise Skip(f"needs JPEGs only; {self.paths[number]} is {image.format}")
                return centre_square(*image.size, self)

        distinct, inverse = np.unique(images, return_inverse=True)
        return np.array([square(number) for number in distinct], np.int32)[inverse]

    @contextmanager
    def setup(self) -> Iterator[None]:
        """Exclude the time of a block from the wait for the first batch."""
        started = time.perf_counter()
        yield
        self.setup_s += time.perf_counter() - started


def _draw_people(index: FaceIndex, most_images: int | None) -> FaceIndex:
    if most_images is None or len(index) <= most_images:
        return index
    order = np.random.Generator(np.random.Philox(SEED)).permutation(len(index.people))
    counts = index.image_counts
    drawn = order[np.cumsum(counts[order]) - counts[order] < most_images]
    left_out = np.repeat(~np.isin(np.arange(len(index.people)), drawn), counts)
    return index.without(np.flatnonzero(left_out).tolist())


def centre_square(width: int, height: int, job: Job) -> tuple[int, int, int]:
    """Return top, left and side, in pixels, of the square that every row crops.

    Args:
        width: Of the image, in pixels.
        height: Of the image, in pixels.
        job: The measurement's job, which has the sizes of frame and crop.
    """
    side = max(1, round(min(width, height) * (job.crop_px / job.frame_px)))
    return (height - side) // 2, (width - side) // 2, side
