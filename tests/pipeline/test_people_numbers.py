"""The numbers of the people in a batch's images, for losses that need them."""

import numpy as np
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
from facepairs.pipeline.dataset import make_dataset, people_numbers
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore


def test_people_are_numbered_in_the_given_order_and_others_get_minus_one():
    person_of = np.array([0, 0, 1, 2, 2, 2, 3], np.int32)
    assert people_numbers(person_of, np.array([3, 1])).tolist() == [-1, -1, 1, -1, -1, -1, 0]


def test_batches_of_every_store_number_the_people_in_the_images(faces):
    index = FaceIndex.scan(faces)
    people = np.array([1, 4, 5, 11, 17, 20])
    numbers = people_numbers(index.person_of, people)
    samplers = (
        PairSampler(index.first, people, 3),
        DistinctPeopleSampler(index.first, people, 3, 6),
    )
    plan = whole_plan(index, 64)
    for store in (FileStore(index, plan), MemoryStore.build(index, plan)):
        for sampler in samplers:
            block = sampler.block(0, 0, 12)
            batches = list(make_dataset(store, lambda block=block: iter([block]), 6, numbers))
            assert len(batches) == 2
            for k, batch in enumerate(batches):
                pairs = block.where(slice(6 * k, 6 * k + 6))
                images = np.concatenate([pairs.left, pairs.right])
                shown = people[batch["people"].numpy()]
                assert np.array_equal(shown, index.person_of[images])
                left, right = np.split(batch["people"].numpy(), 2)
                assert np.array_equal(left == right, batch["genuine"].numpy())
