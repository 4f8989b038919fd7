"""The crops on which an exported network is compared with the one that it was made from."""

import numpy as np
import numpy.typing as npt

from facepairs.data.synth.faces import draw_face
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.support.random_streams import Stream, raw_words

CROPS = 8  # half random, half drawn faces

Crops = dict[str, npt.NDArray[np.uint8]]


def probe_crops(inputs: tuple[str, ...], side_px: int) -> Crops:
    """Return crops by the names of a network's inputs: uint8[8, side_px, side_px, 3] each.

    They are the same every time, in another order for a second input.
    """
    half = CROPS // 2
    words = raw_words(0, Stream.EXPORT_CHECK, 0, 0, half * side_px * side_px * 3)
    noise = (words >> np.uint64(56)).astype(np.uint8).reshape(half, side_px, side_px, 3)
    whole = CropSpec(side_px, side_px)
    drawn = [load_crop(draw_face(0, person, 0), whole) for person in range(half)]
    crops = np.concatenate([noise, drawn])
    return {name: np.roll(crops, shift, axis=0) for shift, name in enumerate(inputs)}
