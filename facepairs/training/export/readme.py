"""The files that explain an exported network: a README for people and a TOML file for facepairs."""

import hashlib
from pathlib import Path
from typing import Any

import tomli_w

from facepairs.bundles.bundle import Bundle
from facepairs.training.export.record import ExportRecord
from facepairs.verification.embedders.measured import MEASURED

TEMPLATES = Path(__file__).with_name("templates")
CROP_VARIABLES = {"image": "crops", "left": "left_crops", "right": "right_crops"}
CROPS = {
    "embedding": 'crops = numpy.stack([cut("a.jpg"), cut("b.jpg")])\n',
    "pair": 'left_crops, right_crops = cut("a.jpg")[None], cut("b.jpg")[None]\n',
}
CUT = """\
from facepairs import Verifier

cut = Verifier.load("run/bundle").crop  # of the bundle that was exported
"""
FRAMES = {
    "landmarks-5": "an aligned frame: the photo, turned, scaled and\nshifted such that its five "
    "landmarks come closest to `template` in\nexport.json, (x, y) in a frame of 250 x 250 pixels, "
    "weighted as in facepairs.faces.alignment",
    "lfw-frame": "a photo that is framed like LFW's",
}
OUTPUTS = {
    "embedding": "embeddings, float32 [N, D], rows of length 1. The score of a pair is the dot\n"
    "product of its two rows.",
    "pair": "scores, float32 [N, 1], one per pair.",
}


def readme(record: ExportRecord) -> str:
    """Return the README of an export as Markdown."""
    runtime = record.format.removesuffix("-int8")
    arguments = ", ".join(f'"{name}": {CROP_VARIABLES[name]}' for name in record.inputs)
    other = f"\nAnother threshold is {record.threshold!r}: {record.threshold_source}."
    return _fill_in(
        "README.md",
        record=record,
        other=other if record.threshold != record.verify_threshold else "",
        crops=("import numpy\n" if record.kind == "embedding" else "") + CUT + CROPS[record.kind],
        inputs=" and ".join(f"`{name}`" for name in record.inputs),
        crop=_describe_crop(record),
        output=OUTPUTS[record.kind],
        snippet=_fill_in(runtime, output=record.output, inputs=f"{{{arguments}}}"),
    )


def _describe_crop(record: ExportRecord) -> str:
    spec = record.framing
    if spec.points:
        points = ", ".join(f"({x:g}, {y:g})" for x, y in spec.points)
        return (
            "A crop is the photo, turned, scaled and\nshifted such that the eyes, the nose tip and "
            f"the mouth corners come closest to\n{points} in it, by least squares."
        )
    return (
        f"A crop is the centre square, {spec.crop_px}\nof every {spec.frame_px} pixels of the "
        f"side, of {FRAMES[record.alignment]}; it is resized to\n{spec.crop_px} x {spec.crop_px} "
        "pixels (bilinear)."
    )


def embedder_toml(bundle: Bundle, network: bytes) -> str:
    """Return the TOML file with which `verification.embedders` reads the network."""
    crop = bundle.framing
    more: dict[str, Any] = {"measured": MEASURED}
    if bundle.errors is None:
        curve = bundle.calibration
        more = {
            "threshold": bundle.threshold,
            "calibration": {"scale": curve.scale, "offset": curve.offset},
        }
    if crop.points:
        more |= {"align": "landmarks-5", "points": [list(point) for point in crop.points]}
    else:
        align = "landmarks" if bundle.aligned else "none"
        more |= {"align": align, "crop": [crop.crop_px, crop.frame_px]}
    more["sha256"] = hashlib.sha256(network).hexdigest()
    if bundle.weights_licence:
        more["licence"] = bundle.weights_licence
    return _fill_in("embedder.toml", bundle=bundle) + tomli_w.dumps(more)


def _fill_in(name: str, **values: Any) -> str:
    """Return a template with its placeholders replaced."""
    return (TEMPLATES / f"{name}.template").read_text(encoding="utf-8").format(**values)
