"""The pictures of the TensorBoard log show pairs and labels where they belong."""

import numpy as np

from facepairs.training.tensorboard.pictures import pair_grid


def test_the_grid_shows_every_pair_with_its_label():
    seen = np.zeros((8, 64, 64, 3), np.float32)
    seen[4:] = 1.0
    grid = pair_grid(seen, np.array([True, False, True, False]))
    assert grid.shape == (2 * 64 + 18, 4 * 68, 3)
    assert grid[40, 30].tolist() == [0, 0, 0]
    assert grid[110, 30].tolist() == [255, 255, 255]
    label = grid[:16]
    assert (label[:, :68, 1] > label[:, :68, 0] + 20).any()  # green: genuine
    assert (label[:, 68:136, 0] > label[:, 68:136, 1] + 20).any()  # red: impostor


def test_a_note_follows_the_label_and_the_grid_ends_at_16_pairs():
    seen, genuine = np.zeros((40, 64, 64, 3), np.float32), np.ones(20, bool)
    plain, noted = pair_grid(seen, genuine), pair_grid(seen, genuine, ["0.5"] * 20)
    assert plain.shape == (2 * (2 * 64 + 18), 8 * 68, 3)
    assert noted.shape[1] == 8 * 100
    assert (noted[:16, :100] < 250).any(axis=2).sum() > (plain[:16, :68] < 250).any(axis=2).sum()
