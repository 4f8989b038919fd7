"""What a job that is disturbed is, and how its outputs are looked at."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults_process import Work


class Broken(Exception):
    """Something stands there that is neither whole nor absent."""


@dataclass(frozen=True)
class Job:
    """`start` and `again` give the work in a folder; `outputs` are patterns of what it writes.

    `state` is False while the output is absent and True where it is whole, or raises. `content`
    gives what must be the same as after an undisturbed run. Where `replaces`, an old output may be
    there. `set_up` puts into the folder what the work goes on from.
    """

    name: str
    start: Callable[[Path], Work]
    again: Callable[[Path], Work]
    outputs: tuple[str, ...]
    state: Callable[[Path], bool]
    content: Callable[[Path], object]
    replaces: bool = False
    set_up: Callable[[Path], object] = lambda place: None


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bundle_state(folder: Path) -> bool:
    from facepairs.bundles.bundle import Bundle

    if not folder.exists():
        return False
    Bundle.open(folder).check_all()
    return True


def bundle_content(folder: Path) -> object:
    """What it promises; the network's bytes have made-up names of nodes in them, and times."""
    raw = json.loads((folder / "manifest.json").read_text())
    return [raw[name] for name in ("threshold", "calibration", "identities", "thresholds")]


def weights(run: Path) -> str:
    digest = hashlib.sha256()
    with np.load(run / "checkpoint.npz", allow_pickle=False) as archive:
        for name in archive.files:
            if name != "state":  # it holds times
                digest.update(archive[name].tobytes())
    return digest.hexdigest()
