"""A training is saved after every epoch, and goes on from there bit for bit."""

import resource
import shutil
from dataclasses import replace

import keras
import numpy as np
import pytest
from processes.checkpoints import history, saved_arrays
from processes.ctrl_c import press_after
from tiny.bundles import write_bundle_of

import facepairs
from facepairs.bundles.bundle import Bundle
from facepairs.bundles.manifest import Identities
from facepairs.config import TrainConfig
from facepairs.errors import BadData, BadRun
from facepairs.models.build import build_network
from facepairs.support.lock import held
from facepairs.training.fit import fit_people
from facepairs.training.inputs.people import prepare
from facepairs.training.progress import Epoch, Progress, read_history
from facepairs.training.run_folder import LOCK

EPOCHS, STEPS, BATCH = 2, 4, 8
GIVEN = TrainConfig(
    model="siamese",
    align="none",
    epochs=EPOCHS,
    batch_size=BATCH,
    pairs_per_epoch=STEPS * BATCH,
    learning_rate=1e-2,
    calibration_share=0.25,
    tensorboard_images=False,
)
CONFIG = GIVEN.resolve()
pytestmark = pytest.mark.usefixtures("few_validation_pairs", "tiny_networks")


@pytest.fixture(scope="module")
def people(faces):
    return prepare(faces, CONFIG)


@pytest.fixture(scope="module")
def whole(people, tiny_networks, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    return out, fit_people(*people, CONFIG, out)


def test_a_stopped_training_goes_on_from_its_last_epoch_bit_for_bit(
    people, whole, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        press_after(patch, STEPS - 1)
        stopped = fit_people(*people, CONFIG, run)
    assert (stopped.interrupted, stopped.epochs, stopped.has_bundle) == (True, 1, False)
    assert saved_arrays(run) != saved_arrays(whole[0])
    lines: list[str] = []
    with facepairs.showing(log=lines.append):
        resumed = fit_people(*people, CONFIG, run)
    assert "resuming after epoch 1" in lines
    assert (resumed.interrupted, resumed.epochs) == (False, EPOCHS)
    assert saved_arrays(run) == saved_arrays(whole[0])
    one, other = history(run), history(whole[0])
    for name in ("epoch", "loss", "val_auc", "learning_rate"):
        assert [row[name] for row in one] == [row[name] for row in other]
    assert resumed.operating_point == whole[1].operating_point
    assert not (run / "tensorboard" / "pictures").exists()


@pytest.fixture
def global_policy(request):
    """Keras' policy of the parameter until the test ends."""
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize("global_policy", ["mixed_bfloat16"], indirect=True)
def test_the_settings_decide_on_mixed_precision_not_the_global_policy(
    people, whole, tmp_path, global_policy
):
    fit_people(*people, CONFIG, tmp_path / "run")
    assert saved_arrays(tmp_path / "run") == saved_arrays(whole[0])
    assert keras.config.dtype_policy().name == global_policy


@pytest.fixture(scope="module")
def mixed(people, tiny_networks, tmp_path_factory):
    out = tmp_path_factory.mktemp("mixed") / "run"
    return fit_people(*people, GIVEN.replace(mixed_precision=True).resolve(), out)


def test_a_bundle_of_mixed_precision_computes_in_float32(whole, mixed):
    assert saved_arrays(mixed.out) != saved_arrays(whole[0])
    for row, in_float32 in zip(mixed.history, whole[1].history, strict=True):
        assert row["loss"] == pytest.approx(in_float32["loss"], rel=0.5)
    layers = facepairs.load_keras(mixed.bundle)._flatten_layers()
    assert {layer.compute_dtype for layer in layers} == {"float32"}
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.slow
def test_mixed_precision_resumes_bit_for_bit(people, mixed, tmp_path, monkeypatch):
    run, config = tmp_path / "run", mixed.config
    with monkeypatch.context() as patch:
        press_after(patch, STEPS - 1)
        assert fit_people(*people, config, run).interrupted
    again = fit_people(*people, config, run)
    assert again.operating_point == mixed.operating_point
    assert saved_arrays(run) == saved_arrays(mixed.out)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_second_ctrl_c_ends_a_training_at_once(people, tmp_path, monkeypatch):
    press_after(monkeypatch, 1, times=2)
    with pytest.raises(KeyboardInterrupt):
        fit_people(*people, CONFIG, tmp_path / "run")
    assert history(tmp_path / "run") == []


def test_callbacks_get_a_real_model_and_can_end_a_training(people, tmp_path):
    class Reading(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            assert {"loss", "val_auc", "learning_rate", "pairs_per_s", "input_wait"} <= logs.keys()
            assert 0 <= logs["input_wait"] < 1
            assert self.model.head.name == "face_tower"

    board = keras.callbacks.TensorBoard(tmp_path / "board", profile_batch=2)
    stop = keras.callbacks.EarlyStopping("val_auc", mode="max", patience=1, baseline=2.0)
    callbacks = [Reading(), board, stop]
    config, lines = GIVEN.replace(epochs=None).resolve(), []
    with facepairs.showing(log=lines.append):
        run = fit_people(*people, config, tmp_path / "run", callbacks=callbacks)
    assert run.epochs == 2
    assert f"stopping early after epoch 2 of {config.max_epochs}" in lines
    assert (run.interrupted, run.has_bundle) == (False, True)
    assert list((tmp_path / "board" / "train").glob("events.*"))
    assert list((tmp_path / "board").rglob("*.xplane.pb"))


@pytest.fixture
def tiny_model():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize(
    ("aucs", "chosen", "kept", "saved"),
    [
        ((0.8, 0.7, 0.6), True, 0, [0, 2]),
        ((0.8, 0.9, 0.7), True, 1, [1, 2]),
        ((0.8, 0.9, 0.9), True, 1, [1, 2]),
        ((0.8, 0.9, 0.7), False, 0, [0, 2]),  # nobody chooses: the last epoch or the start
        ((0.8, 0.7, 0.9), False, 2, [0, 2]),
    ],
)
def test_the_epoch_that_is_kept(tmp_path, tiny_model, aucs, chosen, kept, saved):
    progress = Progress(tmp_path, "sources", chosen, 0.0)
    for number, auc in enumerate(aucs):
        loss = 0.5 if number else None
        tiny_model.layers[0].bias.assign([number])
        progress.add(Epoch(number, float(number), auc, 3.0, loss), tiny_model)
    files = sorted((tmp_path / "checkpoints").iterdir())
    assert [int(path.name.split("-")[1]) for path in files] == saved
    again = Progress(tmp_path, "sources", chosen, 0.0)
    assert again.history == progress.history
    for found in (progress, again):
        assert (found.kept.epoch, found.epochs_done) == (kept, 2)
        found.load(tiny_model, kept)
        assert float(tiny_model.layers[0].bias[0]) == kept
    with pytest.raises(BadRun, match="other people or images"):
        Progress(tmp_path, "other people", chosen, 0.0)


def test_a_damaged_history_is_refused(tmp_path, tiny_model):
    progress = Progress(tmp_path, "sources", True, 0.0)
    progress.add(Epoch(1, 2.0, 0.75, 3.0, 0.1, 0.01, 20.0, 0.25), tiny_model)
    assert read_history(tmp_path) == progress.history
    with (tmp_path / "history.csv").open("a") as handle:
        handle.write("2,0.25")
    with pytest.raises(BadRun, match="history"):
        read_history(tmp_path)
    assert read_history(tmp_path / "none") == []


def test_a_full_disk_keeps_what_was_saved(tmp_path, tiny_model):
    progress = Progress(tmp_path, "sources", True, 0.0)
    for epoch in (1, 2):
        row, limit = Epoch(epoch, 2.0, 0.75, 3.0), resource.getrlimit(resource.RLIMIT_FSIZE)
        if epoch == 1:
            progress.add(row, tiny_model)
            before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
            continue
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limit[1]))
        try:
            with pytest.raises(BadData, match="epoch-0002"):
                progress.add(row, tiny_model)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("chosen", [False, True])
def test_the_start_from_a_bundle_is_among_the_epochs(people, tmp_path, capsys, chosen):
    index, plan, split = people
    config = GIVEN.replace(init=str(tmp_path / "bundle"), seed=1)
    keras.utils.set_random_seed(5)
    recipe = CONFIG.recipe
    other = build_network("siamese", recipe.crop_px, recipe.image_size, 1.0)
    write_bundle_of(tmp_path / "bundle", other, Identities.of(("Somebody Else",), ("No One",)))
    if chosen:
        split = replace(split, validation=split.test)
    lines: list[str] = []
    with facepairs.showing(log=lines.append):
        run = fit_people(index, plan, split, config.resolve(), tmp_path / "run")
    assert capsys.readouterr().out == ""
    told = [" ".join(line.split()[:2]) for line in lines if not line.startswith(("store", "warn"))]
    few = [] if chosen else ["too few"]
    assert sum("(or the start" in line for line in lines) == len(few)
    assert told == ["validation AUC", *few, "epoch 1/2", "epoch 2/2", told[-1]]
    assert told[-1] == ("exporting epoch" if run.epoch else "exporting the")
    rows = history(tmp_path / "run")
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert [row["loss"] is None for row in rows] == [True, False, False]
    assert rows[0]["seconds"] == 0
    candidates = rows if chosen else [rows[0], rows[-1]]
    assert run.val_auc == max(row["val_auc"] for row in candidates)
    files = sorted((tmp_path / "run" / "checkpoints").iterdir())
    saved = sorted({2, run.epoch if chosen else 0})
    assert [int(path.name.split("-")[1]) for path in files] == saved
    if 0 in saved:
        weights = {weight.tobytes() for weight in other.head.get_weights()}
        assert weights <= set(saved_arrays(tmp_path / "run", min).values())
    start, made = Bundle.open(tmp_path / "bundle"), Bundle.open(run.bundle)
    people = ["Somebody Else", "No One"]
    assert made.identities.trained_with(people).tolist() == [True, False]
    assert made.manifest.weights_licence == "research"
    assert made.manifest.training.init.created == start.manifest.created


def test_a_folder_in_use_is_refused(people, tmp_path):
    with held(tmp_path / LOCK, tmp_path), pytest.raises(BadRun):
        fit_people(*people, CONFIG, tmp_path)


def test_damaged_checkpoints_and_those_of_other_trainings_are_refused(people, whole, tmp_path):
    index, plan, split = people
    run = tmp_path / "run"
    shutil.copytree(whole[0], run)
    fewer = replace(split, training=split.training[1:])
    with pytest.raises(BadRun):
        fit_people(index, plan, fewer, CONFIG, run)
    with pytest.raises(BadRun):
        fit_people(index, plan, split, GIVEN.replace(model="difference").resolve(), run)
    (file,) = (run / "checkpoints").glob("epoch-*")
    sound = file.read_bytes()
    for damaged in (sound[:-9], b"", flipped(sound, 0.5)):
        file.write_bytes(damaged)
        with pytest.raises(BadRun):
            fit_people(*people, CONFIG, run)


def flipped(content, share):
    at = int(len(content) * share)
    return content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]


def test_a_layer_that_no_bundle_may_have_is_refused_before_training(people, tmp_path, monkeypatch):
    from facepairs.models import build

    def separable(image_px):
        image = keras.Input((image_px, image_px, 3))
        x = keras.layers.SeparableConv2D(4, 3)(image)
        x = keras.layers.GlobalAveragePooling2D()(x)
        return keras.Model(image, keras.layers.UnitNormalization()(x), name="face_tower")

    network, _ = build.MODELS["siamese"]
    monkeypatch.setitem(build.MODELS, "siamese", (network, separable))
    with pytest.raises(facepairs.BadConfig, match="SeparableConv2D"):
        fit_people(*people, CONFIG, tmp_path / "run")
    assert history(tmp_path / "run") == []


def test_the_weights_do_not_depend_on_how_images_are_stored(people, whole, tmp_path):
    fit_people(*people, CONFIG, tmp_path / "run", store="files")
    assert saved_arrays(tmp_path / "run") == saved_arrays(whole[0])
    assert np.isfinite([row["loss"] for row in history(tmp_path / "run")]).all()
