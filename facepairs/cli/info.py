"""`facepairs info`."""

from typing import TYPE_CHECKING, Annotated

import typer

from facepairs.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from facepairs.bundles.bundle import Bundle

EXAMPLE = "Example: facepairs info run/bundle"


def info(
    bundle: Annotated[str, typer.Argument(help="Bundle made by `facepairs train`, or default.")],
    json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Show what a bundle is: model, training, threshold and its errors; checks every file's sum."""
    from facepairs.bundles.bundle import Bundle

    opened = Bundle.open(bundle)
    opened.check_all()
    if json:
        print_json(dict(opened.raw))
    else:
        print_rows(_rows(opened))


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
    view2 = bundle.results.get("view2")
    if view2:
        text = f"accuracy {view2['accuracy']:.4f} ± {view2['accuracy_standard_error']:.4f}"
        rows.append(("LFW View 2", f"{text}, by the same recipe on other people"))
    if bundle.ece is not None:
        rows.append(("calibration error", f"{bundle.ece:.3f} (ECE, cross-fitted)"))
    for row in bundle.thresholds:
        text = row.get("reason") or ""
        if row.get("threshold") is not None:
            text = f"threshold {row['threshold']:.4f}"
        if "fmr_interval" in row:
            low, high = row["fmr_interval"]
            text += (
                f", FNMR {row['fnmr']:.3f} (FMR measured {row['measured_fmr']:.4f}, 95 % interval "
                f"{low:.4f} to {high:.4f})"
            )
        rows.append((f"FMR {row['fmr']:g}", text))
    versions = ", ".join(f"{name} {version}" for name, version in bundle.versions.items())
    return [*rows, ("versions", versions), ("files", "all SHA-256 sums match")]
