"""The cohort of a bundle: read as it was written, and damaged ones are refused."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from tiny.bundles import cohort_of, measured_of

from facepairs.bundles.error_profile import MEASURED, parse_measured
from facepairs.errors import BadBundle

ROWS = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)


def test_rows_are_read_as_they_were_written():
    profile = parse_measured(measured_of(included=cohort_of(ROWS)).to_bytes(), Path(MEASURED))
    assert profile.cohort.dtype == np.float32
    assert profile.cohort.tolist() == ROWS.tolist()
    assert profile == measured_of(included=cohort_of(ROWS))
    assert measured_of().cohort is None


@pytest.mark.parametrize(
    "change",
    [
        {"cohort_width": 4},
        {"cohort_width": 0},
        {"cohort_width": 4097},
        {"cohort_content": ""},
        {"cohort_content": "no base64!"},
        {"cohort_content": base64.b64encode(ROWS.tobytes()[:-1]).decode()},
        {"cohort_content": base64.b64encode(np.full((3, 5), np.inf, "<f4").tobytes()).decode()},
    ],
)
def test_a_cohort_that_cannot_be_used_is_refused(change):
    values = json.loads(measured_of(included=cohort_of(ROWS)).to_bytes())
    values["included"] |= change
    with pytest.raises(BadBundle, match=MEASURED):
        parse_measured(json.dumps(values).encode(), Path(MEASURED))
