"""facepairs turns a folder of faces into a face verifier whose errors are known."""

import importlib
import os
from typing import TYPE_CHECKING

from facepairs.support.version import __version__

# From 1.29 on ONNX Runtime reports every session to its maker unless this is set before its import;
# a value that the user has set stays.
for _name in ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"):
    os.environ.setdefault(_name, "1")

if TYPE_CHECKING:
    from facepairs.errors import (
        BadBundle,
        BadConfig,
        BadData,
        BadImage,
        FacepairsError,
        NoFace,
        TooSmallFace,
    )
    from facepairs.gallery.gallery import Gallery
    from facepairs.verification.verdict import Verdict
    from facepairs.verification.verifier import Verifier

__all__ = [
    "BadBundle",
    "BadConfig",
    "BadData",
    "BadImage",
    "FacepairsError",
    "Gallery",
    "NoFace",
    "TooSmallFace",
    "Verdict",
    "Verifier",
    "__version__",
]
_MODULES = {
    "Gallery": "facepairs.gallery.gallery",
    "Verdict": "facepairs.verification.verdict",
    "Verifier": "facepairs.verification.verifier",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that `import facepairs` stays fast and light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES.get(name, "facepairs.errors")), name)
