"""What `facepairs verify` says about a verdict: its threshold, its errors, its prior."""

import json
import math

import msgspec
import pytest
from drawn.scenes import drawn_faces
from processes.command_line import in_process
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle

from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.rates import OperatingPoint
from facepairs.support.results import SCHEMA

ALWAYS = {
    "verdict", "same", "probability", "prior", "log10_likelihood_ratio", "score", "operating_point",
    "left", "right", "model", "schema",
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces")


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = tmp_path_factory.mktemp("known") / "bundle"
    return tiny_bundle(folder, alignment="landmarks-5", **AMONG_LOOKALIKES).folder


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    folder = tmp_path_factory.mktemp("older") / "bundle"
    return tiny_bundle(
        folder, "embedding", alignment="landmarks-5", calibration=Calibration(20.0, -10.0)
    ).folder


def verify(*arguments, **options):
    return in_process("verify", *arguments, **options)


def test_a_verdict_names_its_threshold_and_errors(known, drawn):
    done = verify(drawn[0], drawn[0], "--bundle", known, check=0)
    rows = done.stdout.splitlines()
    assert rows[:4] == [
        "verdict      same person",
        "probability  above 0.999 (at equal priors)",
        "errors       at this threshold 1 in 1,000 strangers (at most 1 in 290) would pass, "
        "1 in 100 of those who look alike",
        "             30 in 100 genuine pairs would be missed (drawn pairs)",
    ]
    assert rows[4].endswith("(threshold 0.7500: FMR 1 % among look-alikes)")
    output = verify(drawn[0], drawn[0], "--bundle", known, "--threshold", 0.5).stdout
    assert "1 in 100 strangers would pass, 1 in 20 of those who look alike" in output
    assert "(threshold 0.5000: the threshold given)" in output


def test_json_always_has_the_errors(known, older, drawn):
    for bundle, point, fmr in ((known, "fmr-0.01", 0.001), (older, "balanced", None)):
        values = json.loads(verify(*drawn[:2], "--bundle", bundle, "--json").stdout)
        assert values.keys() >= ALWAYS
        found = msgspec.convert(values["operating_point"], OperatingPoint)
        assert (found.name, found.errors.fmr and found.errors.fmr.value) == (point, fmr)
        assert (values["prior"], values["schema"]) == (0.5, SCHEMA)
        odds = values["probability"] / (1 - values["probability"])
        ratio = pytest.approx(math.log10(odds), rel=1e-3)
        assert values["log10_likelihood_ratio"] == ratio
        rare = json.loads(verify(*drawn[:2], "--bundle", bundle, "--json", "--prior", 0.01).stdout)
        assert rare["log10_likelihood_ratio"] == ratio
        assert rare["probability"] < values["probability"]


def test_thresholds_on_demand(known, drawn):
    both = (*drawn[:2], "--bundle", known)
    score = json.loads(verify(*both, "--json").stdout)["score"]
    for threshold, code in ((0.0, int(score < 0)), (score, 0), (1, 1), ("-1", 0)):
        done = verify(*both, "--threshold", threshold, "--json")
        assert done.returncode == code
        assert json.loads(done.stdout)["operating_point"]["threshold"] == float(threshold)
    point = json.loads(verify(*both, "--max-fmr", "0.01", "--json").stdout)["operating_point"]
    assert (point["max_fmr"], point["threshold"]) == (0.01, 0.75)
