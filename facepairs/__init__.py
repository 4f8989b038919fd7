"""facepairs turns a folder of faces into a face verifier whose errors are known."""

from typing import TYPE_CHECKING

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
