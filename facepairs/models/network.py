"""Base classes of the networks, as training and export see them.

Training feeds a batch of images, uint8[2·B, crop_px, crop_px, 3], the B left images before the B
right ones, and gets float32[B] scores: higher is more alike. The exported network takes uint8
images too: casting, scaling and resizing are layers of it, so preprocessing cannot be forgotten.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import keras
from keras import ops

from facepairs.models.augment import RandomFace
from facepairs.models.replicas import StepRandom, gather_rows, gather_sides


class Trainable(Protocol):
    """What the training loop trains.

    The inputs of a batch are the B left ones before the B right ones: images for a `Network`,
    features for a `FeatureHead`.
    """

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """What the optimizer updates."""
        ...

    @abstractmethod
    def scores(self, inputs: Any) -> Any:
        """Score pairs: [2·B, …] → float32[B], higher is more alike."""
        ...

    @abstractmethod
    def loss(self, inputs: Any, genuine: Any, people: Any, random: StepRandom) -> Any:
        """Return the loss of a batch, a float32 scalar.

        Args:
            inputs: [2·B, …]; only the shard's rows when `random` has a shard.
            genuine: float32[B], 1 for genuine pairs, else 0; always of the whole batch.
            people: int32[2·B], numbers of the people; always of the whole batch.
            random: The step's random numbers. When it has a shard, the loss is that of the whole
                batch, with the gradient that `facepairs.models.replicas` describes.
        """
        ...


@dataclass(frozen=True)
class Network(Trainable, ABC):
    """A `Trainable` of images: its parts, and how they are joined for training and for export.

    Attributes:
        name: Name of the architecture.
        crop_px: Side of the images that are fed.
        image_px: Side of the images that `head` takes.
        prepare: uint8[N, crop_px, crop_px, 3] → float32[N, image_px, image_px, 3] in [0, 1].
        augment: Random changes, in training only.
        head: The layers with the weights; only these are exported.
        objective: The loss layer.
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
    def variables(self) -> list[keras.Variable]:
        """All variables of the head."""
        return list(self.head.variables)

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """The trainable variables of the head."""
        return list(self.head.trainable_variables)

    def preprocess(self, images: Any, random: StepRandom | None = None) -> Any:
        """Return images as the head takes them.

        Args:
            images: uint8[N, crop_px, crop_px, 3].
            random: The step's random numbers; the images are augmented when given.

        Returns:
            float32[N, image_px, image_px, 3] in [0, 1].
        """
        return self.augment(self.prepare(images), random=random)

    @abstractmethod
    def inference_model(self) -> keras.Model:
        """Return the model to export: uint8 images named as in `inputs`, one float32 output."""

    def _prepared(self, image: Any) -> Any:
        """Apply `prepare` to a symbolic input of the exported network.

        Keras's Resizing defaults to training mode and passes that on to the layers after it: batch
        normalisation would then use each batch's own statistics.
        """
        return self.prepare(image, training=False)

    def _image_inputs(self) -> list[keras.KerasTensor]:
        shape = (self.crop_px, self.crop_px, 3)
        return [keras.Input(shape, dtype="uint8", name=name) for name in self.inputs]


class PairNetwork(Network):
    """A network that takes two images and returns one logit of "genuine".

    Scores are means over the mirror images of either side.
    """

    kind = "pair"
    inputs = ("left", "right")
    output = "score"

    def scores(self, inputs: Any) -> Any:
        return ops.reshape(self._score(*ops.split(self.preprocess(inputs), 2, axis=0)), (-1,))

    def loss(self, inputs: Any, genuine: Any, people: Any, random: StepRandom) -> Any:
        """Return the loss of a batch of images; the arguments are those of `Trainable.loss`."""
        sides = ops.split(self.preprocess(inputs, random), 2, axis=0)
        logits = ops.reshape(self.head(sides, training=True), (-1,))
        return self.objective(gather_rows(logits, random.shard), genuine)

    def inference_model(self) -> keras.Model:
        sides = self._image_inputs()
        score = self._score(*(self._prepared(side) for side in sides))
        return keras.Model(sides, score, name=self.name)

    def _score(self, left: Any, right: Any) -> Any:
        """Score prepared images, not for training: [B, …] twice → float32[B, 1]."""
        return with_mirror_images(self.head, left, right)


class EmbeddingNetwork(Network):
    """A Siamese network: one image in, its embedding out; a score is the cosine of two.

    Attributes:
        centres: Whether the loss subtracts the mean of the batch's embeddings first.
    """

    centres: ClassVar[bool] = False
    kind = "embedding"
    inputs = ("image",)
    output = "embedding"

    def embeddings(self, inputs: Any) -> Any:
        """Embed uint8[N, crop_px, crop_px, 3] images: float32[N, D], rows of length 1."""
        return with_mirror_image(self.head, self.preprocess(inputs))

    def scores(self, inputs: Any) -> Any:
        return pair_cosines(self.embeddings(inputs))

    def loss(self, inputs: Any, genuine: Any, people: Any, random: StepRandom) -> Any:
        """Return the loss of a batch of images; the arguments are those of `Trainable.loss`."""
        embeddings = self.head(self.preprocess(inputs, random), training=True)
        return embedding_loss(self.objective, embeddings, genuine, people, random, self.centres)

    def inference_model(self) -> keras.Model:
        (image,) = self._image_inputs()
        embedding = with_mirror_image(self.head, self._prepared(image))
        return keras.Model(image, embedding, name=self.name)


def pair_cosines(embeddings: Any) -> Any:
    """Return the cosine of each pair: float32[2·B, D] of length 1 → float32[B]."""
    left, right = ops.split(embeddings, 2, axis=0)
    return ops.sum(left * right, axis=1)


def embedding_loss(
    objective: keras.Layer,
    embeddings: Any,
    genuine: Any,
    people: Any,
    random: StepRandom,
    centre: bool = False,
) -> Any:
    """Return the loss of the whole batch, a float32 scalar.

    Args:
        objective: A `PairLoss`.
        embeddings: float32[rows of the shard, D], of this replica, rows of length 1.
        genuine: As in `Trainable.loss`.
        people: As in `Trainable.loss`.
        random: The step's random numbers; its shard is that of this replica.
        centre: Subtract the mean of the batch's embeddings first.
    """
    left, right = gather_sides(embeddings, random.shard)
    if centre:
        mean = ops.mean(ops.concatenate([left, right], axis=0), axis=0)
        left, right = (ops.normalize(side - mean, axis=-1, order=2) for side in (left, right))
    return objective(left, right, genuine, *ops.split(people, 2, axis=0))


def with_mirror_image(tower: keras.Model, image: Any) -> Any:
    """Return the normalised sum of the embeddings of an image and its mirror image: [N, D]."""
    # As one batch: with two calls the exported graph would contain the tower twice.
    both = tower(ops.concatenate([image, ops.flip(image, axis=2)], axis=0))
    both = ops.reshape(both, (2, -1, both.shape[-1]))
    return ops.normalize(both[0] + both[1], axis=-1, order=2)


def with_mirror_images(head: keras.Model, left: Any, right: Any) -> Any:
    """Return the mean score of the pairs with neither, both and either image mirrored: [N, 1]."""
    mirrored_left, mirrored_right = ops.flip(left, axis=2), ops.flip(right, axis=2)
    lefts = ops.concatenate([left, mirrored_left, left, mirrored_left], axis=0)
    rights = ops.concatenate([right, mirrored_right, mirrored_right, right], axis=0)
    scores = ops.reshape(head([lefts, rights], training=False), (2, 2, -1, 1))
    return ops.mean(ops.mean(scores, axis=1), axis=0)  # in two steps: exactly symmetric
