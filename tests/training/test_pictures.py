"""Pictures in TensorBoard: images by number, pairs with their labels, the hardest pairs first."""

import numpy as np
import pytest
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.pictures import (
    BATCH_SIZE,
    hardest_pairs,
    is_shown,
    map_images,
    pair_grid,
)

CROP = 32


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


class Traced(FileStore):
    """Counts how often its loader is traced."""

    times = 0

    def loader(self, images):
        load = super().loader(images)

        def counted(numbers):
            self.times += 1
            return load(numbers)

        return counted


def test_images_are_read_by_number_and_later_calls_trace_no_new_graph(index):
    store = Traced(index, whole_plan(index, CROP))
    shown = map_images(store, lambda pixels: pixels)
    for count in (BATCH_SIZE + 6, 3, 1):
        wanted = (np.arange(count) * 5) % len(index)
        files = FileStore(index, whole_plan(index, CROP))
        batches = [batch.numpy() for batch in image_batches(files, wanted, 9)]
        assert np.array_equal(shown(wanted), np.concatenate(batches))
    assert store.times == 1


def test_memory_and_file_stores_give_the_same_images(index):
    wanted = np.array([4, 0, 4])
    plan = whole_plan(index, CROP)
    stores = MemoryStore.build(index, plan), FileStore(index, plan)
    in_memory, from_files = (map_images(store, lambda pixels: pixels)(wanted) for store in stores)
    assert np.array_equal(in_memory, from_files)


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


def test_pictures_are_written_four_times_per_doubling():
    shown = [epoch for epoch in range(1, 101) if is_shown(epoch)]
    assert shown[:12] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
    assert [epoch for epoch in shown if 32 <= epoch < 64] == [32, 40, 48, 56]
    assert sum(is_shown(epoch) for epoch in range(1, 100_001)) < 64


def test_hardest_pairs_are_low_genuine_and_high_impostor_pairs():
    genuine = np.array([1, 0] * 20, bool)
    score = np.random.default_rng(0).normal(size=40)
    worst = hardest_pairs(genuine, score)
    assert worst[:8].tolist() == sorted(np.flatnonzero(genuine), key=lambda i: score[i])[:8]
    assert worst[8:].tolist() == sorted(np.flatnonzero(~genuine), key=lambda i: -score[i])[:8]
    few = hardest_pairs(np.array([True, False]), np.array([0.1, 0.2]))
    assert few.tolist() == [0, 1]
