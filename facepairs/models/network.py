"""The Keras models that training fits and export writes.

A `Network` takes both sides of a batch of pairs, images uint8[B, crop_px, crop_px, 3], and returns
logits or embeddings. Casting, resizing and augmentation are layers of it. The exported network
takes such images, too, so preprocessing cannot be forgotten.
"""

from typing import Any, ClassVar, Literal

import keras
import tensorflow as tf
from keras import ops

from facepairs.models.metrics import PairMetrics

SEED_STATE = "seed_generator_state"  # Keras' name of the variable of a `SeedGenerator`
DRAWS_PER_STEP = 64  # of one random layer; further ones would be the first of the next step
LAYER_STRIDE = 7_919  # apart are the seeds of two random layers
VALIDATION_CAPACITY = 4_000

Sides = tuple[Any, Any]
Batch = tuple[Sides, Any]


class Network(keras.Model):  # type: ignore[misc]
    """A model of both sides of pairs, to compile with a loss on its outputs.

    `call` returns logits float32[B, 1], or both embeddings float32[B, 2, D] of length 1. Training
    logs `loss`; validation logs the AUC of all pairs, `val_auc`.

    Random layers (augmentation, dropout) draw a pure function of the seed and the step, so a
    resumed training continues as if it had not stopped.

    Args:
        name: Name of the architecture.
        crop_px: Side of the images that are fed.
        image_px: Side of the images that `head` takes.
        prepare: [N, crop_px, crop_px, 3] → float32[N, image_px, image_px, 3] in [0, 1].
        augment: Random changes of prepared images, in training only; a Keras layer.
        head: The layers with the weights; only these are exported.
        seed: Seed of the random layers.
    """

    kind: ClassVar[Literal["pair", "embedding"]]
    export_inputs: ClassVar[tuple[str, ...]]
    export_output: ClassVar[str]

    def __init__(
        self,
        name: str,
        crop_px: int,
        image_px: int,
        prepare: keras.Model,
        augment: keras.Layer,
        head: keras.Model,
        seed: int,
    ) -> None:
        super().__init__(name=name)
        self.crop_px, self.image_px, self.seed = crop_px, image_px, seed
        self.prepare, self.augment, self.head = prepare, augment, head
        self.pairs = PairMetrics((), prefix="", capacity=VALIDATION_CAPACITY, name="pairs")
        self.built = True  # all its parts are

    def train_step(self, data: Batch) -> dict[str, Any]:
        """Move the weights by the gradient of the batch's loss; return the epoch's mean loss."""
        self._seed_random_layers()
        return _as_logs({"loss": super().train_step(data)["loss"]})

    def test_step(self, data: Batch) -> dict[str, Any]:
        """Score the pairs; return the AUC of all pairs so far."""
        sides, genuine = data
        outputs = self(sides, training=False)
        if tf.distribute.has_strategy():
            replica = tf.distribute.get_replica_context()
            genuine, outputs = (
                replica.all_gather(tf.identity(part), axis=0) for part in (genuine, outputs)
            )
        self.pairs.update_state(genuine, outputs)
        return _as_logs(self.pairs.result())

    def _seed_random_layers(self) -> None:
        """Set the state of every random layer to a function of seed, layer and step."""
        states = [variable for variable in self.variables if variable.name == SEED_STATE]
        step = tf.cast(self.optimizer.iterations, tf.int64) * DRAWS_PER_STEP
        for number, state in enumerate(states):
            words = tf.stack([tf.constant(self.seed + LAYER_STRIDE * number, tf.int64), step])
            state.assign(tf.cast(words % tf.int32.max, state.dtype))

    def _maybe_symbolic_build(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the model is built.

        Keras would reduce the first batch eagerly, which several workers cannot do (keras#20585).
        """

    def preprocess(self, images: Any, training: bool = False) -> Any:
        """Return images as the head takes them, augmented for training.

        Args:
            images: uint8[N, crop_px, crop_px, 3].
            training: Whether to augment.

        Returns:
            float32[N, image_px, image_px, 3] in [0, 1].
        """
        prepared = self.prepare(images)
        return self.augment(prepared, training=True) if training else prepared

    def seen_in_training(self, sides: Sides) -> Sides:
        """Return a batch's images as the next training step feeds them to the head."""
        self._seed_random_layers()
        left, right = ops.split(self.preprocess(ops.concatenate(sides, axis=0), training=True), 2)
        return left, right

    def inference_model(self) -> keras.Model:
        """Return the model to export: uint8 images named as in `export_inputs`, one output."""
        shape = (self.crop_px, self.crop_px, 3)
        images = [keras.Input(shape, dtype="uint8", name=name) for name in self.export_inputs]
        # Keras's Resizing defaults to training mode and passes that on to the layers after it:
        # batch normalisation would then use each batch's own statistics.
        output = self.infer(*(self.prepare(image, training=False) for image in images))
        return keras.Model(images if len(images) > 1 else images[0], output, name=self.name)

    def infer(self, *prepared: Any) -> Any:
        """Return the exported output for prepared images, one for each exported input."""
        raise NotImplementedError


class PairNetwork(Network):
    """A network that takes two images and returns one logit of "genuine".

    Scores are means over the mirror images of either side.
    """

    kind = "pair"
    export_inputs = ("left", "right")
    export_output = "score"

    def call(self, sides: Sides, training: bool = False) -> Any:
        """Return float32[B, 1] logits of uint8[B, crop_px, crop_px, 3] twice."""
        images = self.preprocess(ops.concatenate(sides, axis=0), training)
        left, right = ops.split(images, 2, axis=0)
        return self.head([left, right], training=True) if training else self.infer(left, right)

    def infer(self, *prepared: Any) -> Any:
        return with_mirror_images(self.head, *prepared)


class EmbeddingNetwork(Network):
    """A Siamese network: one image in, its embedding out; a score is the cosine of two."""

    kind = "embedding"
    export_inputs = ("image",)
    export_output = "embedding"

    def call(self, sides: Sides, training: bool = False) -> Any:
        """Return float32[B, 2, D], embeddings of uint8[B, crop_px, crop_px, 3] twice."""
        images = self.preprocess(ops.concatenate(sides, axis=0), training)
        return as_pairs(self.head(images, training=True) if training else self.infer(images))

    def infer(self, *prepared: Any) -> Any:
        return with_mirror_image(self.head, *prepared)


def _as_logs(logs: dict[str, Any]) -> dict[str, Any]:
    """Return logs as `fit` reduces them: several workers average them over their first axis."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return logs
    return {name: tf.reshape(value, [1]) for name, value in logs.items()}


def as_pairs(embeddings: Any) -> Any:
    """Return [2·B, D], the left ones before the right ones, as [B, 2, D]."""
    return ops.stack(ops.split(embeddings, 2, axis=0), axis=1)


def with_mirror_image(tower: keras.Model, image: Any) -> Any:
    """Return the normalised sum of the embeddings of an image and its mirror image: [N, D]."""
    # As one batch: with two calls the exported graph would contain the tower twice.
    both = tower(ops.concatenate([image, ops.flip(image, axis=2)], axis=0), training=False)
    both = ops.reshape(both, (2, -1, both.shape[-1]))
    return ops.normalize(both[0] + both[1], axis=-1, order=2)


def with_mirror_images(head: keras.Model, left: Any, right: Any) -> Any:
    """Return the mean score of the pairs with neither, both and either image mirrored: [N, 1]."""
    mirrored_left, mirrored_right = ops.flip(left, axis=2), ops.flip(right, axis=2)
    lefts = ops.concatenate([left, mirrored_left, left, mirrored_left], axis=0)
    rights = ops.concatenate([right, mirrored_right, mirrored_right, right], axis=0)
    scores = ops.reshape(head([lefts, rights], training=False), (2, 2, -1, 1))
    return ops.mean(ops.mean(scores, axis=1), axis=0)  # in two steps: exactly symmetric
