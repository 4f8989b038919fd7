"""The Fisher-vector network, and its head that trains on precomputed features.

The backbone is fitted once without gradients. Its features of every image can then be computed once
(`facepairs.fisher.fit.precompute`), and training the head reads features instead of images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from facepairs.fisher.tower import (
    BACKBONE,
    COHORT_SIZE,
    MEMBERS,
    MIRROR,
    PROJECTOR,
    Member,
    embed_vectors,
    fisher_tower,
)
from facepairs.models.augment import RandomFace
from facepairs.models.build import build_preparation
from facepairs.models.losses import build_loss
from facepairs.models.network import EmbeddingNetwork, embedding_loss, pair_cosines
from facepairs.models.replicas import StepRandom
from facepairs.support.random_streams import Stream

DROPOUT = 0.2  # share of a vector's numbers set to 0 at each training step
COMPARED = 64  # two feature vectors whose first numbers are all equal are of the same image


@dataclass(frozen=True)
class FeatureHead:
    """A `Trainable` of the features of a frozen backbone; shares the weights of its network.

    The features of a mirrored image are those of the image in another order, so mirroring needs no
    image. Training uses the image or its mirror image at random, scoring uses both.

    Attributes:
        head: The network's head, of which the backbone is not used.
        objective: The network's loss layer.
    """

    head: keras.Model
    objective: keras.Layer

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """The projection's variables."""
        return list(self.head.trainable_variables)

    def embeddings(self, inputs: Any) -> Any:
        """Embed float16[N, F] features: float32[N, D], rows of length 1."""
        return embed_vectors(self.head, ops.cast(inputs, "float32"))

    def scores(self, inputs: Any) -> Any:
        """Score pairs of features: float16[2·B, F] → float32[B]."""
        return pair_cosines(self.embeddings(inputs))

    def loss(self, inputs: Any, genuine: Any, people: Any, random: StepRandom) -> Any:
        """Return the loss of a batch of features; the arguments are those of `Trainable.loss`."""
        as_is = self._use_as_is(inputs, random)[:, None]
        features = ops.cast(ops.where(as_is, inputs, self._mirrored(inputs)), "float32")
        features = random.dropout(Stream.DROPOUT, features, DROPOUT)
        embeddings = self.head.get_layer(PROJECTOR)(features)
        return embedding_loss(self.objective, embeddings, genuine, people, random)

    def _use_as_is(self, features: Any, random: StepRandom) -> Any:
        """Choose which features to use as they are rather than mirrored: bool[2·B], random.

        A pair of twice the same image gets the image and its mirror image.
        """
        as_is = random.uniform(Stream.AUGMENTATION, (ops.shape(features)[0],)) < 0.5
        left, right = ops.split(features[:, :COMPARED], 2, axis=0)
        left_as_is, right_as_is = ops.split(as_is, 2, axis=0)
        same_image = ops.all(left == right, axis=1)
        right_as_is = ops.where(same_image, ~left_as_is, right_as_is)
        return ops.concatenate([left_as_is, right_as_is], axis=0)

    def _mirrored(self, features: Any) -> Any:
        """Return the features of the mirrored images."""
        return ops.cast(self.head.get_layer(MIRROR)(features), features.dtype)


class FisherNetwork(EmbeddingNetwork):
    """An embedding network whose backbone is fitted once and not trained by gradient."""

    @classmethod
    def build(
        cls,
        crop_px: int,
        image_px: int,
        loss: str = "in-batch",
        members: Sequence[Member] = MEMBERS,
        cohort: int = COHORT_SIZE,
    ) -> "FisherNetwork":
        """Build a network with new weights, drawn from Keras's global seed.

        Args:
            crop_px: Side of the images that are fed.
            image_px: Side to which they are resized, a multiple of 16 from 96 on.
            loss: Name of the objective.
            members: The regions that its members see, see `fisher_tower`.
            cohort: The size of the cohort, likewise.
        """
        prepare = build_preparation(crop_px, image_px)
        head = fisher_tower(image_px, members, cohort)
        return cls("fisher", crop_px, image_px, prepare, RandomFace(0), head, build_loss(loss))

    @property
    def feature_count(self) -> int:
        """How many numbers describe an image."""
        return int(self.head.get_layer(BACKBONE).width)

    def features(self, images: Any) -> Any:
        """Return the backbone's features of uint8[N, crop_px, crop_px, 3]: float16[N, F]."""
        backbone = self.head.get_layer(BACKBONE)
        return ops.cast(backbone(self.preprocess(images)), "float16")

    def feature_head(self) -> FeatureHead:
        """Return what trains on precomputed features; it shares this network's weights."""
        return FeatureHead(self.head, self.objective)

    def embeddings(self, inputs: Any) -> Any:
        return self.feature_head().embeddings(self.features(inputs))

    def loss(self, inputs: Any, genuine: Any, people: Any, random: StepRandom) -> Any:
        """Return the loss of a batch of images; the arguments are those of `Trainable.loss`."""
        return self.feature_head().loss(self.features(inputs), genuine, people, random)

    def inference_model(self) -> keras.Model:
        (image,) = self._image_inputs()  # the head mirrors features, which is cheaper than images
        return keras.Model(image, self.head(self._prepared(image)), name=self.name)
