"""A loss with its own weights is trained, saved and resumed with the network, but not exported."""

import json

import keras
import numpy as np
import pytest
from drawn.crop_plans import whole_plan
from processes.command_line import in_process

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import DistinctPeopleSampler
from facepairs.errors import BadRun
from facepairs.models.build import build_network
from facepairs.pipeline.dataset import make_dataset, people_numbers
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.loop.schedule import Schedule, training_blocks
from facepairs.training.loop.step import TrainStep, never_stop
from facepairs.training.loop.train_loop import TrainingInterrupted, TrainLoop
from facepairs.training.run_folder.checkpoint import load_checkpoint, save_checkpoint

BATCH, SCHEDULE = 8, Schedule(2, 4, 1e-2)


@pytest.fixture(scope="module")
def data(faces):
    index = FaceIndex.scan(faces).without([5, 6, 7])  # the second person has one photo left
    return index, MemoryStore.build(index, whole_plan(index, 64))


def new_loop(data, seed, loss="cosface", stop_after=()):
    """A loop on a new network; it is asked to stop after each of `stop_after` steps."""
    index, store = data
    keras.utils.set_random_seed(seed)
    network = build_network("siamese-conv", 64, 64, 1.0, loss=loss, photos=index.image_counts)
    should_stop = never_stop
    if stop_after:
        should_stop = lambda: loop.progress.step in stop_after  # noqa: E731
    loop = TrainLoop(TrainStep(network, store, 3, should_stop=should_stop))
    return loop


def run(data, loop, named=True):
    index, store = data
    everyone = np.arange(len(index.people))
    sampler = DistinctPeopleSampler(index.first, everyone, 3, BATCH)
    start = loop.progress.step
    batches = make_dataset(
        store,
        lambda: training_blocks(sampler, BATCH, SCHEDULE.steps_per_epoch, start),
        BATCH,
        people_numbers(index.person_of, everyone) if named else None,
    )
    callbacks = keras.callbacks.CallbackList([], model=None)
    loop.run(batches, SCHEDULE, callbacks)


def variables(loop):
    return [*loop.step.model.variables, *loop.step.optimizer.variables]


def values(loop):
    return [np.asarray(variable).tobytes() for variable in variables(loop)]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cosface", "cross-entropy"])
def test_a_resumed_training_ends_at_the_same_weights_bit_for_bit(data, tmp_path, loss):
    whole = new_loop(data, 0, loss)
    before = [np.asarray(v).copy() for v in whole.step.model.objective.variables]
    run(data, whole)
    for variable, start in zip(whole.step.model.objective.variables, before, strict=True):
        assert not np.array_equal(np.asarray(variable), start)

    stopped = new_loop(data, 0, loss, stop_after=(3, SCHEDULE.steps_per_epoch))
    with pytest.raises(TrainingInterrupted):
        run(data, stopped)
    save_checkpoint(tmp_path / "checkpoint.npz", variables(stopped), {"step": 3})

    resumed = new_loop(data, 99, loss)  # other weights at first
    assert values(resumed) != values(stopped)
    state, _ = load_checkpoint(tmp_path / "checkpoint.npz", variables(resumed))
    assert values(resumed) == values(stopped)
    resumed.progress.step = state["step"]
    run(data, resumed)
    assert values(resumed) == values(whole)

    with pytest.raises(TrainingInterrupted):  # at the last step of an epoch, whose row is kept
        run(data, stopped)
    assert stopped.progress.step == SCHEDULE.steps_per_epoch
    assert [row["epoch"] for row in stopped.progress.history] == [1]


@pytest.mark.slow
def test_without_person_numbers_every_pair_counts_as_other_people(data):
    """A cache of pairs has no person numbers; here no person occurs twice in a batch anyway."""
    named, nameless = (new_loop(data, 0, "supervised") for _ in range(2))
    run(data, named)
    run(data, nameless, named=False)
    assert values(nameless) == values(named)


def test_loading_a_checkpoint_of_another_loss_is_refused(data, tmp_path):
    save_checkpoint(tmp_path / "c.npz", variables(new_loop(data, 0, "in-batch")), {})
    with pytest.raises(BadRun, match="another model"):
        load_checkpoint(tmp_path / "c.npz", variables(new_loop(data, 0, "cosface")))


def test_initial_weights_do_not_depend_on_the_loss_and_the_loss_is_not_exported(data):
    plain, identities = (new_loop(data, 0, loss).step.model for loss in ("in-batch", "arcface"))
    for a, b in zip(plain.head.variables, identities.head.variables, strict=True):
        assert np.array_equal(np.asarray(a), np.asarray(b))
    assert len(identities.variables) == len(plain.variables) + 1
    exported = identities.inference_model()
    assert exported.count_params() == plain.inference_model().count_params()
    paths = {variable.path for variable in exported.variables}
    assert not paths & {variable.path for variable in identities.objective.variables}


SETTINGS = """
model = "siamese-conv"
loss = "cosface"
pairs_per_epoch = 24
batch_size = 8
calibration_share = 0.25
test_share = 0.25
"""


@pytest.mark.slow
def test_the_command_line_trains_with_an_identity_loss_for_a_minute_that_is_too_short(
    faces, tmp_path
):
    """The first epoch is always trained; preparation alone takes longer than asked for."""
    config, out = tmp_path / "small.toml", tmp_path / "run"
    config.write_text(SETTINGS)
    train = ("train", faces, "--config", config, "--epochs", 2)
    done = in_process(*train, "--out", out, "--minutes", 0.01, "--json", check=0)
    assert "more than --minutes 0.01; no more than one epoch is trained" in done.stderr
    assert "stopping after epoch 1 of 2: another one would take longer" in done.stderr
    report = json.loads(done.stdout)
    assert report["epochs"] == 1
    assert report["wall_seconds"] > 0.6
    with np.load(out / "checkpoint.npz") as archive:
        shapes = {archive[name].shape for name in archive.files}
    assert (report["people"]["training"], 256) in shapes  # a direction a person
    manifest = json.loads((out / "bundle" / "manifest.json").read_text())
    assert manifest["training"]["config"]["loss"] == "cosface"
    done = in_process(*train, "--out", tmp_path / "none", "--loss", "softmax", check=2)
    assert "'softmax' is not one of 'in-batch'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
