"""What was measured of a verifier on other people; of an embedder it is `measured.json`."""

from pathlib import Path
from typing import Any

import msgspec

from facepairs.bundles.calibration import Calibration
from facepairs.bundles.manifest import (
    MAX_ERRORS_BYTES,
    MAX_IDENTITIES_BYTES,
    parse_json_object,
    read_regular_file,
)
from facepairs.bundles.rates import ErrorTable, Finite, OperatingPoint, Share, operating_point
from facepairs.errors import BadBundle
from facepairs.support.validation import validate

MEASURED = "measured.json"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Probability, thresholds and errors of a verifier, as a bundle has them.

    Attributes:
        calibration: From a score to a probability.
        threshold: The balanced threshold, where the probability is one half.
        threshold_source: Where `threshold` comes from, in words.
        thresholds: Thresholds by target FMR.
        operating_point: The target FMR that decides by default; None for `threshold`.
        errors: The errors at every threshold.
        people: Hashes of the people on whom all this was measured; a bundle lists them elsewhere.
    """

    calibration: Calibration
    threshold: Finite
    errors: ErrorTable
    people: frozenset[str] = frozenset()
    threshold_source: str = ""
    thresholds: tuple[OperatingPoint, ...] = ()
    operating_point: Share | None = None

    @property
    def decided_at(self) -> float:
        """The threshold that decides by default."""
        point = operating_point(self)
        assert point.threshold is not None
        return point.threshold

    def manifest_fields(self) -> dict[str, Any]:
        """Return the fields of a bundle's manifest; errors and people have files of their own."""
        fields = msgspec.to_builtins(self)
        return {name: fields[name] for name in fields if name not in ("errors", "people")}

    def to_bytes(self) -> bytes:
        """Return the content of the file: the same bytes for the same figures."""
        values = {**msgspec.to_builtins(self), "people": sorted(self.people)}
        return msgspec.json.format(msgspec.json.encode(values), indent=0) + b"\n"


def read_measured(path: Path) -> Measured:
    """Read the file; raise BadBundle if it is missing, damaged or unusable."""
    data = read_regular_file(path, MAX_ERRORS_BYTES + MAX_IDENTITIES_BYTES)
    values = parse_json_object(data, path)
    return validate(values, Measured, str(path), BadBundle, "calibrate again")
