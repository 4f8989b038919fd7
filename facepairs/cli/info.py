"""`facepairs info`."""

from typing import TYPE_CHECKING

from facepairs.cli.options import BundleArgument, Json
from facepairs.cli.output import percent, print_result

if TYPE_CHECKING:
    from facepairs.bundles.bundle import Bundle
    from facepairs.bundles.thresholds import FmrThreshold

PHOTOS = {
    "landmarks-5": "any: the face is found and aligned by five landmarks (landmarks-5)",
    "lfw-frame": "framed like LFW's; each is used whole, without looking for a face (lfw-frame)",
}
EXAMPLE = "Example: facepairs info run/bundle"


def info(bundle: BundleArgument, json: Json = False) -> None:
    """Show a bundle: model, training, thresholds and their errors. Checks every file's checksum."""
    from facepairs.bundles.bundle import Bundle

    opened = Bundle.open(bundle)
    opened.check_all()
    print_result(json, opened.raw, _rows(opened))


def _rows(bundle: "Bundle") -> list[tuple[str, str]]:
    training, calibration, crop = bundle.training, bundle.calibration, bundle.framing
    rows = [
        ("model", f"{bundle.model} ({bundle.kind} network), made {bundle.created}"),
        ("photos", PHOTOS[bundle.alignment]),
        ("crop", f"{crop.crop_px} of the {crop.frame_px} pixels of a frame's side"),
        (
            "trained on",
            f"{training.people or 0:,} people, {training.images or 0:,} images, "
            f"protocol {training.protocol}, seed {training.seed}",
        ),
    ]
    if training.init:
        rows.append(("started from", f"a bundle made {training.init.created}"))
    rows += [
        ("threshold", f"{bundle.threshold:.4f} ({bundle.threshold_source})"),
        (
            "calibrated on",
            f"{calibration.genuine_pairs or 0:,} genuine and "
            f"{calibration.impostor_pairs or 0:,} impostor pairs of other people",
        ),
    ]
    if bundle.calibrated:
        rows.append(("by", f"facepairs calibrate, on {bundle.calibrated.finished}"))
    if view2 := bundle.results.view2:
        accuracy, error = 100 * view2.accuracy, 100 * view2.accuracy_standard_error
        text = f"accuracy {accuracy:.2f} ± {error:.2f} % (standard error)"
        rows.append(("LFW View 2", f"{text}, by the same recipe on other people"))
    if calibration.ece is not None:
        rows.append(("calibration error", f"{percent(calibration.ece)} (ECE, cross-fitted)"))
    rows += [(f"FMR {percent(row.fmr)}", _errors_at(row)) for row in bundle.thresholds]
    versions = ", ".join(f"{name} {version}" for name, version in bundle.versions.items())
    return [*rows, ("versions", versions), ("files", "all SHA-256 checksums match")]


def _errors_at(row: "FmrThreshold") -> str:
    """Return the threshold for a target false match rate, and the errors measured at it."""
    if row.threshold is None:
        return row.reason or "no threshold"
    parts = [f"threshold {row.threshold:.4f}"]
    if row.fnmr is not None:
        parts.append(f"FNMR {percent(row.fnmr)}")
    if row.measured_fmr is not None and row.fmr_interval:
        low, high = map(percent, row.fmr_interval)
        parts.append(f"FMR measured {percent(row.measured_fmr)} (95 % interval {low} to {high})")
    return ", ".join(parts)
