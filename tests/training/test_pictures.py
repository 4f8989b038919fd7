"""Pairs of faces in TensorBoard: which are shown, and how they are drawn."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from facepairs.config import TrainConfig
from facepairs.training.distribution import Workers
from facepairs.training.fit import build_and_compile
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.people import prepare
from facepairs.training.pictures import PairPictures, pair_sheet


def test_a_sheet_has_the_pairs_side_by_side_under_their_labels():
    left, right = np.zeros((3, 8, 8, 3), np.float32), np.ones((3, 8, 8, 3), np.float32)
    left[1] += 0.25
    left[2] += 2
    sheet = pair_sheet(left, right / 2, ["genuine", "", "a"])
    expected = Image.new("RGB", (40, 48), "white")
    draw = ImageDraw.Draw(expected)
    draw.text((1, 0), "genuine", fill="black")
    draw.text((1, 24), "a", fill="black")
    for x, y, grey in ((0, 12, 0), (20, 12, 63), (0, 36, 255)):
        expected.paste((grey,) * 3, (x, y, x + 8, y + 8))
        expected.paste((127,) * 3, (x + 8, y, x + 16, y + 8))
    assert np.array_equal(sheet, np.asarray(expected))


@pytest.mark.usefixtures("few_validation_pairs", "tiny_networks")
def test_pictures_show_the_first_pairs_and_those_that_are_judged_worst(few_faces, tmp_path):
    config = TrainConfig(
        model="siamese", align="none", batch_size=8, pairs_per_epoch=16,
        calibration_share=0.5, test_share=0.0,
    ).resolve()  # fmt: skip
    data = TrainingData.open(*prepare(few_faces, config), config, "memory")
    network, _ = build_and_compile(data, Workers())
    pairs, images = data.validation_pairs(), data.store.loader(1)
    network.evaluate(data.fixed_batches(data.store, pairs), verbose=0)
    board = PairPictures(tmp_path, data, shows_worst=True)
    board.set_model(network)
    board.on_epoch_begin(4)
    board.on_epoch_end(4)
    scores = np.asarray(network.pairs.scores)[: len(pairs)]
    first = data.sampler().block(4, 0, data.config.batch_size)
    seen = network.seen_in_training((images(first.left), images(first.right)))
    wanted = {"pairs/training": pair_sheet(*map(np.asarray, seen), ["genuine"] * len(first))}
    for kind, name, sign in (("genuine", "genuine", 1), ("impostor", "impostors", -1)):
        numbers = np.flatnonzero(pairs.genuine == (kind == "genuine"))
        worst = np.array(sorted(numbers, key=lambda number: sign * scores[number])[:8])
        sides = (images(side[worst]) for side in (pairs.left, pairs.right))
        labels = [f"{kind}, score {score:.3f}" for score in scores[worst]]
        shown = [np.asarray(network.preprocess(side)) for side in sides]
        wanted[f"pairs/worst_{name}"] = pair_sheet(*shown, labels)
    events = EventAccumulator(str(tmp_path / "pictures")).Reload()
    for tag, expected in wanted.items():
        (event,) = events.Tensors(tag)
        assert event.step == 5
        picture = Image.open(io.BytesIO(event.tensor_proto.string_val[2]))
        assert np.array_equal(np.asarray(picture), expected), tag
