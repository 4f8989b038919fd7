"""`Recipe`: the defaults of training for each model.

A setting of `facepairs.config.TrainConfig` that is not given takes its value from here. To add a
model, write the function that builds its layers, and add its name and its recipe here. The command
line imports this module at every start, so it imports nothing large.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from facepairs.photos.crop import CropSpec

Model = Literal["resnet", "fisher", "siamese", "difference", "difference-article"]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long and how fast a model is trained.

    Attributes:
        epochs: Epochs where neither `epochs` nor `minutes` is given.
        pairs_per_epoch: Pairs between two validations.
        learning_rate: Adam's peak rate.
    """

    epochs: int
    pairs_per_epoch: int
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained.

    Attributes:
        head: Function that builds its layers for a side of images in pixels, as module:function.
            With `embeds` it builds images → embeddings of length 1, else two images → a logit.
        embeds: Whether it learns an embedding. Then batches are genuine pairs of distinct people,
            and every loss can be used; else batches mix both kinds of pairs.
        precomputes: Whether it trains on features that are computed once, instead of images.
        from_scratch: The pace from random weights.
        fine_tuning: The pace from the weights of a bundle: few people should change them little.
        batch_size: Pairs per step.
        image_size: Side of the network's input in pixels.
        crop_px: Side of the stored crop in pixels.
        frame_px: The crop is `crop_px` of every `frame_px` of the frame's side.
        points: Where the five landmarks belong in the crop, see `photos.crop.CropSpec`.
        starts_from: The bundle whose weights training starts from where none is named.
        centres: Whether the loss subtracts the mean of a batch's embeddings, because all faces lie
            close together: the cosine of two strangers is some .9.
        weight_decay: Share by which a step shortens the weights, times the learning rate (AdamW).
        clip_norm: Longest gradient; a longer one is shortened. None: no limit.
        augment: Strength of random shift, scale, rotation and light; 0: only mirroring.
        several_share: Share of a batch of distinct people who have several photos; None: their
            share among the people.
        article: Draw pairs as the tutorials' article does, for comparison.
    """

    head: str = ""
    embeds: bool
    precomputes: bool = False
    from_scratch: Pace
    fine_tuning: Pace = Pace(epochs=2, pairs_per_epoch=3_200, learning_rate=1e-4)
    batch_size: int
    image_size: int
    crop_px: int
    frame_px: int = 250
    points: tuple[tuple[float, float], ...] | None = None
    starts_from: str = ""
    centres: bool = False
    weight_decay: float | None = None
    clip_norm: float | None = None
    augment: float = 1.0
    several_share: float | None = None
    article: bool = False

    @property
    def takes_pairs(self) -> bool:
        """Whether it can train from a cache, which holds genuine pairs and those of strangers."""
        return not (self.embeds or self.article)

    @property
    def crop_spec(self) -> "CropSpec":
        """The square of a frame that the network sees."""
        from facepairs.photos.crop import CropSpec

        frame_px = self.crop_px if self.points else self.frame_px
        return CropSpec(frame_px, self.crop_px, self.points)


FINE_TUNING = Pace(epochs=8, pairs_per_epoch=640, learning_rate=1e-4)
ARTICLE = Recipe(
    head="facepairs.models.convolutional:article_head",
    embeds=False,
    from_scratch=Pace(epochs=30, pairs_per_epoch=25_600, learning_rate=2e-3),
    batch_size=128,
    image_size=64,
    crop_px=128,
    article=True,
)
RECIPES: dict[Model, Recipe] = {
    "resnet": Recipe(
        head="facepairs.models.resnet:face_resnet",
        embeds=True,
        from_scratch=FINE_TUNING,
        fine_tuning=FINE_TUNING,
        batch_size=32,
        image_size=150,
        crop_px=150,
        # The mean places of our landmarks in the squares that dlib's own code cut out of 400
        # training photos of LFW's View 1.
        points=((44.9, 44.7), (101.7, 44.7), (73.8, 77.7), (49.0, 103.1), (97.5, 103.2)),
        starts_from="default",
        centres=True,
        clip_norm=1.0,  # there is no batch normalisation to hold the network together
        augment=0.0,
    ),
    "fisher": Recipe(
        embeds=True,
        precomputes=True,
        from_scratch=Pace(epochs=20, pairs_per_epoch=6_656, learning_rate=2e-3),
        batch_size=256,
        image_size=128,
        crop_px=128,
        several_share=0.75,
    ),
    "siamese": Recipe(
        head="facepairs.models.convolutional:face_tower",
        embeds=True,
        from_scratch=Pace(epochs=30, pairs_per_epoch=12_800, learning_rate=2e-3),
        batch_size=128,
        image_size=64,
        crop_px=128,
        weight_decay=1e-3,
        several_share=0.75,
    ),
    "difference": replace(
        ARTICLE,
        head="facepairs.models.convolutional:difference_head",
        from_scratch=Pace(epochs=40, pairs_per_epoch=12_800, learning_rate=2e-3),
        weight_decay=1e-3,
        article=False,
    ),
    "difference-article": ARTICLE,
}
