"""`facepairs info`."""

from typing import TYPE_CHECKING

from facepairs.cli.shared.options import Json, VerifierArgument
from facepairs.cli.shared.output import percent, print_result

if TYPE_CHECKING:
    from facepairs.bundles.bundle import Bundle
    from facepairs.bundles.embedder import ExternalEmbedder
    from facepairs.bundles.loading import Model

PHOTOS = {
    "landmarks-5": "any: the face is found and aligned by five landmarks (landmarks-5)",
    "lfw-frame": "framed like LFW's; each is used whole, without looking for a face (lfw-frame)",
}
EXAMPLE = "Example: facepairs info run/bundle"


def info(bundle: VerifierArgument, json: Json = False) -> None:
    """Show a verifier: model, training, thresholds, errors.

    Its files are compared with their checksums.
    """
    from facepairs.bundles.bundle import Bundle
    from facepairs.bundles.embedder import read_toml
    from facepairs.bundles.loading import open_model
    from facepairs.bundles.measured import operating_point

    opened = open_model(bundle)
    if isinstance(opened, Bundle):
        opened.check_all()
        measured = opened.measured.summary() if opened.measured else {}
        print_result(json, {**opened.raw, **measured}, _rows(opened))
    else:
        opened.read_network()  # checks it
        values = {**read_toml(opened.path), "point": operating_point(opened).to_json()}
        print_result(json, values, _embedder_rows(opened))


def _embedder_rows(model: "ExternalEmbedder") -> list[tuple[str, str]]:
    checked = "" if model.sha256 else " (no checksum to compare with)"
    rows = [
        ("model", f"{model.model}, described by {model.path}"),
        ("network", f"{model.network_path}{checked}"),
        ("photos", PHOTOS[model.alignment]),
        ("licence", model.licence or "not recorded"),
        ("trained on", model.trained_with or "not recorded"),
    ]
    if model.threshold is None:
        return [*rows, ("threshold", "none: facepairs[measure] calibrates one on your people")]
    return rows + _point_rows(model)


def _rows(bundle: "Bundle") -> list[tuple[str, str]]:
    training, calibration = bundle.training, bundle.calibration
    learnt = (
        f"{training.people or 0:,} people, {training.images or 0:,} images, "
        f"protocol {training.protocol}, seed {training.seed}"
    )
    rows = [
        ("model", f"{bundle.model} ({bundle.kind} network), made {bundle.created}"),
        ("photos", PHOTOS[bundle.alignment]),
        ("trained on", training.data or learnt),
    ]
    if bundle.weights_licence:
        whose = "" if bundle.licence else " that it started from"
        rows.append(("licence", f"{bundle.weights_licence} (of the weights{whose})"))
    if calibration and calibration.ece is not None:
        text = f"{percent(calibration.ece)} (ECE, on pairs it was not fitted to)"
        rows.append(("calibration error", text))
    return [*rows, *_point_rows(bundle), ("files", "all SHA-256 checksums match")]


def _point_rows(bundle: "Model") -> list[tuple[str, str]]:
    """Return the thresholds with their errors: first the default, then the others, rising."""
    from facepairs.bundles.measured import operating_point

    default = operating_point(bundle)
    rates = [row.max_fmr for row in bundle.thresholds if row.threshold is not None]
    points = [operating_point(bundle, max_fmr=rate) for rate in rates]
    points.append(operating_point(bundle, balanced=True))
    others = [point for point in points if point.threshold != default.threshold]
    rows: list[tuple[str, str]] = []
    for point in (default, *sorted(others, key=lambda point: point.threshold or 0.0)):
        name = "or at" if rows else "decides at"
        rows.append((name, f"score {point.threshold:.4f}: {point.label}"))
        rows.append(("", point.describe()))
    refused = [row for row in bundle.thresholds if row.threshold is None]
    return rows + [(row.label, row.reason or "no threshold") for row in refused]
