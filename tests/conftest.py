"""Fixtures for all tests: synthetic faces, and the real data set where it is installed."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from processes.once import made_once

if TYPE_CHECKING:
    from processes.postgres_server import PostgresServer

    import facepairs
    from facepairs.bundles.bundle import Bundle

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# tf2onnx then raises what an optimizer pass raises, and need not copy the graph before each pass.
os.environ.setdefault("TF2ONNX_CATCH_ERRORS", "FALSE")
# What is found in photos is kept for this run alone; xdist's workers share the file.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="facepairs-tests-", ignore_cleanup_errors=True)
    os.environ["FACEPAIRS_PHOTO_CACHE"] = str(Path(_cache.name, "photos.sqlite"))
# A script's background jobs ignore Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The time of an example depends on the machine, not on the code.
settings.register_profile(
    "untimed", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")

SHORT = """
model = "difference"
epochs = 2
pairs_per_epoch = 320
batch_size = 16
calibration_share = 0.25
test_share = 0.25
"""
LONGEST = ("training", "cli", "models")  # folders with the files that take longest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no worker is left with one at the end."""
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(here).parts[0] not in LONGEST)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays; tracing networks makes it look there all the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(scope="session")
def lfw() -> Path:
    """The folder with lfw-deepfunneled/ and the official lists; tests skip without it."""
    folder = os.environ.get("FACEPAIRS_LFW", "")
    if not (Path(folder) / "lfw-deepfunneled").is_dir() or not folder:
        pytest.skip(
            "needs the real LFW: set FACEPAIRS_LFW to the folder that `data fetch lfw` made"
        )
    return Path(folder)


@pytest.fixture(scope="session")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 synthetic people with 4 photos each."""
    return drawn_once(tmp_path_factory, "synthetic", people=24, photos=4, seed=5)


@pytest.fixture(scope="session")
def few_faces(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first eight of the synthetic people, read-only."""
    root = tmp_path_factory.mktemp("few") / "faces"
    for person in sorted(faces.iterdir())[:8]:
        shutil.copytree(person, root / person.name)
    return root


@pytest.fixture(scope="session")
def many_faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 synthetic people with 3 small photos each: enough for sets of people."""
    return drawn_once(tmp_path_factory, "many", people=48, photos=3, seed=8, size_px=125)


def drawn_once(tmp_path_factory: pytest.TempPathFactory, name: str, **options: int) -> Path:
    def draw(folder: Path) -> Path:
        from facepairs.data.synth.folder import write_synthetic_faces

        write_synthetic_faces(folder / "faces", **options)
        return folder / "faces"

    return made_once(tmp_path_factory, name, draw)


class ShortTraining(NamedTuple):
    """What `facepairs.train` returned, the losses its callback saw, and its messages."""

    run: "facepairs.Run"
    losses: list[float]
    lines: list[str]

    @property
    def folder(self) -> Path:
        return self.run.out

    @property
    def bundle(self) -> Path:
        return self.run.out / "bundle"


@pytest.fixture(scope="session")
def difference_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "difference.toml"
    path.write_text(SHORT)
    return path


@pytest.fixture(scope="session")
def difference_run(
    faces: Path, difference_settings: Path, tmp_path_factory: pytest.TempPathFactory
) -> ShortTraining:
    """A short training of `difference` in Python."""

    def train(out: Path) -> tuple[object, ...]:
        import keras

        import facepairs
        from facepairs.config import load_config
        from facepairs.training.inputs import data as training_data

        losses: list[float] = []
        lines: list[str] = []
        callback = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: losses.append(logs["loss"])
        )
        config = load_config(difference_settings)
        with pytest.MonkeyPatch.context() as patch, facepairs.showing(log=lines.append):
            patch.setattr(training_data, "MAX_VALIDATION_PAIRS", 100)
            run = facepairs.train(str(faces), str(out), config, callbacks=[callback])
        return run, losses, lines

    return ShortTraining(*made_once(tmp_path_factory, "difference-run", train))


@pytest.fixture(scope="module")
def few_validation_pairs() -> Iterator[None]:
    """From here on: nobody looks at the AUC after each epoch, and 2,000 pairs take a second."""
    from facepairs.training.inputs import data as training_data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_data, "MAX_VALIDATION_PAIRS", 100)
        yield


@pytest.fixture(scope="module")
def tiny_networks() -> Iterator[None]:
    """From here on: `siamese` and `difference` have few layers, as the tests depend on none."""
    from tiny.networks import tiny_head, tiny_tower

    from facepairs.models import build

    with pytest.MonkeyPatch.context() as patch:
        for name, head in (("siamese", tiny_tower), ("difference", tiny_head)):
            patch.setitem(build.MODELS, name, (build.MODELS[name][0], head))
        yield


@pytest.fixture
def make_bundle(tmp_path: Path) -> Callable[..., "Bundle"]:
    """A function that writes a tiny bundle: (kind, network, **changes to the manifest)."""
    from tiny.bundles import tiny_bundle

    return partial(tiny_bundle, tmp_path / "bundle")


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """A PostgreSQL server; tests skip without one."""
    from processes.postgres_server import postgres_server

    with postgres_server() as server:
        yield server
