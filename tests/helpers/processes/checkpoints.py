"""What the checkpoint of a run holds: `python checkpoints.py RUN` prints its SHA-256."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def saved_arrays(run: Path, which: Callable[..., Path] = max) -> dict[str, bytes]:
    """Return the weights and the optimizer's state after the last saved epoch, by name."""
    import h5py

    arrays: dict[str, bytes] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()].tobytes()

    with h5py.File(which((run / "checkpoints").glob("epoch-*"))) as file:
        file.visititems(add)
    return dict(sorted(arrays.items()))


def saved_digest(run: Path) -> str:
    """Return the SHA-256 over the arrays; in a process of its own."""
    words = [sys.executable, __file__, str(run)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def history(run: Path) -> list[dict[str, float | None]]:
    """Return the rows of a run's history; none before the first epoch."""
    from msgspec.structs import asdict

    from facepairs.training.progress import read_history

    return [asdict(row) for row in read_history(run)]


if __name__ == "__main__":
    print(hashlib.sha256(b"".join(saved_arrays(Path(sys.argv[1])).values())).hexdigest())
