"""Write a small `.keras` file, and check one from an unknown source before Keras loads it.

Keras's safe mode refuses what it knows to run code. This check is stricter: it only allows what
our own models consist of, so no other layer, no function by name, no path to a file, and a limited
size.
"""

import io
import json
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras

from facepairs.errors import BadConfig
from facepairs.support.validation import shorten

MEMBERS = frozenset(("metadata.json", "config.json", "model.weights.h5"))
MAX_CONFIG_BYTES = 2**20
MAX_WEIGHT_BYTES = 2**30
LAYERS = frozenset(
    (
        "Add", "AveragePooling2D", "BatchNormalization", "Concatenate", "Conv2D", "Dense",
        "Dropout", "Flatten", "GlobalAveragePooling2D", "InputLayer", "MaxPooling2D", "ReLU",
        "Rescaling", "Resizing", "Subtract", "UnitNormalization", "Functional", "Sequential",
    )
)  # fmt: skip
OPERATIONS = frozenset(("keras.src.ops.numpy", "keras.src.ops.nn"))  # arithmetic
PARTS = frozenset(
    ("DTypePolicy", "GlorotUniform", "HeNormal", "Ones", "Zeros", "Constant", "__keras_tensor__",
     "__slice__", "__ellipsis__")
)  # fmt: skip
OURS = frozenset(
    ("CohortDimension", "FisherBackbone", "LocalContrast", "MirroredVector", "Projections")
)


def keras_bytes(model: keras.Model) -> bytes:
    """Return the content of a model's `.keras` file, deflated.

    The low bits of rounded weights are zeros, so deflating halves the file.
    """
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        with zipfile.ZipFile(path) as plain, zipfile.ZipFile(packed, "w") as small:
            for name in plain.namelist():
                small.writestr(name, plain.read(name), zipfile.ZIP_DEFLATED, 6)
    return packed.getvalue()


def check_exportable(model: keras.Model) -> None:
    """Check before a training that its bundle could be loaded again.

    Raises:
        BadConfig: The model has a layer that `check_keras_file` refuses.
    """
    try:
        for part in _parts(json.loads(model.to_json())):
            _check_part(part)
    except ValueError as error:
        raise BadConfig(
            f"the model cannot be exported: {error}; add the layer's class to LAYERS, or your own "
            f"to OURS, in {Path(__file__).name}"
        ) from None


def check_keras_file(data: bytes) -> None:
    """Check that a `.keras` file only holds what our models consist of.

    Raises:
        ValueError: It holds something else, which the message names.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive)
            config = json.loads(archive.read("config.json"))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"not a Keras file ({error})") from None
    for part in _parts(config):
        _check_part(part)


def _check_members(archive: zipfile.ZipFile) -> None:
    names = [entry.filename for entry in archive.infolist()]
    if len(names) != len(MEMBERS) or set(names) != MEMBERS:
        raise ValueError(f"it holds {shorten(names)}, not just {', '.join(sorted(MEMBERS))}")
    for entry in archive.infolist():
        limit = MAX_WEIGHT_BYTES if entry.filename.endswith(".h5") else MAX_CONFIG_BYTES
        if entry.file_size > limit:
            raise ValueError(f"its {entry.filename} has {entry.file_size:,} bytes, over {limit:,}")


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a config, without recursion: the file may be nested very deeply."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending += item.values()
        elif isinstance(item, list):
            pending += item


def _check_part(part: dict[str, Any]) -> None:
    if not {"class_name", "module", "registered_name"} & part.keys():
        return
    name, module = part.get("class_name"), part.get("module") or "keras"
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError(f"it has a part of class {shorten(name)}")
    ours = name in OURS and module.startswith(("facepairs.models.", "facepairs.fisher."))
    known = name in LAYERS | PARTS and module.split(".")[0] == "keras"
    known = known or (module in OPERATIONS and name[:1].isupper())
    registered = part.get("registered_name") or name
    if not (ours or known) or registered not in (name, f"facepairs>{name}"):
        raise ValueError(
            f"it has a part {shorten(f'{module}.{name}')}, which none of our models has"
        )
