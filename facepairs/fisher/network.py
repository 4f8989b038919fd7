"""The Fisher-vector network, which trains on features that are computed once.

The backbone is fitted without gradients. `facepairs.fisher.fit.precompute` then computes its
features of every image, and training reads features instead of images.
"""

from collections.abc import Sequence
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
from facepairs.models.build import build_preparation
from facepairs.models.network import EmbeddingNetwork, Sides, as_pairs

DROPOUT = 0.2  # share of a vector's numbers set to 0 at each training step
COMPARED = 64  # two feature vectors whose first numbers are all equal are of the same image


class FisherNetwork(EmbeddingNetwork):
    """An embedding network whose backbone is fitted once and not trained by gradient.

    It is fitted to pairs of features. Those of a mirrored image are those of the image in another
    order, so mirroring needs no image: training uses the image or its mirror image at random,
    scoring uses both.

    Args:
        crop_px: Side of the images that are fed.
        image_px: Side to which they are resized, a multiple of 16 from 96 on.
        members: The regions that its members see, see `fisher_tower`.
        cohort: The size of the cohort, likewise.
        seed: Seed of mirroring and dropout.
    """

    def __init__(
        self,
        crop_px: int,
        image_px: int,
        members: Sequence[Member] = MEMBERS,
        cohort: int = COHORT_SIZE,
        seed: int = 0,
    ) -> None:
        prepare, head = (
            build_preparation(crop_px, image_px),
            fisher_tower(image_px, members, cohort),
        )
        super().__init__("fisher", crop_px, image_px, prepare, keras.layers.Identity(), head, seed)
        self.mirroring = keras.random.SeedGenerator(seed)
        self.dropout = keras.layers.Dropout(DROPOUT)

    @property
    def feature_count(self) -> int:
        """How many numbers describe an image."""
        return int(self.head.get_layer(BACKBONE).width)

    def features(self, images: Any) -> Any:
        """Return the backbone's features of uint8[N, crop_px, crop_px, 3]: float16[N, F]."""
        backbone = self.head.get_layer(BACKBONE)
        return ops.cast(backbone(self.preprocess(images)), "float16")

    def call(self, sides: Sides, training: bool = False) -> Any:
        """Return both embeddings, float32[B, 2, D], of float16[B, F] features twice."""
        features = ops.concatenate(sides, axis=0)
        if not training:
            return as_pairs(self.embeddings(features))
        as_is = self._use_as_is(features)[:, None]
        seen = ops.cast(ops.where(as_is, features, self._mirrored(features)), "float32")
        return as_pairs(self.head.get_layer(PROJECTOR)(self.dropout(seen, training=True)))

    def embeddings(self, features: Any) -> Any:
        """Embed float16[N, F] features: float32[N, D], rows of length 1."""
        return embed_vectors(self.head, ops.cast(features, "float32"))

    def infer(self, *prepared: Any) -> Any:
        return self.head(*prepared)  # it mirrors features, which is cheaper than images

    def _use_as_is(self, features: Any) -> Any:
        """Choose which features to use as they are rather than mirrored: bool[2·B], random.

        A pair of twice the same image gets the image and its mirror image.
        """
        as_is = keras.random.uniform((ops.shape(features)[0],), seed=self.mirroring) < 0.5
        left, right = ops.split(features[:, :COMPARED], 2, axis=0)
        left_as_is, right_as_is = ops.split(as_is, 2, axis=0)
        same_image = ops.all(left == right, axis=1)
        right_as_is = ops.where(same_image, ~left_as_is, right_as_is)
        return ops.concatenate([left_as_is, right_as_is], axis=0)

    def _mirrored(self, features: Any) -> Any:
        """Return the features of the mirrored images."""
        return ops.cast(self.head.get_layer(MIRROR)(features), features.dtype)
