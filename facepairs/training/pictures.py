"""`PairPictures`: pairs of faces in TensorBoard, as the network sees them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image, ImageDraw

from facepairs.data.pairs import PairList
from facepairs.training.inputs.data import TrainingData

SHOWN = 8  # pairs of a picture
COLUMNS = 2
CAPTION_PX, GAP_PX = 12, 4
Images = npt.NDArray[np.float32]


class PairPictures(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes pictures of pairs for TensorBoard, once an epoch.

    - `pairs/training`: the first pairs that are drawn for the epoch, after augmentation.
    - `pairs/worst_genuine`, `pairs/worst_impostors`: the validation pairs that the model judges
      worst, with their scores.

    Args:
        folder: TensorBoard's folder; the pictures go into `pictures` in it.
        data: The images and pairs.
        shows_worst: Whether the model's scores are in the order of the validation pairs, as they
            are on one device.
    """

    def __init__(self, folder: Path, data: TrainingData, shows_worst: bool) -> None:
        super().__init__()
        self._writer = tf.summary.create_file_writer(str(folder / "pictures"))
        self._shows_worst = shows_worst
        self._sampler, self._batch_size = data.sampler(), data.config.batch_size
        self._validation, self._load = data.validation_pairs(), data.store.loader(2 * SHOWN)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch
        pairs = self._sampler.block(epoch, 0, self._batch_size).where(slice(SHOWN))
        sides = self.model.seen_in_training(self._images(pairs))
        self._write("pairs/training", sides, map(_label, pairs.genuine))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if not self._shows_worst:
            return
        pairs = self._validation
        scores = np.asarray(self.model.pairs.scores)[: len(pairs)]
        for tag, kind, sign in (
            ("pairs/worst_genuine", pairs.genuine, 1),
            ("pairs/worst_impostors", ~pairs.genuine, -1),
        ):
            numbers = np.flatnonzero(kind)
            worst = numbers[np.argsort(sign * scores[numbers], kind="stable")[:SHOWN]]
            sides = map(self.model.preprocess, self._images(pairs.where(worst)))
            labels = [f"{_label(sign > 0)}, score {scores[number]:.3f}" for number in worst]
            self._write(tag, sides, labels)

    def _images(self, pairs: PairList) -> tuple[tf.Tensor, tf.Tensor]:
        """Load both sides of some pairs."""
        left, right = tf.split(self._load(tf.concat([pairs.left, pairs.right], axis=0)), 2)
        return left, right

    def _write(self, tag: str, sides: Iterable[Any], labels: Iterable[str]) -> None:
        left, right = map(np.asarray, sides)
        with self._writer.as_default(step=self._epoch + 1):
            tf.summary.image(tag, pair_sheet(left, right, labels)[None])
        self._writer.flush()


def _label(genuine: bool) -> str:
    return "genuine" if genuine else "impostor"


def pair_sheet(left: Images, right: Images, labels: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Draw pairs on one sheet, each with its label above it.

    Args:
        left: float32[N, side, side, 3] in [0, 1].
        right: Likewise.
        labels: At least N texts.

    Returns:
        The sheet, uint8[height, width, 3].
    """
    side = left.shape[1]
    wide, high = 2 * side + GAP_PX, side + CAPTION_PX + GAP_PX
    sheet = Image.new("RGB", (COLUMNS * wide, -(-len(left) // COLUMNS) * high), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (one, other, text) in enumerate(zip(left, right, labels, strict=False)):
        x, y = number % COLUMNS * wide, number // COLUMNS * high
        draw.text((x + 1, y), text, fill="black")
        pixels = np.clip(255 * np.concatenate([one, other], axis=1), 0, 255).astype(np.uint8)
        sheet.paste(Image.fromarray(pixels), (x, y + CAPTION_PX))
    return np.asarray(sheet)
