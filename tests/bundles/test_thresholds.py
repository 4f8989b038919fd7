import math

import numpy as np
import pytest

from facepairs.bundles.thresholds import OperatingPoint, operating_point
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

    def __init__(self, *thresholds):
        self.thresholds = thresholds


def test_the_models_own_or_the_one_given():
    assert operating_point(Model()) == OperatingPoint(0.5)
    assert operating_point(Model(), threshold=0.0) == OperatingPoint(0.0)
    assert operating_point(Model()).told() == ""
    assert operating_point(Model()).to_json() == {"threshold": 0.5}


def test_a_rate_comes_with_interval_and_pairs():
    point = operating_point(Model({"fmr": 0.1, "threshold": 0.1}, FULL), max_fmr=0.01)
    assert point == OperatingPoint(0.25, 0.01, 0.009, (0.006, 0.014), 30, 3000)
    assert point.told() == ("FMR at most 0.01 (95 % interval 0.006 to 0.014, 3,000 impostor pairs)")
    told = point.to_json()
    assert told.pop("max_fmr") == FULL["fmr"]
    assert told == {name: value for name, value in FULL.items() if name != "fmr"}
    bare = operating_point(Model({"fmr": 0.1, "threshold": -1}), max_fmr=0.1)
    assert bare.threshold == -1.0
    assert "interval not told" in bare.told()


@pytest.mark.parametrize(
    ("thresholds", "given", "says"),
    [
        ([FULL], {"threshold": 0.1, "max_fmr": 0.01}, "exclude each other"),
        ([FULL], {"threshold": math.nan}, "nan, not a finite number"),
        ([FULL], {"threshold": -math.inf}, "-inf, not a finite number"),
        ([FULL, REFUSED], {"max_fmr": 0.05}, "no threshold for FMR 0.05; it has them for 0.01$"),
        ([FULL, REFUSED], {"max_fmr": 0.001}, r"FMR 0.001 \(3,000 .* too few\); it has .* 0.01$"),
        ([], {"max_fmr": 0.001}, "for no rate; give a threshold"),
        ([FULL], {"max_fmr": math.nan}, "no threshold for FMR nan"),
    ],
)
def test_what_cannot_be_chosen(thresholds, given, says):
    with pytest.raises(BadConfig, match=says):
        operating_point(Model(*thresholds), **given)


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": "high"},
        {"threshold": math.inf},
        {"measured_fmr": "low"},
        {"fmr_interval": [0.1]},
        {"fmr_interval": 0.1},
        {"impostor_pairs": -1},
        {"genuine_pairs": 1.5},
    ],
)
def test_what_a_manifest_tells_is_checked(change):
    with pytest.raises(BadBundle, match=r"FMR 0\.01 cannot be used"):
        operating_point(Model(FULL | change), max_fmr=0.01)


def test_verify_takes_a_rate(make_bundle):
    verifier = Verifier.load(make_bundle(thresholds=[FULL]).folder)
    face = np.zeros((32, 32, 3), np.uint8)
    assert verifier.verify(face, face, max_fmr=0.01).threshold == 0.25
    with pytest.raises(BadConfig, match="exclude"):
        verifier.verify(face, face, threshold=0.0, max_fmr=0.01)


def test_the_packaged_model_promises_what_its_card_says():
    from facepairs.bundles.bundle import Bundle

    point = operating_point(Bundle.open(None, verify_files=False), max_fmr=0.001)
    assert point.threshold is not None
    assert point.impostor_pairs == 3000
    assert point.fmr_interval[0] < 0.001 < point.fmr_interval[1]
