"""The models by name, as training and export see them.

Training feeds uint8[2·B, crop_px, crop_px, 3], the B left images before the B right ones, and gets
float32[B] scores: higher is more alike. The exported network takes uint8 images too: casting,
scaling and resizing are layers of it, so nothing about preprocessing is left to a flag.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import keras
from keras import ops

from facepairs.models.augment import RandomFace
from facepairs.models.difference import difference_head
from facepairs.models.losses import BinaryLogit, InBatchContrastive
from facepairs.models.pixels import pixel_head
from facepairs.models.prepare import prepare_layers
from facepairs.models.tower import face_tower, with_mirror_image

SMALLEST_PX, LARGEST_PX = 64, 224
TEMPERATURE = 0.1


@dataclass(frozen=True)
class Network(ABC):
    """A model's parts: `prepare` (uint8 → float), `augment`, and `head` with the weights."""

    kind: ClassVar[Literal["pair", "embedding"]]
    inputs: ClassVar[tuple[str, ...]]
    output: ClassVar[str]

    name: str
    crop_px: int
    image_px: int
    prepare: keras.Model
    augment: RandomFace
    head: keras.Model

    @property
    def trainable(self) -> bool:
        """Whether there is anything to learn."""
        return bool(self.head.trainable_variables)

    def seen(self, images: Any, training: bool = False) -> Any:
        """Give the images as the network sees them: float32[2·B, image_px, image_px, 3]."""
        return self.augment(self.prepare(images), training=training)

    @abstractmethod
    def scores(self, images: Any) -> Any:
        """Score a batch laid out as lefts, then rights: uint8[2·B, …] → float32[B]."""

    @abstractmethod
    def loss(self, images: Any, genuine: Any) -> Any:
        """Give what training lowers: uint8[2·B, …] images, float32[B] labels → scalar."""

    @abstractmethod
    def inference_model(self) -> keras.Model:
        """Join the parts for export: uint8 `inputs`, one float32 `output`."""

    def _faces(self) -> list[keras.KerasTensor]:
        shape = (self.crop_px, self.crop_px, 3)
        return [keras.Input(shape, dtype="uint8", name=name) for name in self.inputs]


class PairNetwork(Network):
    """Two faces in, one logit of "genuine" out."""

    kind = "pair"
    inputs = ("left", "right")
    output = "score"

    def _compare(self, seen: Any, training: bool) -> Any:
        left, right = ops.split(seen, 2, axis=0)
        return ops.reshape(self.head([left, right], training=training), (-1,))

    def scores(self, images: Any) -> Any:
        return self._compare(self.seen(images), training=False)

    def loss(self, images: Any, genuine: Any) -> Any:
        return BinaryLogit()(self._compare(self.seen(images, True), training=True), genuine)

    def inference_model(self) -> keras.Model:
        sides = self._faces()
        score = self.head([self.prepare(side) for side in sides])
        return keras.Model(sides, score, name=self.name)


class EmbeddingNetwork(Network):
    """A Siamese tower: one face in, its embedding out; a score is the cosine of two embeddings."""

    kind = "embedding"
    inputs = ("image",)
    output = "embedding"

    def scores(self, images: Any) -> Any:
        left, right = ops.split(with_mirror_image(self.head, self.seen(images)), 2, axis=0)
        return ops.sum(left * right, axis=1)

    def loss(self, images: Any, genuine: Any) -> Any:
        embeddings = self.head(self.seen(images, training=True), training=True)
        left, right = ops.split(embeddings, 2, axis=0)
        return InBatchContrastive(TEMPERATURE)(left, right, genuine)

    def inference_model(self) -> keras.Model:
        (face,) = self._faces()
        embedding = with_mirror_image(self.head, self.prepare(face))
        return keras.Model(face, embedding, name=self.name)


MODELS: dict[str, tuple[type[Network], Callable[[int], keras.Model]]] = {
    "siamese": (EmbeddingNetwork, face_tower),
    "difference": (PairNetwork, difference_head),
    "pixels": (PairNetwork, pixel_head),
}


def build_network(
    name: str, crop_px: int, image_px: int, augment: float, erase: float = 0.0
) -> Network:
    """Build a model by name with fresh weights from Keras's global seed.

    `image_px` 64 … 224. Raises ValueError for another name or size; configuration checks both.
    """
    if name not in MODELS or not SMALLEST_PX <= image_px <= LARGEST_PX:
        raise ValueError(f"model {name!r} at {image_px} pixels; known: {', '.join(MODELS)}")
    prepare = keras.Sequential(
        [keras.Input((crop_px, crop_px, 3), dtype="uint8"), *prepare_layers(crop_px, image_px)],
        name="prepare",
    )
    network, head = MODELS[name]
    return network(name, crop_px, image_px, prepare, RandomFace(augment, erase), head(image_px))
