"""How the place of an external embedder is recognised."""

from pathlib import Path

EMBEDDER = "embedder.toml"  # in a folder that `facepairs calibrate` wrote


def is_embedder(path: Path | str) -> bool:
    """Return whether a path names a TOML, or a folder that holds an external embedder."""
    return str(path).lower().endswith(".toml") or Path(path, EMBEDDER).is_file()
