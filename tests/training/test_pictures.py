"""Pairs of faces in TensorBoard: what is drawn, and when."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from facepairs.config import TrainConfig
from facepairs.training.fit import fit_people
from facepairs.training.inputs.people import prepare
from facepairs.training.pictures import CAPTION_PX, GAP_PX, pair_sheet

TAGS = {"pairs/training", "pairs/worst_genuine", "pairs/worst_impostors"}


def test_a_sheet_has_the_pairs_side_by_side_under_their_labels():
    left, right = np.zeros((3, 8, 8, 3), np.float32), np.ones((3, 8, 8, 3), np.float32)
    sheet = pair_sheet(left, right / 2, ["", "", ""])
    assert sheet.shape == (2 * (8 + CAPTION_PX + GAP_PX), 2 * (16 + GAP_PX), 3)
    pair = sheet[CAPTION_PX : CAPTION_PX + 8, 16 + GAP_PX :][:, :16]
    assert (pair[:, :8] == 0).all()
    assert (pair[:, 8:] == 127).all()
    assert (sheet[:CAPTION_PX] == 255).all()
    assert (pair_sheet(left, right, ["genuine"] * 3)[:CAPTION_PX] < 255).any()


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
        assert [event.step for event in events.Tensors(tag)] == [1, 2]
    off = given.replace(tensorboard_images=False, epochs=1).resolve()
    fit_people(*people, off, tmp_path / "off")
    assert not (tmp_path / "off/tensorboard/pictures").exists()
