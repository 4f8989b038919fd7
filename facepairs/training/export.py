"""`export`: write a bundle's network for other runtimes, checked against the bundle's own.

OUT/network.onnx, embedder.toml   onnx: a copy, and the TOML file with which facepairs reads it
OUT/identities.json               beside the TOML: hashes of the people that the bundle knows
OUT/measured.json                 beside the TOML: the bundle's thresholds and errors
OUT/network.tflite                litert, litert-int8
OUT/README.md                     inputs, crop, score, threshold and probability, for people
OUT/export.json                   the same for programs, and the difference of the two networks
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import tomli_w

from facepairs.bundles.bundle import NETWORK, Bundle
from facepairs.bundles.error_profile import MEASURED, Calibration, operating_point
from facepairs.bundles.manifest import IDENTITIES, Alignment
from facepairs.bundles.scorer import OnnxSession
from facepairs.errors import BadBundle, BadConfig
from facepairs.models.export.convert import CROPS, Crops, probe_crops
from facepairs.photos.crop import CropSpec
from facepairs.photos.frame import TEMPLATE, WEIGHTS
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import check_output_folder, files_below, listed_files
from facepairs.support.results import write_json

TOLERANCE = 1e-4  # float32 rounding in another order gives about 1e-6
INT8_TOLERANCE = 0.1  # 8-bit integers give up to .04 for the numbers of an embedding
RECORD = "export.json"
TEMPLATES = Path(__file__).with_name("templates")

RunNetwork = Callable[[Crops], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Parity:
    """How far an exported network differs from the bundle's own, on `crops` crops, and may."""

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
        threshold: The score at which the probability is one half.
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
    template: list[list[float]] | None
    threshold: float
    verify_threshold: float
    verify_errors: str
    calibration: Calibration
    parity: Parity
    files: tuple[str, ...]


def export(path: Path | str | None, out: Path, format: str) -> ExportRecord:
    """Write a bundle's network into a folder, whole or not at all.

    Args:
        path: The bundle; None for the default one.
        out: The folder; an earlier export is replaced.
        format: One of `choices.ExportFormat`.

    Raises:
        BadBundle: The outputs differ from those of the bundle's own network by more than 0.0001,
            or 0.1 where one of both computes in 8 bits.
        BadConfig: The format is unknown, or `out` holds something else than an export.
    """
    if format not in WRITERS:
        raise BadConfig(f"format is {format!r}; use one of {', '.join(WRITERS)}")
    bundle = Bundle.open(path)
    manifest = bundle.manifest
    is_quantized = b"QuantizeLinear" in bundle.read_network()
    in_8_bits = format.endswith("-int8") or (format != "onnx" and is_quantized)
    tolerance = INT8_TOLERANCE if in_8_bits else TOLERANCE
    calibration, point = bundle.profile.calibration, operating_point(bundle.profile)
    if calibration is None:
        raise BadBundle(f"{bundle.folder}: not calibrated; calibrate it first")
    check_output_folder(out, "an export", lambda old: listed_files(old / RECORD), error=BadConfig)
    with atomic_folder(out) as folder:
        file, output, run = WRITERS[format](bundle, folder)
        difference = _max_difference(bundle, run)
        if not difference <= tolerance:
            raise BadBundle(
                f"{bundle.folder}: its network and the exported {format} differ by "
                f"{difference:.3g} on the same crops, more than {tolerance:g}; nothing was written"
            )
        record = ExportRecord(
            format=format,
            file=file,
            inputs=manifest.network.inputs,
            output=output,
            kind=manifest.kind,
            model=manifest.model,
            framing=manifest.framing,
            alignment=manifest.alignment,
            template=TEMPLATE.tolist() if manifest.aligned else None,
            threshold=calibration.threshold,
            verify_threshold=point.threshold or 0.0,
            verify_errors=point.describe(),
            calibration=calibration,
            parity=Parity(CROPS, difference, tolerance),
            files=("README.md", *files_below(folder)),
        )
        write_json(folder / RECORD, record)
        (folder / "README.md").write_text(_readme(record, path), encoding="utf-8")
    return record


def _write_onnx(bundle: Bundle, folder: Path) -> tuple[str, str, RunNetwork]:
    """Copy the ONNX file; return its name, its output's name and a function that runs it."""
    network = bundle.read_network()
    (folder / NETWORK).write_bytes(network)
    if bundle.manifest.kind == "embedding":
        (folder / "embedder.toml").write_text(_embedder_toml(bundle, network), encoding="utf-8")
        (folder / IDENTITIES).write_bytes(bundle.read(IDENTITIES))
        people = bundle.identities.calibration
        profile = msgspec.structs.replace(bundle.profile, people=people)
        (folder / MEASURED).write_bytes(profile.to_bytes())
    return NETWORK, bundle.manifest.network.output, _onnx_runner(bundle, network)


def _write_litert(bundle: Bundle, folder: Path, int8: bool = False) -> tuple[str, str, RunNetwork]:
    from facepairs.models.export.convert import LITERT_OUTPUT, export_litert, run_litert
    from facepairs.training.keras_models import read_keras

    data = export_litert(read_keras(bundle), int8)
    (folder / "network.tflite").write_bytes(data)
    return "network.tflite", LITERT_OUTPUT, lambda crops: run_litert(data, crops)


WRITERS: dict[str, Callable[[Bundle, Path], tuple[str, str, RunNetwork]]] = {
    "onnx": _write_onnx,
    "litert": _write_litert,
    "litert-int8": partial(_write_litert, int8=True),
}


def _onnx_runner(bundle: Bundle, network: bytes) -> RunNetwork:
    session = OnnxSession(network, bundle.network_path)
    return lambda crops: session.run(bundle.manifest.network.output, crops)


def _max_difference(bundle: Bundle, run: RunNetwork) -> float:
    """Return the largest difference from the bundle's network, for a batch and a single crop."""
    run_own, manifest = _onnx_runner(bundle, bundle.read_network()), bundle.manifest
    batch = probe_crops(manifest.network.inputs, manifest.framing.crop_px)
    single = {name: crops[:1] for name, crops in batch.items()}
    return max(
        float(np.abs(wanted - run(crops).reshape(wanted.shape)).max())
        for crops, wanted in ((crops, run_own(crops)) for crops in (batch, single))
    )


def _readme(record: ExportRecord, bundle: Path | str | None) -> str:
    """Return the README of an export as Markdown."""
    arguments = ", ".join(f'"{name}": {name}' for name in record.inputs)  # variables of `use`
    runtime = record.format.removesuffix("-int8")
    return _fill_in(
        "README.md",
        record=record,
        inputs=" and ".join(f"`{name}`" for name in record.inputs),
        use=_fill_in(record.kind, bundle=bundle or "default"),
        weights=", ".join(f"{weight:g}" for weight in WEIGHTS),
        snippet=_fill_in(runtime, output=record.output, inputs=f"{{{arguments}}}"),
    )


def _embedder_toml(bundle: Bundle, network: bytes) -> str:
    """Return the TOML file with which `bundles.embedder` reads the network."""
    manifest = bundle.manifest
    crop = manifest.framing
    more: dict[str, Any] = {"measured": MEASURED}
    if crop.points:
        more |= {"align": "landmarks-5", "points": [list(point) for point in crop.points]}
    else:
        align = "landmarks" if manifest.aligned else "none"
        more |= {"align": align, "crop": crop.crop_px / crop.frame_px}
    more["sha256"] = hashlib.sha256(network).hexdigest()
    if manifest.training.data:  # else the identities tell how many people it was
        more["training_data"] = manifest.training.data
    if manifest.weights_licence:
        more["licence"] = manifest.weights_licence
    return _fill_in("embedder.toml", bundle=bundle) + tomli_w.dumps(more)


def _fill_in(name: str, **values: Any) -> str:
    """Return a template with its placeholders replaced."""
    return (TEMPLATES / f"{name}.template").read_text(encoding="utf-8").format(**values)
