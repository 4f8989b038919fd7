"""N workers together read exactly the pairs of a single one, from any epoch on."""

import itertools

import numpy as np
import pytest
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
from facepairs.models.replicas import split_batch
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore, zeros
from facepairs.training.schedule import training_blocks

BATCH, STEPS = 10, 7  # an epoch is one block, cut short


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


def drawn(index, store, sampler, epoch, part, count):
    dataset = make_dataset(
        store, lambda: training_blocks(sampler, BATCH, STEPS, epoch), BATCH, part
    )
    return list(itertools.islice(dataset.as_numpy_iterator(), count))


@pytest.mark.parametrize("distinct", [True, False])
def test_the_ranges_of_all_workers_make_up_the_batch(index, distinct):
    people = np.arange(len(index.people))
    sampler = (
        DistinctPeopleSampler(index.first, people, 4, BATCH)
        if distinct
        else PairSampler(index.first, people, 4)
    )
    numbers = zeros((len(index), 1), np.int32)  # in place of pixels
    numbers[:, 0] = np.arange(len(index))
    store = MemoryStore(numbers)
    from_the_start = drawn(index, store, sampler, 0, None, 22)
    for workers, epoch in ((1, 1), (2, 0), (2, 1), (3, 1)):
        dealt = [
            drawn(index, store, sampler, epoch, (part.begin, part.end), 10)
            for part in split_batch(BATCH, workers)
        ]
        for step, whole in enumerate(from_the_start[epoch * STEPS : epoch * STEPS + 10]):
            batches = [one[step] for one in dealt]
            for side in (0, 1):
                images = np.concatenate([sides[side] for sides, _ in batches])
                assert np.array_equal(images, whole[0][side])
            for _, genuine in batches:  # losses compare all images: every worker has all labels
                assert np.array_equal(genuine, whole[1])


def test_a_worker_decodes_only_the_images_of_its_range(index):
    store = FileStore(index, whole_plan(index, 64))
    sampler = PairSampler(index.first, np.arange(len(index.people)), 4)
    (whole,) = drawn(index, store, sampler, 0, None, 1)
    (own,) = drawn(index, store, sampler, 0, (3, 6), 1)
    for side in (0, 1):
        assert own[0][side].shape[0] == 3
        assert np.array_equal(own[0][side], whole[0][side][3:6])
