"""`facepairs info`."""

from typing import TYPE_CHECKING, Any

from facepairs.cli.options import BundleArgument, Json
from facepairs.cli.output import percent, print_json, print_rows

if TYPE_CHECKING:
    from facepairs.bundles.bundle import Bundle

EXAMPLE = "Example: facepairs info run/bundle"


def info(bundle: BundleArgument, json: Json = False) -> None:
    """Show a bundle: model, training, thresholds and their errors. Checks every file's checksum."""
    from facepairs.bundles.bundle import Bundle

    opened = Bundle.open(bundle)
    opened.check_all()
    if json:
        print_json(dict(opened.raw))
    else:
        print_rows(_rows(opened))


def _rate(row: dict[str, Any]) -> str:
    """Return the threshold for one false match rate, with its errors."""
    text = row.get("reason") or ""
    if row.get("threshold") is not None:
        text = f"threshold {row['threshold']:.4f}"
    if "fmr_interval" not in row:
        return text
    low, high = map(percent, row["fmr_interval"])
    return (
        f"{text}, FNMR {percent(row['fnmr'])} (FMR measured {percent(row['measured_fmr'])}, "
        f"95 % interval {low} to {high})"
    )


def _rows(bundle: "Bundle") -> list[tuple[str, str]]:
    training, calibration = bundle.training, bundle.raw["calibration"]
    framing = bundle.framing
    rows = [
        ("model", f"{bundle.model} ({bundle.kind} network), made {bundle.created}"),
        ("crop", f"{framing.crop_px} of {framing.frame_px} pixels of the shorter side"),
        (
            "trained on",
            f"{training.get('people', 0):,} people, {training.get('images', 0):,} images, "
            f"protocol {training.get('protocol')}, seed {training.get('seed')}",
        ),
        ("threshold", f"{bundle.threshold:.4f} ({bundle.threshold_source})"),
        (
            "calibrated on",
            f"{calibration.get('genuine_pairs', 0):,} genuine and "
            f"{calibration.get('impostor_pairs', 0):,} impostor pairs of other people",
        ),
    ]
    if "init" in training:
        rows.insert(3, ("started from", f"a bundle made {training['init']['created']}"))
    if "calibrated" in bundle.raw:
        rows.append(("by", f"facepairs calibrate, on {bundle.raw['calibrated']['finished']}"))
    if view2 := bundle.results.get("view2"):
        accuracy, error = view2["accuracy"], view2["accuracy_standard_error"]
        text = f"accuracy {100 * accuracy:.2f} ± {100 * error:.2f} %"
        rows.append(("LFW View 2", f"{text} (standard error), by the same recipe on other people"))
    if bundle.ece is not None:
        rows.append(("calibration error", f"{percent(bundle.ece)} (ECE, cross-fitted)"))
    rows += [(f"FMR {percent(row['fmr'])}", _rate(row)) for row in bundle.thresholds]
    versions = ", ".join(f"{name} {version}" for name, version in bundle.versions.items())
    return [*rows, ("versions", versions), ("files", "all SHA-256 checksums match")]
