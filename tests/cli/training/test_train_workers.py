"""`facepairs train` with several workers: output, lost workers, refusals and resume."""

import json
import signal
import subprocess
import sys
import time

import pytest
from processes import workers
from processes.checkpoints import history, saved_digest
from processes.command_line import command, facepairs, in_process

from facepairs.support.lock import held

pytestmark = pytest.mark.timeout(1_800)  # for a test that hangs; load alone must not end one

TINY = """
model = "difference"
epochs = 1
pairs_per_epoch = 180
batch_size = 12
calibration_share = 0.25
test_share = 0.25
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.mark.slow
def test_two_workers_train_and_one_writes_the_best_epoch(faces, tmp_path):
    out, settings = tmp_path / "runs" / "run", tmp_path / "choosing.toml"
    choosing = "validation_share = 0.17\nlearning_rate = 0.01\n"
    settings.write_text(TINY.replace("epochs = 1", "epochs = 3") + choosing)
    started = workers.train(faces, "--out", out, "--config", settings, "--json")
    (first, output, _), (second, other, errors) = workers.finish(started)
    assert (first, second) == (0, 0), errors
    chief, other = json.loads(output), json.loads(other)
    assert (chief["val_people"], chief["bundle"]) == (4, str(out / "bundle"))
    assert other["bundle"] is None
    for name in ("val_auc", "epoch", "epochs"):  # the same weights on both
        assert other[name] == chief[name]


def test_requests_that_workers_cannot_share_are_refused(faces, tmp_path, monkeypatch):
    def refused(environment, *more):
        monkeypatch.setenv("TF_CONFIG", environment["TF_CONFIG"])
        done = in_process("train", faces, *more, check=2)
        assert len(done.stderr.strip().splitlines()) == 1
        return done.stderr

    first, other = workers.environments(2)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "other.txt").write_text("a file of another program")
    for environment in (first, other):  # at once: nobody waits for the others
        assert "other.txt" in refused(environment, "--out", tmp_path / "used")
    assert "several workers need the run folder" in refused(first)
    assert "'two' is not one of 'auto', 'one', 'all'" in refused(first, "--devices", "two")
    damaged = {**first, "TF_CONFIG": first["TF_CONFIG"][:-5]}
    assert "TF_CONFIG is not a description" in refused(damaged, "--out", tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "endless.toml"
    path.write_text(TINY.replace("epochs = 1", "epochs = 100_000"))
    return path


def epochs_of(out):
    """Return how many epochs a run has saved."""
    return len(history(out))


def wait_for(condition, started):
    while not condition():
        assert all(one.poll() is None for one in started), workers.finish(started)
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_worker_loses_one_epoch_at_most(faces, endless, tmp_path, victim):
    out = tmp_path / "run"
    started = workers.train(faces, "--out", out, "--config", endless)
    wait_for(lambda: epochs_of(out) > 3 * victim, started)
    started[victim].kill()
    code, _, errors = workers.finish(started)[1 - victim]
    assert code == 138
    assert "another worker stopped" in errors.splitlines()[-1]
    for count in (1, 2):  # fewer workers, then two again
        resume_until_next_epoch(command("train", faces, "--out", out), out, count)


def resume_until_next_epoch(words, out, count):
    """Resume with `count` workers, and stop them after the next epoch."""
    last = epochs_of(out)
    alone = ("--devices", "one") if count == 1 else ()
    started = workers.start([*words, "--resume", *alone], count)
    wait_for(lambda: epochs_of(out) > last, started)
    started[-1].send_signal(signal.SIGTERM)  # stopping one worker stops all
    for code, _, errors in workers.finish(started):
        assert code == 130
        assert f"resuming after epoch {last}\n" in errors
    assert epochs_of(out) > last


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_hangs_is_treated_as_lost(faces, endless, tmp_path, victim):
    out = tmp_path / "run"
    started = workers.train(faces, "--out", out, "--config", endless)
    try:
        wait_for(lambda: epochs_of(out), started)
        started[victim].send_signal(signal.SIGSTOP)
        assert started[1 - victim].wait() == 138
        if victim == 0:  # its run folder stays locked
            resumed = facepairs("train", faces, "--out", out, "--resume", "--devices", "one")
            assert f"in use by process {started[0].pid}" in resumed.stderr
        started[victim].send_signal(signal.SIGCONT)  # it finds that the others have left
        assert [code for code, *_ in workers.finish(started)] == [138, 138]
    finally:
        for one in started:
            one.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "store"),
    [("difference", "files"), ("difference", "memory"), ("difference", "tfrecord"),
     ("fisher", "memory")],
)  # fmt: skip
def test_workers_learn_from_any_store_the_same_when_started_again(faces, tmp_path, model, store):
    settings, cache = tmp_path / "settings.toml", tmp_path / "cache"
    settings.write_text(TINY.replace('"difference"', f'"{model}"'))
    words = ["--config", settings, "--store", store]
    if store == "tfrecord":
        words = ["--config", settings, "--pair-cache", cache]
        count = ("--pair-count", 108, "--config", settings)
        in_process("cache", "build", faces, "--out", cache, *count, check=0)
    runs = [tmp_path / "first", tmp_path / "again"]
    for run in runs:
        started = workers.train(faces, "--out", run, *words)
        (first, _, errors), (second, *_) = workers.finish(started)
        # After so few steps, genuine pairs need not score higher than others.
        assert (first, second) == (0, 0) or (second == 0 and "train longer" in errors), errors
        assert history(run)[-1]["epoch"] == 1
    assert saved_digest(runs[0]) == saved_digest(runs[1])


@pytest.mark.slow
def test_workers_with_different_settings_are_refused(faces, settings, tmp_path):
    words = command("train", faces, "--out", tmp_path / "run", "--config", settings)
    started = workers.start(words, last=[*words, "--seed", "1"])
    assert [code for code, *_ in workers.finish(started)] == [2, 2]


@pytest.mark.slow
def test_an_error_of_the_chief_ends_all_workers(faces, settings, tmp_path):
    with held(tmp_path / "run.lock", tmp_path):
        started = workers.train(faces, "--out", tmp_path, "--config", settings)
        (first, _, output), (second, _, errors) = workers.finish(started)
    assert (first, second) == (2, 138)
    assert "is in use by process" in output.splitlines()[-1]
    assert "another worker stopped" in errors.splitlines()[-1]


TWO_PROCESSORS = """
import sys
import tensorflow as tf
(processor,) = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(processor, two)
from facepairs.cli.app import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_all_devices_train_the_default_model_and_one_resumes(faces, tmp_path):
    settings, out = tmp_path / "small.toml", tmp_path / "run"
    settings.write_text(TINY.replace('"difference"', '"fisher"'))
    words = ["train", str(faces), "--out", str(out), "--json"]
    begin = [*words, "--config", str(settings), "--devices", "all"]
    done = subprocess.run(
        [sys.executable, "-c", TWO_PROCESSORS, *begin], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 devices share every batch" in done.stderr
    assert json.loads(done.stdout)["epochs"] == 1
    more = facepairs(*words, "--resume", "--devices", "one", "--epochs", "2", check=0)
    assert json.loads(more.stdout)["epochs"] == 2
