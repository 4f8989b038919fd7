"""The pictures of the TensorBoard log show pairs, labels and rates where they belong."""

import numpy as np

from facepairs.training.tensorboard.pictures import pair_grid, roc_picture


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


def test_the_curve_passes_through_the_rates():
    far, tar = np.array([0, 0.1, 0.1, 1]), np.array([0, 0.0, 0.75, 1])
    blue = np.argwhere((roc_picture(far, tar) == [0x1F, 0x5F, 0xBF]).all(axis=2))
    left, right, top, bottom = 40, 320, 40, 320
    assert abs(blue[:, 0].min() - top) <= 1
    assert abs(blue[:, 0].max() - bottom) <= 1
    assert abs(blue[:, 1].max() - right) <= 1
    tenth = left + (right - left) * 2 / 3  # FAR .1 on three decades
    rising = blue[abs(blue[:, 1] - tenth) <= 1]
    assert rising[:, 0].min() <= top + 280 * 0.25 + 1
    assert rising[:, 0].max() >= bottom - 1
