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
from facepairs.models.eigenfaces import eigenface_head
from facepairs.models.fisher.tower import DESCRIBE, MIRROR, PROJECT, fisher_tower
from facepairs.models.losses import BinaryLogit, build_loss
from facepairs.models.pixels import pixel_head
from facepairs.models.prepare import prepare_layers
from facepairs.models.replicas import gathered, gathered_sides
from facepairs.models.step_random import StepRandom
from facepairs.models.tower import face_tower, with_mirror_image

SMALLEST_PX, LARGEST_PX = 64, 224
DROPPED = 0.2  # of a vector's numbers, at each step
IDENTITY = 64  # so many equal numbers of two vectors tell that they are one image's


@dataclass(frozen=True)
class Network(ABC):
    """A model's parts: `prepare` (uint8 → float), `augment`, and `head` with the weights.

    `objective` is what training lowers; it may have weights too, which are never exported.
    """

    kind: ClassVar[Literal["pair", "embedding"]]
    inputs: ClassVar[tuple[str, ...]]
    output: ClassVar[str]

    name: str
    crop_px: int
    image_px: int
    prepare: keras.Model
    augment: RandomFace
    head: keras.Model
    objective: keras.Layer

    @property
    def trainable(self) -> bool:
        """Whether there is anything to learn."""
        return bool(self.head.trainable_variables)

    @property
    def variables(self) -> list[keras.Variable]:
        """All that training keeps beside the optimizer's own, the head's first."""
        return [*self.head.variables, *self.objective.variables]

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """What the optimizer moves, the head's first."""
        return [*self.head.trainable_variables, *self.objective.trainable_variables]

    def preprocess(self, images: Any, draws: StepRandom | None = None) -> Any:
        """Give the images as the network sees them: float32[2·B, image_px, image_px, 3].

        With `draws` they are augmented, as in training.
        """
        return self.augment(self.prepare(images), draws=draws)

    @abstractmethod
    def scores(self, images: Any) -> Any:
        """Score a batch laid out as lefts, then rights: uint8[2·B, …] → float32[B]."""

    @abstractmethod
    def loss(self, images: Any, genuine: Any, people: Any, draws: StepRandom) -> Any:
        """Give what training lowers: uint8[2·B, …], float32[B] labels, int32[2·B] people → scalar.

        People trained on are numbered from 0; equal numbers are one person. Where `draws` are those
        of a part, `images` are the part's, labels and people the whole batch's, and so is the loss:
        see `models.replicas` for its gradient.
        """

    @abstractmethod
    def inference_model(self) -> keras.Model:
        """Join the parts for export: uint8 `inputs`, one float32 `output`."""

    def _prepared(self, face: Any) -> Any:
        """Prepare an input of the exported network.

        Keras's Resizing is in training unless told otherwise, and takes the layers that follow it
        along: batch norm would then use each batch's own statistics.
        """
        return self.prepare(face, training=False)

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
        return self._compare(self.preprocess(images), training=False)

    def loss(self, images: Any, genuine: Any, people: Any, draws: StepRandom) -> Any:
        scores = self._compare(self.preprocess(images, draws), training=True)
        return self.objective(gathered(scores, draws.part), genuine)

    def inference_model(self) -> keras.Model:
        sides = self._faces()
        score = self.head([self._prepared(side) for side in sides])
        return keras.Model(sides, score, name=self.name)


class EmbeddingNetwork(Network):
    """A Siamese tower: one face in, its embedding out; a score is the cosine of two embeddings."""

    kind = "embedding"
    inputs = ("image",)
    output = "embedding"

    def embeddings(self, images: Any) -> Any:
        """Embed what training feeds: uint8[N, …] → float32[N, D], rows of length 1."""
        return with_mirror_image(self.head, self.preprocess(images))

    def scores(self, images: Any) -> Any:
        left, right = ops.split(self.embeddings(images), 2, axis=0)
        return ops.sum(left * right, axis=1)

    def loss(self, images: Any, genuine: Any, people: Any, draws: StepRandom) -> Any:
        embeddings = self.head(self.preprocess(images, draws), training=True)
        return self._objective(embeddings, genuine, people, draws)

    def _objective(self, embeddings: Any, genuine: Any, people: Any, draws: StepRandom) -> Any:
        left, right = gathered_sides(embeddings, draws.part)
        return self.objective(left, right, genuine, *ops.split(people, 2, axis=0))

    def inference_model(self) -> keras.Model:
        (face,) = self._faces()
        embedding = with_mirror_image(self.head, self._prepared(face))
        return keras.Model(face, embedding, name=self.name)


class FrozenBackboneNetwork(EmbeddingNetwork):
    """A tower whose first part is fitted once and for all: training starts from its vectors.

    In place of images it takes float16[N, D], what `described` gives; a mirror image's vector is
    the image's own in another order. Training draws one of the two for each image; scores use both.
    """

    def described(self, images: Any) -> Any:
        """Give the vectors of uint8[N, …] images: float16[N, D]."""
        return ops.cast(self.head.get_layer(DESCRIBE)(self.preprocess(images)), "float16")

    def _mirrored(self, vectors: Any) -> Any:
        return ops.cast(self.head.get_layer(MIRROR)(vectors), vectors.dtype)

    def embeddings(self, images: Any) -> Any:
        """Embed float16[N, D] vectors: float32[N, D], rows of length 1."""
        project, own = self.head.get_layer(PROJECT), ops.cast(images, "float32")
        return ops.normalize(project(own) + project(self._mirrored(own)), axis=-1, order=2)

    def loss(self, images: Any, genuine: Any, people: Any, draws: StepRandom) -> Any:
        side = draws.uniform(0, (ops.shape(images)[0],)) < 0.5
        # Who has one photo meets its mirror image, never the very same vector.
        left, right = ops.split(images[:, :IDENTITY], 2, axis=0)
        first, second = ops.split(side, 2, axis=0)
        second = ops.where(ops.all(left == right, axis=1), ~first, second)
        side = ops.concatenate([first, second], axis=0)[:, None]
        drawn = ops.cast(ops.where(side, images, self._mirrored(images)), "float32")
        drawn = draws.dropout(1, drawn, DROPPED)
        embeddings = self.head.get_layer(PROJECT)(drawn)
        return self._objective(embeddings, genuine, people, draws)

    def inference_model(self) -> keras.Model:
        (face,) = self._faces()  # the tower mirrors vectors, which is cheaper than images
        return keras.Model(face, self.head(self._prepared(face)), name=self.name)


MODELS: dict[str, tuple[type[Network], Callable[[int], keras.Model]]] = {
    "siamese": (FrozenBackboneNetwork, fisher_tower),
    "siamese-conv": (EmbeddingNetwork, face_tower),
    "difference": (PairNetwork, difference_head),
    "pixels": (PairNetwork, pixel_head),
    "eigenfaces": (EmbeddingNetwork, eigenface_head),  # fitted by `training.eigenfaces`
}


def build_network(
    name: str,
    crop_px: int,
    image_px: int,
    augment: float,
    erase: float = 0.0,
    loss: str = "in-batch",
    **loss_settings: Any,
) -> Network:
    """Build a model by name with fresh weights from Keras's global seed.

    `image_px` 64 … 224. `loss` and its settings, as `build_loss` takes them, are for embeddings.
    Raises ValueError for another name or size; configuration checks both.
    """
    if name not in MODELS or not SMALLEST_PX <= image_px <= LARGEST_PX:
        raise ValueError(f"model {name!r} at {image_px} pixels; known: {', '.join(MODELS)}")
    prepare = keras.Sequential(
        [keras.Input((crop_px, crop_px, 3), dtype="uint8"), *prepare_layers(crop_px, image_px)],
        name="prepare",
    )
    network, make_head = MODELS[name]
    head = make_head(image_px)  # before the objective: its weights are the same under any
    objective: keras.Layer = BinaryLogit()
    if network.kind == "embedding":
        objective = build_loss(loss, head.output_shape[-1], **loss_settings)
    augmentation = RandomFace(augment, erase)
    return network(name, crop_px, image_px, prepare, augmentation, head, objective)
