"""A run that was stopped and resumed ends as one that was not stopped, for every model and store.

`tests/stress/kill.py` stops trainings and cross-validations at random moments.
"""

import signal
import subprocess
import time
from pathlib import Path

import pytest
from drawn.view2 import write_lists
from processes.checkpoints import history, saved_digest
from processes.command_line import command, in_process

from facepairs.bundles.bundle import Bundle
from facepairs.recipes import RECIPES

pytestmark = pytest.mark.slow

EPOCHS = 3
SHORT = f"""
epochs = {EPOCHS}
pairs_per_epoch = 160
batch_size = 16
calibration_share = 0.25
validation_share = 0.2
"""
STORES = [(model, store) for model in RECIPES for store in ("files", "memory")]
CACHES = [(model, "tfrecord") for model, recipe in RECIPES.items() if recipe.takes_pairs]


def stop_after_first_epoch(words: tuple[object, ...], run: Path, how: signal.Signals) -> int:
    """Run a command until a training has finished its first epoch; return its exit code."""
    process = subprocess.Popen(command(*words), stderr=subprocess.DEVNULL)
    while process.poll() is None and not epochs(run):
        time.sleep(0.05)
    process.send_signal(how)
    return process.wait()


def epochs(run: Path) -> list[int]:
    """The finished epochs of a run; a start from a bundle is none."""
    return [int(row["epoch"]) for row in history(run) if row["epoch"]]


@pytest.fixture(scope="module")
def unstopped(many_faces, tmp_path_factory):
    """A function that trains a model without a stop, once for all stores of the same pairs."""
    folder, done = tmp_path_factory.mktemp("unstopped"), {}

    def train(model: str, cached: bool) -> tuple[Path, tuple[object, ...]]:
        out = folder / f"{model}-{cached}"
        if out not in done:
            file, cache = folder / f"{model}.toml", folder / f"{model}-cache"
            file.write_text(f'model = "{model}"\n{SHORT}')
            words: tuple[object, ...] = ("--config", file)
            if cached:
                build = ("cache", "build", many_faces, "--out", cache, *words)
                in_process(*build, "--pair-count", 160, check=0)
                words += ("--pair-cache", cache)
            in_process("train", many_faces, "--out", out, *words, check=0)
            done[out] = words
        return out, done[out]

    return train


@pytest.mark.parametrize(("model", "store"), [*STORES, *CACHES])
def test_a_killed_training_ends_at_the_weights_of_an_unstopped_one(
    many_faces, unstopped, tmp_path, model, store
):
    whole, words = unstopped(model, store == "tfrecord")
    run = tmp_path / "run"
    begin = ("train", many_faces, "--out", run)
    kept_in = () if store == "tfrecord" else ("--store", store)
    assert stop_after_first_epoch((*begin, *words, *kept_in), run, signal.SIGKILL) == -9
    assert 1 <= len(epochs(run)) < EPOCHS
    in_process(*begin, "--resume", check=0)
    assert epochs(run) == epochs(whole)
    assert saved_digest(run) == saved_digest(whole)
    one, other = Bundle.open(run / "bundle"), Bundle.open(whole / "bundle")
    assert one.profile == other.profile
    assert one.raw["training"]["epoch"] == other.raw["training"]["epoch"]


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_stopped_cross_validation_goes_on_within_its_fold(many_faces, tmp_path, how, code):
    write_lists(many_faces, tmp_path / "lists")
    file = tmp_path / "view2.toml"
    file.write_text(f'model = "siamese"\n{SHORT}')
    begin = ("crossval", many_faces, "--lists", tmp_path / "lists", "--config", file)
    begin += ("--fold", 1, "--fold", 2, "--out")
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    in_process(*begin, whole, check=0)
    words = (*begin, stopped)
    assert stop_after_first_epoch(words, stopped / "fold-02", how) == code
    assert 1 <= len(epochs(stopped / "fold-02")) < EPOCHS
    in_process(*words, "--resume", check=0)
    for fold in ("fold-01", "fold-02"):
        assert saved_digest(stopped / fold) == saved_digest(whole / fold)
    assert (stopped / "scores.csv").read_bytes() == (whole / "scores.csv").read_bytes()
