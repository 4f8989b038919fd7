"""From a batch of `uint8` crops to what a network sees: layers of the compiled step.

Array contract: uint8[N, crop_px, crop_px, 3] in, float32[N, image_px, image_px, 3] in [0, 1] out.
"""

import keras
from keras import layers


def prepare_layers(crop_px: int, image_px: int) -> list[keras.Layer]:
    """Give the layers that cast, scale and (only where the sizes differ) resize bilinearly.

    They run on the device and go into the exported network, so that no flag can forget them.
    """
    steps: list[keras.Layer] = [layers.Rescaling(1 / 255, name="to_unit_range")]
    if image_px != crop_px:
        steps.append(layers.Resizing(image_px, image_px, name="resize"))
    return steps
