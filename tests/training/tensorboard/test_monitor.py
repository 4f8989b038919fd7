"""`map_images` reads a store by image number and traces its graph once."""

import numpy as np
import pytest
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.tensorboard.monitor import BATCH_SIZE, map_images

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
