"""Pairs of faces in TensorBoard: what is drawn, and when."""

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from facepairs.config import TrainConfig
from facepairs.training.fit import fit_people
from facepairs.training.inputs.people import prepare
from facepairs.training.pictures import pair_sheet

TAGS = {"pairs/training", "pairs/worst_genuine", "pairs/worst_impostors"}


def test_a_sheet_has_the_pairs_side_by_side_under_their_labels():
    left, right = np.zeros((3, 8, 8, 3), np.float32), np.ones((3, 8, 8, 3), np.float32)
    left[1] += 0.25
    sheet = pair_sheet(left, right / 2, ["genuine", "", "a"])
    expected = Image.new("RGB", (40, 48), "white")
    draw = ImageDraw.Draw(expected)
    draw.text((1, 0), "genuine", fill="black")
    draw.text((1, 24), "a", fill="black")
    for x, y, grey in ((0, 12, 0), (20, 12, 63), (0, 36, 0)):
        expected.paste((grey,) * 3, (x, y, x + 8, y + 8))
        expected.paste((127,) * 3, (x + 8, y, x + 16, y + 8))
    assert np.array_equal(sheet, np.asarray(expected))


@pytest.mark.usefixtures("few_validation_pairs")
@pytest.mark.parametrize("model", ["siamese", pytest.param("fisher", marks=pytest.mark.slow)])
def test_each_epoch_has_its_pictures_unless_they_are_turned_off(faces, tmp_path, model):
    given = TrainConfig(
        model=model, align="none", epochs=2, batch_size=8, pairs_per_epoch=16,
        calibration_share=0.25,
    )  # fmt: skip
    people = prepare(faces, given.resolve())
    fit_people(*people, given.resolve(), tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run/tensorboard/pictures")).Reload()
    assert set(events.Tags()["tensors"]) == TAGS
    for tag in TAGS:
        shown = events.Tensors(tag)
        assert [event.step for event in shown] == [1, 2]
        size = [int(word) for word in shown[0].tensor_proto.string_val[:2]]
        side = given.resolve().recipe.image_size
        assert size == [2 * (2 * side + 4), 4 * (side + 16)]  # eight pairs
    off = given.replace(tensorboard_images=False, epochs=1).resolve()
    fit_people(*people, off, tmp_path / "off")
    assert not (tmp_path / "off/tensorboard/pictures").exists()
