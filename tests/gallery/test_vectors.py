"""Embeddings in memory."""

import numpy as np
import pytest
from processes.gallery_jobs import WIDTH, photo

from facepairs.gallery.vectors import Vectors


def test_each_person_has_the_score_of_the_most_similar_photo():
    rows = np.stack([photo(number).vector for number in range(50)])
    people = [f"P{number % 7}" for number in range(50)]
    vectors = Vectors(WIDTH, 3)  # grows
    for at in range(0, 50, 5):
        vectors.append(people[at : at + 5], rows[at : at + 5])
    expected = [max(rows[k::7] @ rows[3]) for k in range(7)]
    assert vectors.best(rows[3]) == pytest.approx(expected, abs=1e-6)
    assert [vectors.photos_of(number) for number in range(7)] == [8, 7, 7, 7, 7, 7, 7]
    assert vectors.best(2 * rows[3]).max() == 1  # of rounded embeddings
    values, names = vectors.rows()
    assert (values.tolist(), names, len(vectors)) == (rows.tolist(), people, 50)
    assert (vectors.people, vectors.until) == ([f"P{k}" for k in range(7)], np.inf)
    assert Vectors(WIDTH, 0, 12).until == 12
