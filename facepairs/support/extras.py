"""The extras of facepairs: the modules that each one brings, and a check for them."""

import importlib.util

from facepairs.errors import MissingExtra

MEASURE = ("jinja2", "matplotlib", "sklearn", "tomli_w")
EXTRAS = {  # the modules that the packages of an extra bring, as in pyproject.toml
    "measure": MEASURE,
    "train": (*MEASURE, "cv2", "keras", "onnx", "tensorboard", "tensorflow", "tf2onnx"),
    "serve": ("prometheus_client", "python_multipart", "starlette", "uvicorn"),
    "encrypt": ("cryptography",),
    "postgres": ("psycopg",),
}


def require_extra(extra: str, what: str) -> None:
    """Raise MissingExtra unless the packages of an extra are installed; imports none of them.

    Args:
        extra: A key of `EXTRAS`.
        what: What needs it, as a user would write it: `facepairs train`.
    """
    if not has_extra(extra):
        raise MissingExtra(f"{what} needs the {extra} extra; {install_advice(extra)}")


def has_extra(extra: str) -> bool:
    """Return whether the packages of an extra are installed; imports none of them."""
    return all(importlib.util.find_spec(module) for module in EXTRAS[extra])


def install_advice(extra: str) -> str:
    """Return how an extra is installed, for the end of a message."""
    return f"in a clone of facepairs, run: pip install '.[{extra}]'"
