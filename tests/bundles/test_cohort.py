"""The cohort of a bundle: read as it was written, and damaged ones are refused."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from facepairs.bundles.bundle import npy_bytes, parse_rows
from facepairs.errors import BadBundle

numbers = st.floats(-4, 4, width=32)


def saved(array):
    content = io.BytesIO()
    np.save(content, array, allow_pickle=array.dtype == object)
    return content.getvalue()


@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=numbers))
def test_rows_are_read_as_they_were_written(rows):
    assert (parse_rows(npy_bytes(rows), Path("cohort.npy")) == rows).all()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        saved(np.array([[{"a": 1}]], object)),
        saved(np.zeros((3, 2), np.float32))[:-4],
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
