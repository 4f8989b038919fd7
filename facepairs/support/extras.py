"""The optional packages: which modules each extra of facepairs brings, and what to install."""

import importlib.util
from collections.abc import Sequence

from facepairs.errors import MissingExtra

EXTRAS = {  # the modules that the packages of an extra bring, as in pyproject.toml
    "train": (
        "cv2", "jinja2", "keras", "onnx", "sklearn", "tensorboard", "tensorflow", "tf2onnx",
        "tomli_w",
    ),
    "report": ("jinja2", "matplotlib"),
    "serve": ("prometheus_client", "python_multipart", "starlette", "uvicorn"),
    "encrypt": ("cryptography",),
    "postgres": ("psycopg",),
    "parquet": ("pyarrow",),
}  # fmt: skip


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


def require_pandas(what: str) -> None:
    """Raise MissingExtra unless pandas is installed, which no extra brings."""
    if importlib.util.find_spec("pandas") is None:
        raise MissingExtra(f"{what} needs pandas; install it with: pip install pandas")
