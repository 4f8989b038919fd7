"""Impostor pairs for rare errors: as many as there are pairs of people, within limits."""

from pathlib import Path

import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import distinct_impostors
from facepairs.evaluation.protocols import add_impostors, leave_out_copies


@pytest.mark.parametrize(
    ("people", "pairs"), [(40, 4 * 780), (240, 30_000), (250, 31_125), (800, 300_000)]
)
def test_many_people_give_more_impostor_pairs(people: int, pairs: int) -> None:
    listing = [f"P{person:03}/{photo}.jpg" for person in range(people) for photo in range(2)]
    index = FaceIndex.from_listing(listing)
    ends = np.arange(people) * 2
    genuine = PairList.of(ends, ends + 1, np.ones(people, bool))
    added = add_impostors(index, genuine)
    assert int(added.genuine.sum()) == people
    strangers = added.where(~added.genuine)
    drawn = distinct_impostors(index.first, range(people), pairs, 0)
    assert len(strangers) == pairs
    assert np.array_equal(strangers.left, drawn.left)
    assert np.array_equal(strangers.right, drawn.right)
    fixed = add_impostors(index, genuine, count=20_000)
    assert int((~fixed.genuine).sum()) == min(pairs, 20_000)


def test_pairs_of_a_file_and_its_copy_are_left_out(tmp_path: Path) -> None:
    contents = {"A/1.jpg": b"one", "A/2.jpg": b"two", "B/1.jpg": b"one", "B/2.jpg": b"four"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    index = FaceIndex.scan(tmp_path)
    pairs = PairList.of([0, 0, 1, 2], [1, 2, 2, 3], [True, False, False, True])
    left = leave_out_copies(index, pairs)
    assert list(zip(left.left.tolist(), left.right.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    (tmp_path / "A/1.jpg").unlink()  # who reads the photos says so
    assert len(leave_out_copies(index, pairs)) == 4
