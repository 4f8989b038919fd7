"""The `files` store: every image is read and decoded when it is needed."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage
from facepairs.images.crop import Crop, CropPlan
from facepairs.images.photo import read_image_file
from facepairs.pipeline.decode import Cropper, Numbers

MAX_BATCH_BYTES = 2**26  # the files of a larger batch are read one by one, to save memory

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

        A batch of `images` that TensorFlow crops, the usual case, has a graph for that number. The
        function raises `tf.errors.InvalidArgumentError` for an image that cannot be decoded.
        """

        def look_up(numbers: Numbers) -> tuple[np.bool_, npt.NDArray[np.object_], Any, Any]:
            # The paths are built on demand: a tensor of all takes over 100 bytes per image.
            small = self._index.sizes[numbers].sum() <= MAX_BATCH_BYTES
            fast, windows, back = self._cropper.place(numbers)
            usual = np.bool_(len(numbers) == images and small and fast.all())
            read = numbers.tolist() if usual else []
            paths = [os.fsencode(self._index.path(image)) for image in read]
            return usual, np.array(paths, np.object_), windows, back

        def load(numbers: tf.Tensor) -> tf.Tensor:
            def one_by_one() -> tf.Tensor:
                return tf.numpy_function(self._crop_each, [numbers], tf.uint8, stateful=False)

            def together() -> tf.Tensor:
                return self._cropper.read(
                    tf.ensure_shape(paths, [images]),
                    tf.ensure_shape(windows, [images, 4]),
                    tf.ensure_shape(back, [images, 2, 3]),
                )

            types = (tf.bool, tf.string, tf.int32, tf.float64)
            usual, paths, windows, back = tf.numpy_function(
                look_up, [numbers], types, stateful=False
            )
            crops = tf.cond(tf.ensure_shape(usual, []), together, one_by_one)
            return tf.ensure_shape(crops, (None, self.crop_px, self.crop_px, 3))

        return load

    def crop(self, image: int) -> Crop:
        """Read and crop one image by its number; raise BadImage."""
        path = self._index.path(image)
        try:
            return self._cropper.crop(read_image_file(path), image, str(path))
        except OSError as error:
            raise BadImage(f"{path}: {error.strerror}; repair or remove it") from None

    def _crop_each(self, images: Numbers) -> Crop:
        """Crop int[N] images; raise ValueError for BadImage, which TensorFlow passes on."""
        crops = np.empty((len(images), self.crop_px, self.crop_px, 3), np.uint8)
        try:
            for number, image in enumerate(images.tolist()):
                crops[number] = self.crop(image)
        except BadImage as error:
            raise ValueError(str(error)) from None
        return crops


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
