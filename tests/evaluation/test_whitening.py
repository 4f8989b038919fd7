"""The linear map of embeddings: it helps where photos of one person vary in few directions."""

import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.evaluation.pair_scores import ScoredPairs
from facepairs.evaluation.whitening import whiten

DIMENSIONS = 16
PHOTOS = 4


def drawn(people, nuisance, seed=0):
    """All pairs of people whose photos differ by `nuisance` in four directions, else by little."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), PHOTOS)
    rows = rng.normal(0, 1, (people, DIMENSIONS))[person]
    rows += rng.normal(0, 0.4, rows.shape)
    rows[:, :4] += rng.normal(0, nuisance, (len(rows), 4))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    left, right = np.triu_indices(len(rows), 1)
    pairs = PairList.of(left, right, person[left] == person[right])
    return rows, person, pairs


@pytest.fixture
def make(tmp_path):
    def build(people, nuisance, seed=0):
        rows, person, pairs = drawn(people, nuisance, seed)
        for number in range(people):
            folder = tmp_path / f"Person_{number:03}"
            folder.mkdir(exist_ok=True)
            for photo in range(PHOTOS):
                (folder / f"{photo}.jpg").write_bytes(b"x")
        index = FaceIndex.scan(tmp_path)
        assert np.array_equal(index.person_of, person)
        score = (rows[pairs.left] * rows[pairs.right]).sum(axis=1).astype(np.float64)
        return ScoredPairs(index, pairs, score, None, rows)

    return build


def test_the_map_is_kept_where_it_helps(make):
    result = whiten(make(20, nuisance=2.0))
    assert result is not None
    assert result.auc > result.auc_before + 0.01
    rows = result.scored.embeddings
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-5)


def test_other_people_gain_what_was_promised(make):
    promised = whiten(make(30, nuisance=2.0))
    assert promised is not None
    rows, _, pairs = drawn(60, nuisance=2.0, seed=1)
    mapped = promised.map(rows)
    score = (mapped[pairs.left] * mapped[pairs.right]).sum(axis=1)
    genuine, impostor = score[pairs.genuine], np.sort(score[~pairs.genuine])
    auc = np.searchsorted(impostor, genuine).mean() / len(impostor)
    assert auc == pytest.approx(promised.auc, abs=0.03)


@pytest.mark.parametrize(("people", "nuisance"), [(20, 0.0), (6, 2.0)])
def test_without_a_gain_or_people_there_is_no_map(make, people, nuisance):
    assert whiten(make(people, nuisance)) is None


def test_genuine_pairs_of_few_people_are_too_few_for_a_map(make):
    scored = make(20, nuisance=2.0)
    few = ~scored.pairs.genuine | (scored.people[0] < 5)
    left, right = scored.pairs.left[few], scored.pairs.right[few]
    pairs = PairList.of(left, right, scored.pairs.genuine[few])
    scored = ScoredPairs(scored.index, pairs, scored.score[few], None, scored.embeddings)
    assert whiten(scored) is None


def test_scores_without_embeddings_have_no_map(make):
    pairs = make(6, 0.0)
    assert whiten(ScoredPairs(pairs.index, pairs.pairs, pairs.score, None)) is None
