"""facepairs turns a folder of faces into a face verifier whose errors are known."""

import os
from typing import TYPE_CHECKING

# From 1.29 on ONNX Runtime tells its maker of every session unless this is set before its import;
# what has been set by somebody stays.
for _name in ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"):
    os.environ.setdefault(_name, "1")

if TYPE_CHECKING:
    from facepairs.verification.verifier import Verifier

__version__ = "0.1.0.dev0"
__all__ = ["Verifier", "__version__"]


def __getattr__(name: str) -> object:
    """Import `Verifier` when it is asked for: NumPy and ONNX Runtime are no part of `import`."""
    if name == "Verifier":
        from facepairs.verification.verifier import Verifier

        return Verifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
