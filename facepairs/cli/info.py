"""`facepairs info`."""

from typing import TYPE_CHECKING

from facepairs.cli.shared.options import BundleArgument, Json
from facepairs.cli.shared.output import percent, print_result

if TYPE_CHECKING:
    from facepairs.bundles.bundle import Bundle

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
    rows.append(
        (
            "calibrated on",
            f"{calibration.genuine_pairs or 0:,} genuine and "
            f"{calibration.impostor_pairs or 0:,} impostor pairs of other people",
        )
    )
    if bundle.calibrated:
        rows.append(("by", f"facepairs calibrate, on {bundle.calibrated.finished}"))
    if view2 := bundle.results.view2:
        accuracy, error = 100 * view2.accuracy, 100 * view2.accuracy_standard_error
        text = f"accuracy {accuracy:.2f} ± {error:.2f} % (standard error)"
        rows.append(("LFW View 2", f"{text}, by the same recipe on other people"))
    if calibration.ece is not None:
        rows.append(("calibration error", f"{percent(calibration.ece)} (ECE, cross-fitted)"))
    rows += _point_rows(bundle)
    versions = ", ".join(f"{name} {version}" for name, version in bundle.versions.items())
    return [*rows, ("versions", versions), ("files", "all SHA-256 checksums match")]


def _point_rows(bundle: "Bundle") -> list[tuple[str, str]]:
    """Return the thresholds with their errors; the one that decides by default comes first."""
    from facepairs.bundles.operating_point import operating_point

    default = operating_point(bundle)
    points = [default]
    if bundle.operating_point is not None:
        points.append(operating_point(bundle, balanced=True))
    rows = [("decides at", f"score {default.threshold:.4f}: {default.label}")]
    rows.append(("", default.describe()))
    supported = [row for row in bundle.thresholds if row.threshold is not None]
    points += [operating_point(bundle, max_fmr=row.fmr) for row in supported]
    for point in points:
        if point != default:
            rows += [("or at", f"score {point.threshold:.4f}: {point.label}")]
            rows += [("", point.describe())]
    refused = [row for row in bundle.thresholds if row.threshold is None]
    return rows + [(f"FMR {percent(row.fmr)}", row.reason or "no threshold") for row in refused]
