"""Embeddings in memory."""

import numpy as np
import pytest
from processes.gallery_jobs import WIDTH, photo


def test_vectors_of_lower_precision_score_the_same_block_by_block(monkeypatch):
    from facepairs.gallery import vectors as module

    rows = np.stack([photo(number).vector for number in range(50)])
    people = [f"P{number % 7}" for number in range(50)]
    fast = module.Vectors(WIDTH, 50)
    monkeypatch.setattr(module, "MOST_FAST_BYTES", 0)
    monkeypatch.setattr(module, "BLOCK_ROWS", 8)
    monkeypatch.setattr(module, "PART_ROWS", 16)
    slow = module.Vectors(WIDTH, 3)
    for vectors in (fast, slow):
        for at in range(0, 50, 5):
            vectors.append(people[at : at + 5], rows[at : at + 5])
    expected = [max(rows[k::7] @ rows[3]) for k in range(7)]
    assert fast.best(rows[3]) == pytest.approx(expected, abs=1e-6)
    assert slow.best(rows[3]) == pytest.approx(expected, abs=2e-3)
    assert fast.best(rows[3], lambda a, b: -np.abs(a - b).sum(axis=1)).argmax() == 3
    assert fast.photo_counts.tolist() == [8, 7, 7, 7, 7, 7, 7]
    assert len(fast.of_person("P0")) == 8
    assert len(fast.of_person("nobody")) == 0
