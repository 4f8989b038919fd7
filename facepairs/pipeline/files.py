"""The `files` store: every image is read and decoded when it is needed."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage
from facepairs.photos.crop import Crop, CropPlan
from facepairs.photos.photo import read_image_file
from facepairs.pipeline.decode import Cropper, Numbers

MAX_BATCH_BYTES = 2**26  # the files of a larger batch are read a few at a time, to save memory

READING_ERRORS = (  # of a photo that is damaged, gone or locked; not of memory or workers
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.FailedPreconditionError,
    tf.errors.UnknownError,
)


class FileStore:
    """A `Store` that decodes the images of an index in the dataset; it holds only the index.

    Args:
        index: The images.
        plan: How they are cropped.
    """

    def __init__(self, index: FaceIndex, plan: CropPlan) -> None:
        self.crop_px = plan.spec.crop_px
        self._index, self._cropper = index, Cropper(plan)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function from int32[N] image numbers to uint8[N, crop_px, crop_px, 3].

        A batch of `images` that need no shrinking, as LFW's, is decoded all at once, by a graph for
        that number; any other batch a few images at a time. The function raises
        `tf.errors.InvalidArgumentError` for an image that cannot be decoded.
        """
        types = (tf.bool, tf.string, tf.int32, tf.int32, tf.float64)
        folder = f"{self._index.root}/"

        def look_up(numbers: Numbers) -> tuple[Any, ...]:
            # The paths are built on demand: a tensor of all takes over 100 bytes per image. pathlib
            # would take nine times as long.
            paths = [os.fsencode(folder + self._index.name(image)) for image in numbers.tolist()]
            placement = self._cropper.place(numbers)
            small = self._index.sizes[numbers].sum() <= MAX_BATCH_BYTES
            simple = len(numbers) == images and small and self._cropper.is_simple(placement)
            return np.bool_(simple), np.array(paths, np.object_), *placement

        def load(numbers: tf.Tensor) -> tf.Tensor:
            def all_at_once() -> tf.Tensor:
                columns = ((paths, ()), (windows, (4,)), (back, (2, 3)))
                known = [tf.ensure_shape(column, [images, *shape]) for column, shape in columns]
                return self._cropper.read(*known)

            def a_few_at_a_time() -> tf.Tensor:
                return self._cropper.read_each(
                    numbers, paths, decoder, windows, back, self._crop_one
                )

            simple, paths, decoder, windows, back = tf.numpy_function(
                look_up, [numbers], types, stateful=False
            )
            crops = tf.cond(tf.ensure_shape(simple, []), all_at_once, a_few_at_a_time)
            return tf.ensure_shape(crops, (None, self.crop_px, self.crop_px, 3))

        return load

    def crop(self, image: int) -> Crop:
        """Read and crop one image by its number; raise BadImage."""
        path = self._index.path(image)
        try:
            return self._cropper.crop(read_image_file(path), image, str(path))
        except OSError as error:
            raise BadImage(f"{path}: {error.strerror}; repair or remove it") from None

    def _crop_one(self, image: np.int32) -> Crop:
        """Crop one image; raise ValueError for BadImage, which TensorFlow passes on."""
        try:
            return self.crop(int(image))
        except BadImage as error:
            raise ValueError(str(error)) from None


@contextlib.contextmanager
def photos_named(store: object) -> Iterator[None]:
    """Raise BadImage that names the photo where TensorFlow cannot read one of a FileStore's."""
    try:
        yield
    except READING_ERRORS:
        if isinstance(store, FileStore):
            for image in range(len(store._index)):
                store.crop(image)
        raise
