"""The row of NVIDIA DALI, on the CPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import nvidia.dali.math as dali_math
from nvidia.dali import fn, pipeline_def, types

from facepairs.bench.job import FRAME_PX, Batch, Job
from facepairs.pipeline.decode import Cropper
from facepairs.support.platform import cores


def dali(job: Job) -> Iterator[Batch]:
    """Read files in the order of the pairs and decode their squares, one thread per core.

    Where all images have the same size and need no resizing, the graph has none: it halves the
    speed.
    """
    order = job.image_order
    genuine = job.pairs.genuine.reshape(-1, job.batch_size)
    files = [job.paths[image] for image in order.ravel()]
    labels = np.concatenate([genuine, genuine], axis=1).ravel().astype(int).tolist()
    squares = np.unique(Cropper(job.unaligned).place(order.ravel())[1], axis=0)

    @pipeline_def(batch_size=order.shape[1], num_threads=cores(), device_id=None)  # type: ignore[untyped-decorator]
    def graph() -> Any:
        data, label = fn.readers.file(files=files, labels=labels, prefetch_queue_depth=2)
        if len(squares) == 1 and squares[0, 2] == job.crop_px:
            top, left, side, _ = squares[0].tolist()
            return fn.decoders.image_slice(
                data, start=(top, left), shape=(side, side), axis_names="HW"
            ), label
        start, shape = _square(fn.peek_image_shape(data), job.crop_px / FRAME_PX)
        crops = fn.decoders.image_slice(data, start=start, shape=shape, axis_names="HW")
        return fn.resize(crops, size=(job.crop_px, job.crop_px), antialias=True), label

    pipeline = graph()
    pipeline.build()
    while True:
        crops, label = pipeline.run()
        images, numbers = np.asarray(crops.as_tensor()), np.asarray(label.as_tensor())
        yield Batch(job.batch_size, images, numbers[: job.batch_size, 0])


def _square(size: Any, share: float) -> tuple[Any, Any]:
    """Return corner and sides of the centre square, int32[2] each, as nodes of the graph."""
    sides = size[0:2]
    short = fn.cast(fn.reductions.min(sides), dtype=types.FLOAT)
    side = fn.cast(dali_math.floor(short * share + 0.5), dtype=types.INT32)
    shape = fn.stack(side, side)
    return fn.cast((sides - shape) // 2, dtype=types.INT32), shape
