import math

import msgspec
import numpy as np
import pytest

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.thresholds import FmrThreshold, OperatingPoint, operating_point
from facepairs.errors import BadBundle, BadConfig
from facepairs.verification.verifier import Verifier

FULL = {
    "fmr": 0.01,
    "threshold": 0.25,
    "measured_fmr": 0.009,
    "fmr_interval": [0.006, 0.014],
    "genuine_pairs": 30,
    "impostor_pairs": 3000,
}
REFUSED = {"fmr": 0.001, "threshold": None, "reason": "3,000 impostor pairs are too few"}


class Model:
    threshold = 0.5

    def __init__(self, *rows):
        self.thresholds = tuple(msgspec.convert(row, FmrThreshold) for row in rows)


def test_the_models_own_threshold_or_the_given_one():
    assert operating_point(Model()) == OperatingPoint(0.5)
    assert operating_point(Model(), threshold=0.0) == OperatingPoint(0.0)
    assert operating_point(Model()).describe() == ""
    assert operating_point(Model()).to_json() == {"threshold": 0.5}


def test_a_target_fmr_comes_with_interval_and_pairs():
    model = Model({"fmr": 0.1, "threshold": 0.1}, FULL)
    point = operating_point(model, max_fmr=0.01)
    assert point == OperatingPoint(0.25, model.thresholds[1])
    assert point.max_fmr == 0.01
    assert point.describe() == (
        "FMR at most 1 % (95 % interval 0.6 % to 1.4 %, 3,000 impostor pairs)"
    )
    values = point.to_json()
    assert values.pop("max_fmr") == FULL["fmr"]
    assert values == {name: value for name, value in FULL.items() if name != "fmr"}
    bare = operating_point(Model({"fmr": 0.1, "threshold": -1}), max_fmr=0.1)
    assert bare.threshold == -1.0
    assert "interval unknown" in bare.describe()


def test_an_entry_keeps_the_fields_of_its_row():
    for row in (FULL, REFUSED):
        assert Model(row).thresholds[0].to_json() == row


@pytest.mark.parametrize(
    ("thresholds", "given", "message"),
    [
        ([FULL], {"threshold": 0.1, "max_fmr": 0.01}, "exclude each other"),
        ([FULL], {"threshold": math.nan}, "nan, not a finite number"),
        ([FULL], {"threshold": -math.inf}, "-inf, not a finite number"),
        (
            [FULL, REFUSED],
            {"max_fmr": 0.05},
            "no threshold for FMR 0.05; it has thresholds for 0.01$",
        ),
        ([FULL, REFUSED], {"max_fmr": 0.001}, r"FMR 0.001 \(3,000 .* too few\); it has .* 0.01$"),
        ([], {"max_fmr": 0.001}, "it has none; give a threshold"),
        ([FULL], {"max_fmr": math.nan}, "no threshold for FMR nan"),
    ],
)
def test_thresholds_that_cannot_be_chosen_are_refused(thresholds, given, message):
    with pytest.raises(BadConfig, match=message):
        operating_point(Model(*thresholds), **given)


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": "high"},
        {"threshold": 10**400},
        {"measured_fmr": "low"},
        {"fmr_interval": [0.1]},
        {"fmr_interval": 0.1},
        {"impostor_pairs": -1},
        {"genuine_pairs": 1.5},
    ],
)
def test_unusable_thresholds_of_a_manifest_are_refused_by_name(make_bundle, change):
    with pytest.raises(BadBundle, match=rf"thresholds\[0\]\.{next(iter(change))}"):
        make_bundle(thresholds=[FULL | change])


def test_verify_takes_a_target_fmr(make_bundle):
    verifier = Verifier.load(make_bundle(thresholds=[FULL]).folder)
    face = np.zeros((32, 32, 3), np.uint8)
    assert verifier.verify(face, face, max_fmr=0.01).threshold == 0.25
    with pytest.raises(BadConfig, match="exclude"):
        verifier.verify(face, face, threshold=0.0, max_fmr=0.01)


def test_the_packaged_model_holds_the_threshold_that_its_card_states():
    point = operating_point(Bundle.open(None, verify_files=False), max_fmr=0.001)
    assert point.threshold is not None
    assert point.target is not None
    assert point.target.impostor_pairs == 3000
    assert point.target.fmr_interval[0] < 0.001 < point.target.fmr_interval[1]
