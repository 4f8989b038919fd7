"""The pairs that tutorials draw, to measure the difference to `PairSampler`.

For comparison only: in a folder like LFW most genuine pairs drawn this way pair an image with
itself, and a network learns from them that "same person" means "same photo".
"""

import numpy as np
import numpy.typing as npt

from facepairs.data.sampler import PairSampler


class ArticleSamplerForComparison(PairSampler):
    """Draws genuine pairs with replacement: any person, then two images that may be the same.

    Everything else is inherited from `PairSampler`; the same seed gives the same impostor pairs.
    """

    def _genuine(
        self, u: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        person = self.people[np.floor(u[0] * len(self.people)).astype(np.int64)]
        return self._any_image(person, u[1]), self._any_image(person, u[2])
