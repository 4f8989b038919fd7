"""`Network`: one of the models by name, as training and export see it.

Training feeds uint8[2·B, crop_px, crop_px, 3], the B left images before the B right ones, and gets
float32[B] scores (logits of "genuine": higher is more alike). The exported network takes uint8
images too: casting, scaling and resizing are layers of it, so nothing about preprocessing is left
to a flag.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import keras
from keras import ops

from facepairs.models.augment import RandomFace
from facepairs.models.difference import difference_head
from facepairs.models.pixels import pixel_head
from facepairs.models.prepare import prepare_layers

HEADS: dict[str, Callable[[int], keras.Model]] = {
    "difference": difference_head,
    "pixels": pixel_head,
}
SMALLEST_PX, LARGEST_PX = 64, 224


@dataclass(frozen=True)
class Network:
    """A model's parts: `prepare` (uint8 → float), `augment`, and `head` ([left, right] → score)."""

    name: str
    kind: Literal["pair"]
    crop_px: int
    image_px: int
    prepare: keras.Model
    augment: RandomFace
    head: keras.Model

    @property
    def trainable(self) -> bool:
        """Whether there is anything to learn."""
        return bool(self.head.trainable_variables)

    def scores(self, images: Any, training: bool = False) -> Any:
        """Score a batch laid out as lefts, then rights: uint8[2·B, …] → float32[B]."""
        return self.compare(self.seen(images, training), training)

    def seen(self, images: Any, training: bool = False) -> Any:
        """Give the images as the network sees them: float32[2·B, image_px, image_px, 3]."""
        return self.augment(self.prepare(images), training=training)

    def compare(self, seen: Any, training: bool = False) -> Any:
        """Score a batch of prepared images."""
        left, right = ops.split(seen, 2, axis=0)
        return ops.reshape(self.head([left, right], training=training), (-1,))

    def inference_model(self) -> keras.Model:
        """Join the parts for export: inputs `left` and `right`, output `score`."""
        shape = (self.crop_px, self.crop_px, 3)
        sides = [keras.Input(shape, dtype="uint8", name=side) for side in ("left", "right")]
        score = self.head([self.prepare(side) for side in sides])
        return keras.Model(sides, score, name=self.name)


def build_network(
    name: str, crop_px: int, image_px: int, augment: float, erase: float = 0.0
) -> Network:
    """Build a model by name (`difference`, `pixels`) with fresh weights from Keras's global seed.

    `image_px` 64 … 224. Raises ValueError for another name or size; configuration checks both.
    """
    if name not in HEADS or not SMALLEST_PX <= image_px <= LARGEST_PX:
        raise ValueError(f"model {name!r} at {image_px} pixels; known: {', '.join(HEADS)}")
    prepare = keras.Sequential(
        [keras.Input((crop_px, crop_px, 3), dtype="uint8"), *prepare_layers(crop_px, image_px)],
        name="prepare",
    )
    head = HEADS[name](image_px)
    return Network(name, "pair", crop_px, image_px, prepare, RandomFace(augment, erase), head)
