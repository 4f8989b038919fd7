"""The `files` store: every image is read and decoded when it is needed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage
from facepairs.images.crop import Crop
from facepairs.images.crop_plan import CropPlan
from facepairs.images.photo import read_image_file
from facepairs.pipeline.decode import MAX_BATCH_BYTES, ImageCropper, Maps, crop_each, read_files

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

    arrays: tuple[tf.Tensor, ...] = ()

    def __init__(self, index: FaceIndex, plan: CropPlan) -> None:
        self.crop_px = plan.spec.crop_px
        self._index, self._cropper = index, ImageCropper(plan)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function from int32[N] image numbers to uint8[N, crop_px, crop_px, 3].

        A batch of `images` plain JPEGs, the usual case, is decoded by a graph for that number. The
        function raises `tf.errors.InvalidArgumentError` for an image that cannot be decoded.
        """
        usual = self._look_up(images)
        jpegs = self._cropper.jpegs

        def load(numbers: tf.Tensor) -> tf.Tensor:
            def one_by_one() -> tf.Tensor:
                return crop_each(self.crop, self.crop_px, [numbers])

            paths, to_crop, is_usual = tf.numpy_function(
                usual, [numbers], (tf.string, tf.float64, tf.bool), stateful=False
            )
            crops = tf.cond(
                tf.ensure_shape(is_usual, []),
                lambda: jpegs.batch(
                    read_files(tf.ensure_shape(paths, [images])), to_crop, one_by_one
                ),
                one_by_one,
            )
            return tf.ensure_shape(crops, (None, self.crop_px, self.crop_px, 3))

        return load

    def gather(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Return the pixels unchanged: the dataset has decoded them."""
        return images

    def crop(self, image: int) -> Crop:
        """Read and crop one image by its number; raise BadImage."""
        path = self._index.path(image)
        try:
            return self._cropper.crop(read_image_file(path), image, str(path))
        except OSError as error:
            raise BadImage(f"{path}: {error.strerror}; repair or remove it") from None

    def _look_up(
        self, usual: int
    ) -> Callable[[npt.NDArray[np.integer[Any]]], tuple[npt.NDArray[np.object_], Maps, np.bool_]]:
        """Return a function from int[N] image numbers to what a batch of plain JPEGs needs.

        It returns object[N] paths, float64[N, 2, 3] maps to the crops and whether this is such a
        batch, of `usual` images. The paths are built on demand: a tensor of all paths takes over
        100 bytes per image.
        """
        index, cropper = self._index, self._cropper

        def look_up(
            images: npt.NDArray[np.integer[Any]],
        ) -> tuple[npt.NDArray[np.object_], Maps, np.bool_]:
            small = index.sizes[images].sum() <= MAX_BATCH_BYTES
            is_usual = np.bool_(len(images) == usual and small and cropper.plan.plain[images].all())
            paths = index.encoded_paths(images) if is_usual else []
            return np.array(paths, np.object_), cropper.maps(images), is_usual

        return look_up


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
