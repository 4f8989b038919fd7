"""`export`: a bundle's network for other runtimes, checked against the bundle's own.

OUT/network.onnx, embedder.toml   onnx: a copy; the TOML lets `verify` and `evaluate` take it
OUT/network.tflite                litert
OUT/saved_model.pb, variables/    saved_model
OUT/README.md                     inputs, crop, score, threshold and probability, for people
OUT/export.json                   the same for scripts, and how far the two networks differ
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import NETWORK, Bundle
from facepairs.bundles.default import DEFAULT
from facepairs.data.synth.faces import draw_face
from facepairs.errors import BadBundle, BadConfig
from facepairs.images.crop import load_crop
from facepairs.support.atomic import atomic_folder
from facepairs.support.random_streams import Stream, raw_words
from facepairs.training.export.readme import embedder_toml, readme
from facepairs.verification.scorer import OnnxSession

FORMATS = ("onnx", "litert", "saved_model")
TOLERANCE = 1e-4  # of an output; float32 rounding in another order is about 1e-6
RECORD = "export.json"
CROPS = 8  # half random, half drawn faces
SCHEMA = 1

Arrays = dict[str, npt.NDArray[np.uint8]]
Floats = npt.NDArray[np.float32]
Run = Callable[[Arrays], Floats]


def export(
    path: Path | str | None, out: Path, format: str, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """Write a bundle's network into the folder `out`, whole or not at all; give what was done.

    `format` is one of FORMATS. Keys of the dict, ready for JSON: `format`, `file`, `inputs`,
    `output`, `parity` (`crops`, `max_difference` on them, `tolerance`), what the README says,
    `bundle` and `out`. Raises BadBundle where the outputs differ by more than `tolerance`,
    BadConfig for another format, or an `out` that holds something else than an earlier export.
    """
    if format not in FORMATS:
        raise BadConfig(f"format is {format!r}; give one of {', '.join(FORMATS)}")
    if not tolerance >= 0:
        raise BadConfig(f"tolerance is {tolerance}, not a number from 0 up")
    bundle = Bundle.open(path)
    _check_free(out)
    network = bundle.read(bundle.network.file)
    with atomic_folder(out) as folder:
        file, output, run = _WRITERS[format](bundle, network, folder)
        parity = _parity(bundle, _onnx_runner(bundle, network), run)
        if not parity <= tolerance:
            raise BadBundle(
                f"{bundle.folder}: its network and the exported {format} differ by {parity:.3g} on "
                f"the same crops, more than {tolerance:g}; nothing was written"
            )
        record = {
            "schema": SCHEMA,
            "format": format,
            "file": file,
            "inputs": list(bundle.network.inputs),
            "output": output,
            "kind": bundle.kind,
            "model": bundle.model,
            "framing": bundle.framing.to_json(),
            "threshold": bundle.threshold,
            "threshold_source": bundle.threshold_source,
            "calibration": bundle.calibration.to_json(),
            "parity": {"crops": CROPS, "max_difference": parity, "tolerance": tolerance},
        }
        (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (folder / "README.md").write_text(readme(record), encoding="utf-8")
    return record | {"bundle": str(path or DEFAULT), "out": str(out)}


def _check_free(out: Path) -> None:
    """Refuse to replace anything but an earlier export or an empty folder."""
    try:
        free = not out.exists() or (out / RECORD).is_file()
        free = free or (out.is_dir() and not any(out.iterdir()))
    except OSError as error:
        raise BadConfig(f"{out}: {error.strerror}; choose another place") from None
    if not free:
        raise BadConfig(f"{out}: exists and is no export; choose another place or remove it")


def _onnx(bundle: Bundle, network: bytes, folder: Path) -> tuple[str, str, Run]:
    (folder / NETWORK).write_bytes(network)
    if bundle.kind == "embedding":
        (folder / "embedder.toml").write_text(embedder_toml(bundle), encoding="utf-8")
    written = (folder / NETWORK).read_bytes()
    return NETWORK, bundle.network.output, _onnx_runner(bundle, written)


def _saved_model(bundle: Bundle, _: bytes, folder: Path) -> tuple[str, str, Run]:
    from facepairs.models.export.interchange import OUTPUT, export_saved_model, run_saved_model
    from facepairs.training.export.keras_model import read_keras

    export_saved_model(read_keras(bundle), folder)
    return ".", OUTPUT, lambda inputs: run_saved_model(folder, inputs)


def _litert(bundle: Bundle, _: bytes, folder: Path) -> tuple[str, str, Run]:
    import tempfile

    from facepairs.models.export.interchange import (
        OUTPUT,
        export_litert,
        export_saved_model,
        run_litert,
    )
    from facepairs.training.export.keras_model import read_keras

    with tempfile.TemporaryDirectory() as between:
        export_saved_model(read_keras(bundle), Path(between))
        data = export_litert(Path(between))
    (folder / "network.tflite").write_bytes(data)
    return "network.tflite", OUTPUT, lambda inputs: run_litert(data, inputs)


_WRITERS = {"onnx": _onnx, "litert": _litert, "saved_model": _saved_model}


def _onnx_runner(bundle: Bundle, network: bytes) -> Run:
    path = bundle.folder / bundle.network.file
    session = OnnxSession(network, path)
    return lambda inputs: session.run(bundle.network.output, inputs)


def _parity(bundle: Bundle, one: Run, other: Run) -> float:
    """Give the largest difference of two networks' outputs, among other crops and for one alone."""
    inputs = _probe(bundle)
    single = {name: crops[:1] for name, crops in inputs.items()}
    gaps = []
    for given in (inputs, single):
        wanted = one(given)
        gaps.append(np.abs(wanted - other(given).reshape(wanted.shape)).max())
    return float(max(gaps))


def _probe(bundle: Bundle) -> Arrays:
    """Give crops by input name, half random, half drawn faces; the same every time."""
    side = bundle.framing.crop_px
    words = raw_words(0, Stream.EXPORT_CHECK, 0, 0, CROPS // 2 * side * side * 3)
    noise = (words >> np.uint64(56)).astype(np.uint8).reshape(-1, side, side, 3)
    drawn = [load_crop(draw_face(0, person, 0), bundle.framing) for person in range(CROPS // 2)]
    crops = np.concatenate([noise, drawn])
    return {name: np.roll(crops, shift, axis=0) for shift, name in enumerate(bundle.network.inputs)}
