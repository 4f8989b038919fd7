"""The optional packages: which modules each extra of facepairs brings, and what to install."""

import importlib.util
from collections.abc import Sequence

from facepairs.errors import MissingExtra

MEASURE = ("jinja2", "matplotlib", "sklearn", "tomli_w")
EXTRAS = {  # the modules that the packages of an extra bring, as in pyproject.toml
    "measure": MEASURE,
    "train": (*MEASURE, "cv2", "keras", "onnx", "tensorboard", "tensorflow", "tf2onnx"),
    "serve": ("prometheus_client", "python_multipart", "starlette", "uvicorn"),
    "encrypt": ("cryptography",),
    "postgres": ("psycopg",),
}


def require_extras(extras: Sequence[str], what: str) -> None:
    """Raise MissingExtra unless the packages of these extras are installed; imports none of them.

    Args:
        extras: Keys of `EXTRAS`.
        what: What needs them, as a user would write it: `facepairs train`.
    """
    missing = [
        extra
        for extra in extras
        if any(importlib.util.find_spec(module) is None for module in EXTRAS[extra])
    ]
    if missing:
        raise MissingExtra(
            f"{what} needs more packages; install them with: "
            f"pip install 'facepairs[{','.join(missing)}]'"
        )
