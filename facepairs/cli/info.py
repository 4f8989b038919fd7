"""`facepairs info`."""

from typing import TYPE_CHECKING, Any

from facepairs.cli.shared.options import Json, VerifierArgument
from facepairs.cli.shared.output import percent, print_result

if TYPE_CHECKING:
    from facepairs.bundles.error_profile import ErrorProfile
    from facepairs.bundles.model import Model

PHOTOS = {
    "landmarks-5": "any: the face is found and aligned by five landmarks (landmarks-5)",
    "lfw-frame": "framed like LFW's; each is used whole, without looking for a face (lfw-frame)",
}
EXAMPLE = "Example: facepairs info run/bundle"


def info(bundle: VerifierArgument, json: Json = False) -> None:
    """Show a verifier: model, training, thresholds, errors.

    Also compares its files with their checksums.
    """
    from facepairs.bundles.error_profile import operating_point
    from facepairs.bundles.model import open_model
    from facepairs.bundles.scorer import open_scorer
    from facepairs.photos.yunet import detector_device
    from facepairs.support.devices import available_devices

    model = open_model(bundle)
    has_checksums = model.files.check_all()
    devices = {
        "network": open_scorer(model).device,
        "detector": detector_device() if model.aligned else None,
        "available": available_devices(),
    }
    point = operating_point(model.profile)
    values = {**model.files.raw, **model.profile.summary(), "point": point, "devices": devices}
    where = _describe(devices, has_two_forms=model.network.read_float32 is not None)
    print_result(json, values, [*_rows(model, has_checksums), ("runs on", where)])


def _describe(devices: dict[str, Any], has_two_forms: bool) -> str:
    where = f"network on {devices['network']}"
    if has_two_forms:
        where += " in 8 bits" if devices["network"] == "cpu" else " in float32"
    if devices["detector"]:
        where += f", face detector on {devices['detector']}"
    others = set(devices["available"]) - {devices["network"], devices["detector"]}
    return f"{where}; --device could be {', '.join(sorted(others))}" if others else where


def _rows(model: "Model", has_checksums: bool) -> list[tuple[str, str]]:
    origin, network, profile = model.origin, model.network, model.profile
    made = f"made {origin.created}" if origin.created else f"described by {network.described_in}"
    checked = "all SHA-256 checksums match" if has_checksums else "no checksum to compare with"
    rows = [
        ("model", f"{model.name} ({network.kind} network), {made}"),
        ("photos", PHOTOS[model.alignment]),
        ("trained on", origin.trained_on or "not recorded"),
        ("licence", origin.licence or "not recorded"),
    ]
    if profile.calibration and profile.calibration.ece is not None:
        text = f"{percent(profile.calibration.ece)} (ECE, on pairs it was not fitted to)"
        rows.append(("calibration error", text))
    if profile.calibration:
        rows += _point_rows(profile)
    else:
        rows.append(("threshold", "none: calibrate it on your people"))
    return [*rows, ("files", checked)]


def _point_rows(profile: "ErrorProfile") -> list[tuple[str, str]]:
    """Return the thresholds with their errors: first the default, then the others, rising."""
    from facepairs.bundles.error_profile import operating_point

    default = operating_point(profile)
    rates = [row.max_fmr for row in profile.thresholds if row.threshold is not None]
    points = [operating_point(profile, max_fmr=rate) for rate in rates]
    points.append(operating_point(profile, balanced=True))
    others = [point for point in points if point.threshold != default.threshold]
    rows: list[tuple[str, str]] = []
    for point in (default, *sorted(others, key=lambda point: point.threshold or 0.0)):
        name = "or at" if rows else "decides at"
        rows.append((name, f"score {point.threshold:.4f}: {point.label}"))
        rows.append(("", point.describe()))
    refused = [row for row in profile.thresholds if row.threshold is None]
    return rows + [(row.label, row.reason or "no threshold") for row in refused]
