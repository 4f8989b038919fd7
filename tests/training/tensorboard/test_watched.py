"""What the log looks at comes from the store by number, with graphs that are made once."""

import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.tensorboard.monitor import BATCH, _by_number

CROP = 32


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


class Traced(FileStore):
    """Counts how often its part of a graph is made."""

    times = 0

    def loader(self, images):
        load = super().loader(images)

        def counted(numbers):
            self.times += 1
            return load(numbers)

        return counted


def test_images_come_by_number_and_later_looks_make_no_new_graph(index):
    store = Traced(index, 250, CROP)
    shown = _by_number(store, lambda pixels: pixels)
    for count in (BATCH + 6, 3, 1):
        wanted = (np.arange(count) * 5) % len(index)
        batches = [batch.numpy() for batch in image_batches(FileStore(index, 250, CROP), wanted, 9)]
        assert np.array_equal(shown(wanted), np.concatenate(batches))
    assert store.times == 1


def test_a_store_in_memory_gives_the_same(index):
    wanted = np.array([4, 0, 4])
    stores = MemoryStore.build(index, 250, CROP), FileStore(index, 250, CROP)
    in_memory, from_files = (_by_number(store, lambda pixels: pixels)(wanted) for store in stores)
    assert np.array_equal(in_memory, from_files)
