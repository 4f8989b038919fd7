"""One training of a small model for all tests that only look at its results."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import facepairs
from filelock import FileLock

SMALL = """
model = "siamese-small"
epochs = 2
pairs_per_epoch = 512
batch_size = 32
calibration_pairs = 200
calibration_share = 0.25
test_share = 0.25
"""


class Run(NamedTuple):
    """A finished training: its folder, the JSON it printed, and its messages."""

    folder: Path
    report: dict[str, Any]
    messages: str

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def run(faces: Path, settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short training of `siamese-small`, made once for all processes of pytest-xdist."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, printed = shared / "siamese-run", shared / "siamese-run.json"
    with FileLock(f"{folder}.lock"):
        if not printed.exists():
            done = facepairs(
                "train", faces, "--out", folder, "--config", settings, "--profile", "--json",
                check=0,
            )  # fmt: skip
            printed.write_text(json.dumps([json.loads(done.stdout), done.stderr]))
    report, messages = json.loads(printed.read_text())
    return Run(folder, report, messages)
