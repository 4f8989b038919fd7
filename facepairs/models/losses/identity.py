"""What objectives over identities share: a direction for each person, learned with the tower."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from facepairs.models.losses.base import NEVER, PairLoss, cosines, mean_where

SINGLETONS = ("classes", "negatives", "left-out")


class IdentityLoss(PairLoss):
    """Every image must be classified as its person among all people trained on.

    `photos` int[P]: how many photos each of them has. `dimensions`: of an embedding. Cosines with
    the people's directions are divided by `temperature` > 0 after `with_margin` made those with an
    image's own person harder. `singletons`, people with one photo, are "classes" like the others,
    or have no direction: then their images are "negatives" that the other images of the batch must
    keep away from, or are "left-out". A step takes 2·B·P cosines: for thousands of people, not for
    millions. Raises ValueError where nobody is left to be a class.
    """

    def __init__(
        self,
        photos: Sequence[int],
        dimensions: int,
        temperature: float = 0.1,
        margin: float = 0.2,
        singletons: str = "classes",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if singletons not in SINGLETONS:
            raise ValueError(f"singletons is {singletons!r}; known: {', '.join(SINGLETONS)}")
        self.photos, self.dimensions = np.asarray(photos, np.int64), dimensions
        self.temperature, self.margin, self.singletons = temperature, margin, singletons
        kept = (self.photos > 1) | (singletons == "classes")
        if not kept.any():
            raise ValueError("an identity loss needs a person with 2 photos, or singletons=classes")
        self.rows = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        self.directions = self.add_weight(
            (int(kept.sum()), dimensions),
            keras.initializers.RandomNormal(stddev=dimensions**-0.5),
            name="directions",
        )

    def get_config(self) -> dict[str, Any]:
        names = ("dimensions", "temperature", "margin", "singletons")
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), "photos": self.photos.tolist(), **own}

    def with_margin(self, cosine: Any) -> Any:
        """Lower the cosines with an image's own person: float32[N] → float32[N]."""
        raise NotImplementedError

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        row = ops.take(self.rows, ops.concatenate([left_person, right_person], axis=0))
        cosine = cosines(images, ops.normalize(self.directions, axis=-1, order=2))
        own = ops.equal(row[:, None], ops.arange(self.directions.shape[0], dtype="int32"))
        target = self.with_margin(ops.sum(ops.where(own, cosine, 0.0), axis=1))
        logits = ops.where(own, target[:, None], cosine) / self.temperature
        if self.singletons == "negatives":
            strangers = cosines(images, images) / self.temperature
            logits = ops.concatenate([logits, ops.where(row < 0, strangers, NEVER)], axis=1)
        missed = ops.logsumexp(logits, axis=1) - target / self.temperature
        return mean_where(missed, row >= 0)
