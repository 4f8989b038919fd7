"""N workers together read exactly the pairs of a single one, from any epoch on."""

import itertools

import numpy as np
import pytest
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
from facepairs.models.replicas import split_batch
from facepairs.pipeline.dataset import make_dataset, people_numbers
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.schedule import training_blocks

BATCH, STEPS = 10, 7  # an epoch is one block, cut short


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


def drawn(index, store, sampler, epoch, part, count):
    numbers = people_numbers(index.person_of, np.arange(len(index.people)))
    dataset = make_dataset(
        store, lambda: training_blocks(sampler, BATCH, STEPS, epoch), BATCH, numbers, part
    )
    return [
        {name: value.numpy() for name, value in batch.items()}
        for batch in itertools.islice(iter(dataset), count)
    ]


@pytest.mark.parametrize("distinct", [True, False])
def test_the_ranges_of_all_workers_make_up_the_batch(index, distinct):
    people = np.arange(len(index.people))
    sampler = (
        DistinctPeopleSampler(index.first, people, 4, BATCH)
        if distinct
        else PairSampler(index.first, people, 4)
    )
    store = MemoryStore(np.zeros((len(index), 1, 1, 3), np.uint8))  # image numbers, no pixels
    from_the_start = drawn(index, store, sampler, 0, None, 22)
    for workers, epoch in ((1, 1), (2, 0), (2, 1), (3, 1)):
        dealt = [
            drawn(index, store, sampler, epoch, (part.begin, part.end), 10)
            for part in split_batch(BATCH, workers)
        ]
        for step, whole in enumerate(from_the_start[epoch * STEPS : epoch * STEPS + 10]):
            batches = [one[step] for one in dealt]
            assert np.array_equal(joined([batch["images"] for batch in batches]), whole["images"])
            for batch in batches:  # losses compare all images: every worker has all labels
                assert np.array_equal(batch["genuine"], whole["genuine"])
                assert np.array_equal(batch["people"], whole["people"])


def joined(pieces):
    """Join the ranges' left and right images into those of the whole batch."""
    sides = [np.split(piece, 2) for piece in pieces]
    return np.concatenate([left for left, _ in sides] + [right for _, right in sides])


def test_a_worker_decodes_only_the_images_of_its_range(index):
    store = FileStore(index, whole_plan(index, 64))
    sampler = PairSampler(index.first, np.arange(len(index.people)), 4)
    (whole,) = drawn(index, store, sampler, 0, None, 1)
    (own,) = drawn(index, store, sampler, 0, (3, 6), 1)
    assert own["images"].shape[0] == 6
    assert np.array_equal(
        own["images"], np.concatenate([whole["images"][3:6], whole["images"][13:16]])
    )
