"""The pairs that tutorials draw, so that what our own sampler brings can be measured against them.

Not for use: in a folder like LFW most genuine pairs drawn this way are one image and itself, and a
network learns from them that equal means the very same photo.
"""

import numpy as np
import numpy.typing as npt

from facepairs.data.sampler import PairSampler


class ArticleSamplerForComparison(PairSampler):
    """Draws any person, then twice from that folder, so that an image may meet itself.

    Impostor pairs, and everything else, are PairSampler's: the same seed tosses the same coins and
    gives the very same impostor pairs. Also draws genuine pairs of people with a single image.
    """

    def _genuine(self, u: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], ...]:
        person = self.people[np.floor(u[0] * len(self.people)).astype(np.int64)]
        count = self._counts[person]
        left, right = (np.floor(v * count).astype(np.int64) for v in u[1:3])
        return self._first[person] + left, self._first[person] + right
