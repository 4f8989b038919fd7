"""What was measured of a verifier on people it was not trained on: `measured.json`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.bundles.identities import Identities, hashed_in
from facepairs.bundles.manifest import parse_json_object
from facepairs.bundles.rates import ErrorTable, OperatingPoint, Share, operating_point
from facepairs.errors import BadBundle
from facepairs.support.validation import validate

MEASURED = "measured.json"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Probability, thresholds and errors of a verifier.

    Attributes:
        calibration: From a score to a probability; its threshold is the balanced one.
        thresholds: Thresholds by the false match rate that they promise, without their errors,
            which are in `errors`.
        promise: The target FMR that decides by default; None for the balanced threshold.
        errors: The errors at every threshold; None where they were not measured.
        people: Hashes of the people on whom all this was measured. A bundle has them in
            `identities.json`.
    """

    calibration: Calibration
    thresholds: tuple[OperatingPoint, ...] = ()
    promise: Share | None = None
    errors: ErrorTable | None = None
    people: frozenset[str] = frozenset()

    @property
    def threshold(self) -> float:
        """The balanced threshold, where the probability is one half."""
        return self.calibration.threshold

    @property
    def decided_at(self) -> float:
        """The threshold that decides by default."""
        threshold = operating_point(self).threshold
        assert threshold is not None
        return threshold

    def to_bytes(self) -> bytes:
        """Return the content of the file: the same bytes for the same figures."""
        values = {**msgspec.to_builtins(self), "people": sorted(self.people)}
        return msgspec.json.format(msgspec.json.encode(values), indent=0) + b"\n"

    def summary(self) -> dict[str, Any]:
        """Return plain values without the long lists of errors and people."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {name: fields[name] for name in ("calibration", "thresholds", "promise")}


def parse_measured(data: bytes, path: Path) -> Measured:
    """Parse the content of `measured.json`; raise BadBundle if it is damaged."""
    values = parse_json_object(data, path)
    return validate(values, Measured, str(path), BadBundle, "calibrate again")


class MeasuredModel:
    """What a bundle and an external embedder have in common."""

    __slots__ = ()

    @property
    def measured(self) -> Measured | None:
        """What was measured of the verifier; None where nothing was."""
        raise NotImplementedError

    @property
    def identities(self) -> Identities:
        """The people known to have been used in training and in calibration."""
        raise NotImplementedError

    @property
    def cohort(self) -> npt.NDArray[np.float32] | None:
        """Where faces crowd, float32[K, D], see `verification.linkage`; None if it is not known."""
        return None

    @property
    def thresholds(self) -> tuple[OperatingPoint, ...]:
        """Thresholds by the false match rate that they promise."""
        return self.measured.thresholds if self.measured else ()

    @property
    def promise(self) -> float | None:
        """The target FMR that decides by default; None for the balanced threshold."""
        return self.measured.promise if self.measured else None

    @property
    def errors(self) -> ErrorTable | None:
        """The errors at every threshold; None where they were not measured."""
        return self.measured.errors if self.measured else None

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each name whether training or calibration used that person: bool[N]."""
        return hashed_in(names, self.identities.training | self.identities.calibration)

    def trained_on(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each name whether training is known to have used that person: bool[N]."""
        return hashed_in(names, self.identities.training)
