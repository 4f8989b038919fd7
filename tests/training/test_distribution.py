"""Several devices and workers share every batch, and end at the same weights."""

import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from processes import workers

import facepairs
from facepairs.errors import BadConfig, LostWorker
from facepairs.training import distribution
from facepairs.training.cluster import Cluster
from facepairs.training.distribution import Workers, connect_devices

SCRIPT = Path(__file__).parents[1] / "helpers" / "processes" / "shared_training.py"


def saved(folder, worker):
    with np.load(folder / f"worker-{worker}.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["siamese", "difference"])
def test_two_workers_end_at_the_same_weights(faces, tmp_path, model):
    words = [sys.executable, str(SCRIPT), str(faces), str(tmp_path / "run"), model]
    (first, output, _), (second, other, errors) = workers.finish(workers.start(words, 2))
    assert (first, second) == (0, 0), errors
    assert output == other
    one, two = saved(tmp_path, 0), saved(tmp_path, 1)
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.slow
def test_two_devices_of_one_machine_train(faces, tmp_path):
    words = [sys.executable, str(SCRIPT), str(faces), str(tmp_path / "run"), "difference"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("2 ")
    assert np.isfinite(saved(tmp_path, 0)["loss"])


def of_several(replicas, cluster=None):
    """Workers that believe they have several devices; they exchange nothing."""
    several = Workers(cluster=cluster)
    several.replicas = replicas
    return several


@given(st.integers(2, 4096), st.integers(1, 64))
@example(4, 4)
def test_a_batch_is_shared_equally_with_two_pairs_for_each_device(size, replicas):
    several = of_several(replicas)
    if size % replicas == 0 and size // replicas >= 2:
        several.check_batch_size(size)
        return
    with pytest.raises(BadConfig) as caught:
        several.check_batch_size(size)
    assert caught.value.arguments == ("batch_size", "devices")
    better = int(str(caught.value).split("; use ")[1].split(",")[0])
    several.check_batch_size(better)
    assert abs(better - size) <= max(replicas / 2, 2 * replicas - size)


def test_sharing_is_told():
    lines = []
    with facepairs.showing(log=lines.append):
        Workers().check_batch_size(2)
        for replicas in (2, 4):
            of_several(replicas, Cluster(1, 2)).check_batch_size(8)
    assert lines == [f"worker 1 of 2; {count} devices share every batch" for count in (2, 4)]


@pytest.mark.parametrize(("replicas", "synchronized"), [(1, False), (2, True)])
def test_batch_normalisation_takes_the_batches_of_all_devices(replicas, synchronized):
    inner = keras.Sequential([keras.Input((2,)), keras.layers.BatchNormalization()])
    head = keras.Sequential([keras.Input((2,)), inner, keras.layers.BatchNormalization()])
    of_several(replicas).synchronise(head)
    layers = [inner.layers[0], head.layers[1]]
    assert [layer.synchronized for layer in layers] == [synchronized] * 2


@pytest.mark.parametrize("devices", ["one", "all", "auto"])
def test_one_device_is_a_worker_alone(devices, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    alone = connect_devices(devices)
    assert (alone.worker, alone.workers, alone.replicas, alone.is_chief) == (0, 1, 1, True)
    assert alone.strategy is tf.distribute.get_strategy()
    assert alone.sum([1.5, 2]).tolist() == [1.5, 2]
    assert alone.of_chief(7) == 7
    assert [alone.any(value) for value in (True, False)] == [True, False]
    alone.check_same("text", "settings")


TWO_DEVICES = """
import json
from types import SimpleNamespace
import keras
import numpy as np
import tensorflow as tf
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from facepairs.errors import BadConfig
from facepairs.training import distribution
from facepairs.training.cluster import Cluster
from facepairs.training.distribution import Workers, connect_devices
slept = []
distribution.time = SimpleNamespace(sleep=slept.append)
found = [connect_devices(devices).replicas for devices in ("one", "auto", "all")]
strategy = connect_devices("all").strategy
for number in (0, 1):
    both = Workers(strategy, Cluster(number, 2))  # this process is both: each sum is twice its own
    variable = keras.Variable(np.array([1.5, 2.0], np.float32))
    both.share([variable])
    sums = both.sum([1.5, 2]), both.sum(3, np.float32), variable
    found += [np.asarray(one).tolist() for one in sums]
    found += [both.any(True), both.any(False), both.of_chief(7), both.is_chief]
try:
    both.check_same("text", "settings")  # of the chief there is none
except BadConfig:
    print(json.dumps([*found, slept]))
"""


def test_workers_sum_over_one_device_of_each(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    words = [sys.executable, "-c", TWO_DEVICES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    chief = [[3, 4], 6, [3, 4], True, False, 14, True]
    other = [[3, 4], 6, [0, 0], True, False, 0, False]
    assert json.loads(done.stdout) == [1, 1, 2, *chief, *other, [1.0]]


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize(("message", "told"), [("no route\nmore", "(no route)"), ("", "(Unavail")])
def test_a_worker_that_meets_no_others_says_why(monkeypatch, message, told, in_thread):
    handlers, lines, before = [], [], signal.getsignal(signal.SIGINT)

    def fail(**options):
        handlers.append(signal.getsignal(signal.SIGINT))
        raise tf.errors.UnavailableError(None, None, message)

    def connect():
        with pytest.raises(LostWorker, match=re.escape(told)):
            connect_devices("auto")
        handlers.append(signal.getsignal(signal.SIGINT))

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    cluster = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    with facepairs.showing(log=lines.append), ThreadPoolExecutor() as threads:
        threads.submit(connect).result() if in_thread else connect()
    assert lines == ["waiting for 2 workers"]
    assert handlers == [before if in_thread else signal.SIG_DFL, before]


def test_one_of_several_workers_goes_on_serving_for_a_second(monkeypatch):
    slept = []
    monkeypatch.setattr(distribution, "time", SimpleNamespace(sleep=slept.append))
    for workers_count in (1, 2, 3):
        Workers(cluster=Cluster(0, workers_count)).leave()
    assert slept == [1.0, 1.0]


@pytest.mark.parametrize("error", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_lost_worker_is_told_only_where_there_are_several(error):
    failed = error(None, None, "gone")
    with pytest.raises(error), Workers().translate_lost_worker():
        raise failed
    several = Workers(cluster=Cluster(0, 2))
    with pytest.raises(LostWorker) as caught, several.translate_lost_worker():
        raise failed
    assert caught.value.arguments == ("resume",)
    with pytest.raises(ValueError, match="other"), several.translate_lost_worker():
        raise ValueError("other")
