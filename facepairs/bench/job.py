"""What every row is given: the same pairs of the same folder, the same crop, the same batch."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler

SEED = 0
BLOCK_PAIRS, BLOCKS = 1024, 8


@dataclass(frozen=True)
class Spec:
    """One process's task, as it goes to the worker in JSON."""

    task: Literal["build", "row", "training"]
    name: str
    data: str
    batch_size: int
    frame_px: int
    crop_px: int
    variant: str = ""  # one of the row's variants
    cache: str = ""  # folder of the TFRecord cache, for the rows that have one
    seconds: float = 5.0  # of measuring at least
    model: str = ""  # of the training table


class Skip(Exception):
    """A row that this folder or machine has no use for; the message says why."""


class Batch(NamedTuple):
    """What a row yields: how many pairs, and images and labels in its library's own types.

    `images` is one array of the left images and then the right ones, or a tuple of the two.
    """

    pairs: int
    images: Any
    genuine: Any


def pair_count(batch_size: int) -> int:
    """How many pairs go round: whole batches of 8 blocks of 1,024."""
    return BLOCK_PAIRS * BLOCKS // batch_size * batch_size


class Job:
    """The pairs to load: the first 8,192 of the sampler's epoch 0, over and over.

    Cut to whole batches, so a batch has the same pairs in every row and on every pass. Raises
    BadData and NotEnough as FaceIndex and PairSampler do.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.batch_size, self.frame_px, self.crop_px = spec.batch_size, spec.frame_px, spec.crop_px
        self.index = FaceIndex.scan(spec.data)
        self.people = np.arange(len(self.index.people))
        self._sampler = PairSampler(self.index.first, self.people, SEED)
        self.aside_s = 0.0

    def draw(self) -> PairList:
        """Draw the pairs anew: the sampler is part of what a row costs."""
        blocks = [self._sampler.block(0, number, BLOCK_PAIRS) for number in range(BLOCKS)]
        whole = pair_count(self.batch_size)
        return PairList.of(
            *(
                np.concatenate([getattr(block, name) for block in blocks])[:whole]
                for name in ("left", "right", "genuine")
            )
        )

    def blocks(self) -> Iterator[PairList]:
        """Yield the pairs without end, drawn each time."""
        while True:
            yield self.draw()

    @cached_property
    def pairs(self) -> PairList:
        """The pairs as a list, for libraries that want one."""
        return self.draw()

    def batches(self) -> Iterator[PairList]:
        """Yield a batch of pairs at a time, without end."""
        for block in self.blocks():
            for start in range(0, len(block), self.batch_size):
                yield block.where(slice(start, start + self.batch_size))

    @cached_property
    def paths(self) -> list[str]:
        """Every image's whole path."""
        return [f"{self.index.root}/{name}" for name in self.index.names()]

    @cached_property
    def image_order(self) -> npt.NDArray[np.int32]:
        """int32[batches, 2·B]: the image numbers of every batch, lefts and then rights."""
        left, right = (
            side.reshape(-1, self.batch_size) for side in (self.pairs.left, self.pairs.right)
        )
        return np.concatenate([left, right], axis=1)

    def squares(
        self, images: npt.NDArray[np.int32], jpeg_only: bool = False
    ) -> npt.NDArray[np.int32]:
        """int32[N, 3]: top, left and side of every image's centre square, from its header.

        Raises Skip where an image is no JPEG and must be one.
        """
        from PIL import Image

        def square(number: int) -> tuple[int, int, int]:
            with Image.open(self.paths[number]) as image:
                if jpeg_only and image.format != "JPEG":
                    raise Skip(f"needs JPEGs alone; {self.paths[number]} is {image.format}")
                return window(*image.size, self)

        distinct, back = np.unique(images, return_inverse=True)
        return np.array([square(number) for number in distinct], np.int32)[back]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave a block's time out of the wait for the first batch."""
        started = time.perf_counter()
        yield
        self.aside_s += time.perf_counter() - started


def window(width: int, height: int, job: Job) -> tuple[int, int, int]:
    """Give top, left and side of the square that the pipelines cut out."""
    side = max(1, round(min(width, height) * (job.crop_px / job.frame_px)))
    return (height - side) // 2, (width - side) // 2, side
