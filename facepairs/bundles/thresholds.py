"""A bundle's thresholds by target false match rate."""

from typing import Literal

import msgspec

from facepairs.bundles.calibration import Count, Finite, Share

Among = Literal["look-alikes", "strangers"]


class FmrThreshold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A threshold for a target false match rate.

    The errors at it are in `errors.json`; only the rows of older bundles hold them, too.

    Attributes:
        fmr: The target FMR, 0 to 1.
        threshold: Accept scores from here on; None when the pairs were too few for this FMR.
        among: Whose FMR keeps to the target: that of strangers who look alike, or of all strangers.
        measured_fmr: FMR over all strangers.
        fmr_interval: 95 % interval of `measured_fmr`.
        lookalike_fmr: FMR among strangers who look alike; None where it is not known.
        fnmr: False non-match rate on the genuine pairs.
        fnmr_interval: 95 % interval of `fnmr`.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        reason: Why there is no threshold.
    """

    fmr: Share
    threshold: Finite | None
    among: Among = "strangers"
    measured_fmr: Share | None = None
    fmr_interval: tuple[Share, Share] | None = None
    lookalike_fmr: Share | None = None
    fnmr: Share | None = None
    fnmr_interval: tuple[Share, Share] | None = None
    genuine_pairs: Count | None = None
    impostor_pairs: Count | None = None
    reason: str | None = None
