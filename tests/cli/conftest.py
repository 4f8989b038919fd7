"""Short trainings, each made once for all tests that look at its results."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image
from processes.command_line import in_process
from processes.once import made_once
from tiny.bundles import FRAME_PX, error_table, tiny_bundle

from facepairs.bundles.rates import OperatingPoint

SMALL = """
model = "fisher"
epochs = 2
pairs_per_epoch = 64
batch_size = 16
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
def cosine_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that takes whole images and promises FMR .01."""
    out = tmp_path_factory.mktemp("cosine") / "bundle"
    points = (OperatingPoint(0.75, "fmr-0.01", 0.01),)
    return tiny_bundle(out, "embedding", errors=error_table(), thresholds=points).folder


@pytest.fixture(scope="session")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four images of noise and a file that is none."""
    folder = tmp_path_factory.mktemp("noise")
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (FRAME_PX, FRAME_PX, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def run(faces: Path, settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short training of `fisher`, of one region; its local descriptors are fitted roughly."""
    from facepairs.fisher import fit
    from facepairs.fisher.network import FisherNetwork
    from facepairs.training import fit as training_fit
    from facepairs.training.inputs import data as training_data

    def train(folder: Path) -> tuple[Path, dict[str, Any], str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fit, "ITERATIONS", 2)
            patch.setattr(fit, "SAMPLE_IMAGES", 20)
            one_region = partial(FisherNetwork, members=("eyes",))
            patch.setattr(training_fit, "FisherNetwork", one_region)
            patch.setattr(training_data, "MAX_VALIDATION_PAIRS", 100)
            words = ("train", faces, "--out", folder, "--config", settings, "--json")
            done = in_process(*words, check=0)
        return folder, json.loads(done.stdout), done.stderr

    return Run(*made_once(tmp_path_factory, "small-run", train))
