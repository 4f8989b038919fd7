"""Keras models, losses and pairs for `fit`."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from processes.command_line import in_process
from tiny.networks import tiny_head

import facepairs
from facepairs.errors import BadConfig, BadData
from facepairs.models.losses import LOSSES
from facepairs.training import pairs_dataset


def embeddings(pairs=6):
    rows = np.random.default_rng(0).normal(size=(pairs, 2, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.mark.parametrize("objective", LOSSES)
def test_a_compiled_loss_is_the_objective_of_train(objective):
    rows, genuine = embeddings(), np.float32([1, 1, 0, 1, 0, 1])
    loss = facepairs.EmbeddingLoss(objective)
    expected = LOSSES[objective](rows[:, 0], rows[:, 1], genuine)
    assert float(loss(genuine, rows)) == pytest.approx(float(expected))
    copy = keras.losses.deserialize(keras.losses.serialize(loss))
    assert float(copy(genuine[:, None], rows)) == float(loss(genuine, rows))


def test_an_unknown_objective_is_refused():
    with pytest.raises(ValueError, match="objective is 'arcface'; known: in-batch, margin"):
        facepairs.EmbeddingLoss("arcface")


@pytest.mark.parametrize(("name", "loss", "policy"), [
    ("difference", keras.losses.BinaryCrossentropy(from_logits=True), "mixed_float16"),
    ("siamese", facepairs.EmbeddingLoss(), "mixed_bfloat16"),
])  # fmt: skip
def test_models_train_in_mixed_precision_with_outputs_in_float32(name, loss, policy):
    keras.config.set_dtype_policy(policy)
    try:
        model = facepairs.build_keras(name)
        model.compile("adam", loss, metrics=[facepairs.PairMetrics()])
        sides = np.random.default_rng(1).integers(0, 256, (2, 4, 64, 64, 3)).astype(np.float32)
        logs = model.train_on_batch(list(sides), np.float32([1, 0, 1, 0]), return_dict=True)
    finally:
        keras.config.set_dtype_policy("float32")
    assert np.isfinite(logs["loss"])
    assert {"float32"} == {output.dtype for output in model.outputs}
    layers = {layer.compute_dtype for layer in model._flatten_layers()}
    assert policy.removeprefix("mixed_") in layers


@pytest.mark.parametrize(("name", "shape"), [("difference", (3, 1)), ("siamese", (3, 2, 256))])
def test_models_take_images_up_to_255_and_ignore_the_order_of_a_pair(name, shape):
    model = facepairs.build_keras(name)
    left, right = np.random.default_rng(1).integers(0, 256, (2, 3, 64, 64, 3)).astype(np.float32)
    assert float(model.get_layer("to_unit_range")(np.float32([255]))[0]) == 1
    outputs, swapped = model.predict_on_batch([left, right]), model.predict_on_batch([right, left])
    assert outputs.shape == shape
    expected = outputs if name == "difference" else outputs[:, ::-1]
    assert np.allclose(swapped, expected, atol=1e-5)


def test_long_preparation_is_shown_unless_the_caller_shows_it(faces, monkeypatch, capsys):
    def prepare():
        smallest = {"pairs": 2, "batch_size": 2, "image_size": 1}
        facepairs.pairs_dataset(faces, store="memory", align="none", **smallest)

    monkeypatch.setattr(pairs_dataset, "SILENT_S", 100.0)
    prepare()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(pairs_dataset, "SILENT_S", -1)
    prepare()
    shown = capsys.readouterr().out
    count = len(list(faces.glob("*/*.jpg")))
    assert "finding faces" in shown
    assert "decoding images" in shown
    assert f"{count}/{count}" in shown
    with facepairs.showing():
        prepare()
    assert f"{count}/{count}" in capsys.readouterr().out
    phases = []
    with facepairs.showing(progress=lambda phase: phases.append(phase) or (lambda *_: None)):
        prepare()
    assert phases == ["finding faces", "decoding images"]
    assert capsys.readouterr().out == ""


def test_an_unknown_model_is_refused():
    with pytest.raises(BadConfig):
        facepairs.build_keras("vgg")


def test_the_included_model_opens_in_keras_and_embeds_as_the_verifier(faces):
    verifier, photos = facepairs.Verifier.load(), sorted(faces.glob("*/*.jpg"))[:2]
    crops = np.stack([verifier.detect(photo, every=False)[0].crop for photo in photos])
    embedded = np.asarray(facepairs.load_keras()(crops))
    assert np.allclose(embedded, verifier.embed(photos), atol=0.02)  # in 8 bits there


def test_pairs_are_split_by_people_and_drawn_anew_each_epoch(faces):
    training = facepairs.pairs_dataset(faces, pairs=48, batch_size=16, image_size=32)
    assert int(training.cardinality()) == 3
    epochs = [[labels.numpy() for _, labels in training] for _ in range(2)]
    assert [len(labels) for labels in epochs[0]] == [16, 16, 16]
    assert not np.array_equal(*epochs)
    (left, right), genuine = next(iter(training))
    assert left.shape == right.shape == (16, 32, 32, 3)
    assert (genuine.dtype, left.dtype) == ("float32", "float32")
    assert 1 < float(left.numpy().max()) <= 255
    held_out = facepairs.pairs_dataset(faces, split="test", pairs=20, image_size=32)
    in_memory = facepairs.pairs_dataset(
        faces, split="test", pairs=20, image_size=32, store="memory"
    )
    choosing = facepairs.pairs_dataset(faces, split="validation", pairs=100, image_size=32)
    numbers = [[len(labels) for _, labels in pairs] for pairs in (held_out, choosing)]
    assert numbers == [[20], [64, 22]]
    for first, again in ((held_out, held_out), (held_out, in_memory)):
        for ((a, _), x), ((b, _), y) in zip(first, again, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(x, y)
    distinct = facepairs.pairs_dataset(faces, pairs=8, batch_size=4, distinct_people=True)
    assert all(labels.numpy().all() for _, labels in distinct)


@pytest.mark.parametrize(
    "wrong",
    [
        {"split": "train"},
        {"store": "ram"},
        {"pairs": 1},
        {"batch_size": 1},
        {"batch_size": 4097},
        {"image_size": 0},
        {"image_size": 1025},
    ],
)
def test_wrong_arguments_are_refused_before_photos_are_read(tmp_path, wrong):
    with pytest.raises(BadConfig, match=next(iter(wrong))):
        facepairs.pairs_dataset(tmp_path / "none", **wrong)


def test_a_photo_that_cannot_be_read_is_refused_unless_it_may_be_left_out(faces, tmp_path):
    folder = shutil.copytree(faces, tmp_path / "faces")
    min(folder.glob("*/*.jpg")).write_bytes(b"\xff\xd8\xff damaged")
    with pytest.raises(BadData):
        facepairs.pairs_dataset(folder, align="none")
    lines: list[str] = []
    with facepairs.showing(log=lines.append, progress=lambda phase: lambda *_: None):
        facepairs.pairs_dataset(folder, align="none", skip_bad=True)
    assert lines == ["1 unusable file skipped"]


@pytest.fixture(scope="module")
def cache(faces, tmp_path_factory):
    """A cache of 40 pairs, as the command writes it."""
    out = tmp_path_factory.mktemp("cached") / "cache"
    in_process("cache", "build", faces, "--out", out, "--pair-count", 40, check=0)
    return out


def test_a_cache_of_pairs_feeds_fit(faces, cache):
    cached = facepairs.pairs_dataset(
        faces, store="tfrecord", cache=cache, batch_size=4, pairs=24, image_size=32
    )
    assert int(cached.cardinality()) == 6
    first, second = ([left.numpy() for (left, _), _ in cached] for _ in range(2))
    assert len(first) == len(second) == 6
    assert not np.array_equal(first[0], second[0])
    everything = facepairs.pairs_dataset(faces, store="tfrecord", cache=cache, batch_size=4)
    assert int(everything.cardinality()) == 10
    assert 0 < sum(float(labels.numpy().sum()) for _, labels in everything) < 40
    model = tiny_head(32)
    model.compile("adam", loss=keras.losses.BinaryCrossentropy(from_logits=True))
    losses = model.fit(cached, epochs=2, shuffle=False, verbose=0).history["loss"]
    assert np.isfinite(losses).all()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"seed": 1}, BadData),
        ({"align": "none"}, BadData),
        ({"split": "test"}, BadConfig),
        ({"distinct_people": True}, BadConfig),
        ({"store": "files"}, BadConfig),
        ({"cache": None}, BadConfig),
        ({"batch_size": 41}, BadConfig),
    ],
)
def test_a_cache_of_other_pairs_is_refused(faces, cache, wrong, error):
    arguments = {"store": "tfrecord", "cache": cache, "batch_size": 4} | wrong
    with pytest.raises(error):
        facepairs.pairs_dataset(faces, **arguments)


def test_a_damaged_cache_is_named_before_fit_and_never_trained_on(faces, cache, tmp_path):
    changed = shutil.copytree(cache, tmp_path / "cache")
    options = {"store": "tfrecord", "cache": changed, "batch_size": 4}
    cached = facepairs.pairs_dataset(faces, **options)
    (shard,) = changed.glob("*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError):
        list(cached)
    with pytest.raises(BadData, match=str(shard)):
        facepairs.pairs_dataset(faces, **options)


def test_12800_pairs_train_and_2000_are_held_out_by_default(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(96):
        (tmp_path / f"p{number}").mkdir()
        for photo in range(4):
            pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / f"p{number}" / f"{photo}.png")
    options = {"align": "none", "image_size": 8, "batch_size": 1, "store": "files"}
    training = facepairs.pairs_dataset(tmp_path, **options | {"batch_size": 100})
    assert int(training.cardinality()) == 128
    held_out = facepairs.pairs_dataset(tmp_path, split="test", **options | {"batch_size": 100})
    labels = np.concatenate([genuine for _, genuine in held_out])
    people = int(labels.sum()) // 6
    assert labels.sum() == 6 * people
    assert (labels == 0).sum() == 1000
