"""A map of embeddings: what it computes, and that damaged ones are refused."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from facepairs.bundles.embedding_map import EmbeddingMap, npy_bytes, parse_map, parse_rows
from facepairs.errors import BadBundle

numbers = st.floats(-4, 4, width=32)


@given(
    arrays(np.float32, (4, 3), elements=numbers),
    arrays(np.float32, 3, elements=numbers),
    arrays(np.float32, (3, 3), elements=numbers),
)
def test_rows_are_less_the_mean_times_the_matrix_at_length_one(rows, mean, matrix):
    content = EmbeddingMap(mean, matrix).to_bytes()
    mapped = parse_map(content, Path("map.npy"))(rows)
    expected = (rows.astype(np.float64) - mean) @ matrix
    long = np.linalg.norm(expected, axis=1) > 0.1
    lengths = np.linalg.norm(expected[long], axis=1, keepdims=True)
    assert mapped[long] == pytest.approx(expected[long] / lengths, abs=1e-4)
    assert np.isfinite(mapped).all()


def saved(array):
    content = io.BytesIO()
    np.save(content, array, allow_pickle=array.dtype == object)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        saved(np.zeros((3, 3), np.float32)),
        saved(np.zeros((4, 3), np.float64)),
        saved(np.full((4, 3), np.nan, np.float32)),
        saved(np.array([[{"a": 1}]], object)),
        saved(np.zeros((3, 2), np.float32))[:-4],
    ],
)
def test_what_is_no_map_is_refused(content):
    with pytest.raises(BadBundle):
        parse_map(content, Path("map.npy"))


@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=numbers))
def test_rows_are_read_as_they_were_written(rows):
    assert (parse_rows(npy_bytes(rows), Path("cohort.npy")) == rows).all()


@pytest.mark.parametrize(
    "content",
    [
        b"\x93NUMPY",
        saved(np.zeros((0, 3), np.float32)),
        saved(np.zeros(3, np.float32)),
        saved(np.zeros((4, 3), np.float64)),
        saved(np.full((4, 3), np.inf, np.float32)),
        saved(np.zeros((1, 4097), np.float32)),
    ],
)
def test_what_is_no_cohort_is_refused(content):
    with pytest.raises(BadBundle):
        parse_rows(content, Path("cohort.npy"))
