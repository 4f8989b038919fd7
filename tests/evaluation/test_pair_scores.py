"""Impostor pairs for rare errors: as many as there are pairs of people, within limits."""

from pathlib import Path

import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.evaluation.pair_scores import IMPOSTORS, add_impostors


@pytest.mark.parametrize(("people", "pairs"), [(40, 4 * 780), (250, 31_125)])
def test_many_people_give_more_impostor_pairs(tmp_path: Path, people: int, pairs: int) -> None:
    for person in range(people):
        (tmp_path / f"P{person:03}").mkdir()
        for photo in range(2):
            (tmp_path / f"P{person:03}" / f"{photo}.jpg").touch()
    index = FaceIndex.scan(tmp_path)
    ends = np.arange(people) * 2
    genuine = PairList.of(ends, ends + 1, np.ones(people, bool))
    added = add_impostors(index, genuine)
    assert int(added.genuine.sum()) == people
    assert int((~added.genuine).sum()) == pairs
    strangers = added.where(~added.genuine)
    assert (index.person_of[strangers.left] != index.person_of[strangers.right]).all()
    fixed = add_impostors(index, genuine, count=IMPOSTORS)
    assert int((~fixed.genuine).sum()) == min(pairs, IMPOSTORS)
