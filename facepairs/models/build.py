"""Build a network by the name of its architecture, in float32 or in mixed precision."""

import contextlib
import pkgutil
from collections.abc import Callable, Iterator

import keras
from keras import layers

from facepairs.models.augment import RandomFace
from facepairs.models.network import EmbeddingNetwork, Network, PairNetwork
from facepairs.recipes import RECIPES

# The networks that are built of one function of layers; the recipes name them.
MODELS: dict[str, tuple[type[Network], Callable[[int], keras.Model]]] = {
    name: (EmbeddingNetwork if recipe.embeds else PairNetwork, pkgutil.resolve_name(recipe.head))
    for name, recipe in RECIPES.items()
    if recipe.head
}


def build_network(
    name: str,
    crop_px: int,
    image_px: int,
    augment: float,
    seed: int = 0,
) -> Network:
    """Build a network with new weights, drawn from Keras's global seed.

    Args:
        name: A key of `MODELS`.
        crop_px: Side of the images that are fed.
        image_px: Side to which they are resized, 64 to 224.
        augment: Strength of the augmentation, 0 to 2.
        seed: Seed of what is random in training: augmentation and dropout.

    Returns:
        The network.
    """
    network, build_head = MODELS[name]
    prepare, head = build_preparation(crop_px, image_px), build_head(image_px)
    augmentation = RandomFace(augment, name="augment")
    return network(name, crop_px, image_px, prepare, augmentation, head, seed)


@contextlib.contextmanager
def dtype_policy(name: str) -> Iterator[None]:
    """Set Keras' global policy within the block, `float32` or `mixed_bfloat16`."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def use_float32(head: keras.Model) -> None:
    """Let a model of mixed precision compute in float32 from now on, as its weights are."""
    for layer in head._flatten_layers():
        layer.dtype_policy = "float32"


def build_preparation(crop_px: int, image_px: int) -> keras.Model:
    """Return the layers that cast to float32 in [0, 1] and, if the sizes differ, resize."""
    steps: list[keras.Layer] = [layers.Rescaling(1 / 255, name="to_unit_range", dtype="float32")]
    if image_px != crop_px:
        steps.append(layers.Resizing(image_px, image_px, name="resize", dtype="float32"))
    image = keras.Input((crop_px, crop_px, 3))
    return keras.Sequential([image, *steps], name="prepare")
