"""The record of an export, which `export.json` holds."""

from dataclasses import dataclass

from facepairs.bundles.calibration import BundleCalibration
from facepairs.bundles.manifest import Alignment
from facepairs.images.crop import CropSpec


@dataclass(frozen=True)
class Parity:
    """How far an exported network differs from the bundle's own.

    Attributes:
        crops: Number of crops compared.
        max_difference: The largest absolute difference of an output.
        tolerance: The largest difference allowed.
    """

    crops: int
    max_difference: float
    tolerance: float


@dataclass(frozen=True, kw_only=True)
class ExportRecord:
    """What an export wrote; the content of `export.json`.

    Attributes:
        format: One of `choices.ExportFormat`.
        file: The network's file in the folder.
        inputs: Names of the inputs.
        output: Name of the output.
        kind: `embedding` or `pair`.
        model: The architecture.
        framing: The crop that the network expects.
        alignment: Of what it is cut out, see `bundles.manifest.Manifest`.
        template: Landmarks of the frame, as in the manifest.
        threshold: The score at which the probability is one half, or the bundle's equal error.
        threshold_source: Where it comes from, in words.
        verify_threshold: The score from which on `facepairs verify` accepts.
        verify_errors: What was measured there, in words.
        calibration: From a score to a probability.
        parity: The difference from the bundle's own network.
        files: All other files of the export, as paths below the folder.
    """

    schema: int = 1
    format: str
    file: str
    inputs: tuple[str, ...]
    output: str
    kind: str
    model: str
    framing: CropSpec
    alignment: Alignment
    template: tuple[tuple[float, ...], ...] | None
    threshold: float
    threshold_source: str
    verify_threshold: float
    verify_errors: str
    calibration: BundleCalibration
    parity: Parity
    files: tuple[str, ...]
