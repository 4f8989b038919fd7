"""Draw the images that a model is fitted to."""

import numpy as np
import numpy.typing as npt

from facepairs.support.random_streams import Stream, raw_words

Images = npt.NDArray[np.int64]


def sample_images(images: Images, count: int, seed: int, stream: Stream) -> Images:
    """Draw at most `count` image numbers without replacement, sorted.

    Args:
        images: int64[N], image numbers.
        count: The largest number to draw.
        seed: Seed of the draw.
        stream: Stream of random numbers of the draw.
    """
    order = np.argsort(raw_words(seed, stream, 0, 0, len(images)), kind="stable")
    return np.sort(images[order[:count]])
