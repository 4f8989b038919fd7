"""`facepairs fetch`, and the fetched network in other commands."""

import json

import numpy as np
import pytest
from drawn.photos import smooth
from PIL import Image
from processes.command_line import in_process
from storage.file_server import serving
from tiny.embedders import network_table

REFUSED = 2


@pytest.fixture
def remote(tmp_path, monkeypatch):
    monkeypatch.setenv("FACEPAIRS_NETWORKS", str(tmp_path / "networks"))
    with serving() as server:
        yield server


def test_the_list_tells_licence_and_state(remote, tmp_path):
    remote.files["d"] = network_table(tmp_path / "networks", f"{remote.url}/d")
    in_process("fetch", "drawn", check=0)
    listed = json.loads(in_process("fetch", "--list", "--json", check=0).stdout)["networks"]
    assert {row["name"]: row["folder"] for row in listed} == {
        **dict.fromkeys(("sface", "auraface", "w600k-mbf", "w600k-r50")),
        "drawn": str(tmp_path / "networks" / "drawn"),
    }
    sface = listed[0]
    assert sface["bytes"] == 38_696_353
    assert sface["embedder"]["licence"] == "Apache-2.0"
    shown = in_process("fetch", check=0).stdout
    assert all(row["name"] in shown for row in listed)


def test_a_licence_that_is_not_free_must_be_accepted(remote, tmp_path):
    remote.files["d"] = network_table(tmp_path / "networks", f"{remote.url}/d", is_free=False)
    done = in_process("fetch", "drawn", check=REFUSED)
    assert "--accept-licence" in done.stderr
    assert "MIT" in done.stderr
    assert not remote.asked
    in_process("fetch", "drawn", "--accept-licence", check=0)
    in_process("fetch", "drawn", check=0)  # it is there: nobody is asked again
    assert remote.asked == ["d"]


def test_failures_are_one_line(remote, tmp_path):
    onnx = network_table(tmp_path / "networks", f"{remote.url}/d")
    remote.files["d"], remote.cut_after = onnx, [100]
    for words in ((), ("--url", f"{remote.url}/none"), ("--url", "ftp://x/y"), ("--file", "none")):
        done = in_process("fetch", "drawn", *words, check=REFUSED)
        assert done.stderr.count("facepairs: error: ") == 1
    in_process("fetch", "drawn", check=0)
    assert remote.ranges[-1] == "bytes=100-"
    assert "auraface" in in_process("fetch", "other", check=REFUSED).stderr


def test_a_fetched_network_is_measured_and_verifies(remote, tmp_path):
    remote.files["d"] = network_table(tmp_path / "networks", f"{remote.url}/d")
    in_process("fetch", "drawn", check=0)
    for person in range(12):
        (tmp_path / "photos" / f"P{person}").mkdir(parents=True)
        for photo in range(3):
            noise = np.random.default_rng(9 * person + photo).integers(-9, 10, (64, 64, 3))
            image = (smooth(64, 64, person) + noise).clip(0, 255).astype(np.uint8)
            Image.fromarray(image).save(tmp_path / "photos" / f"P{person}" / f"{photo}.png")
    one, other = (tmp_path / "photos" / "P0" / f"{photo}.png" for photo in (0, 1))
    pair = ("verify", one, other, "--bundle")
    unknown = json.loads(in_process(*pair, "drawn", "--json", check=3).stdout)
    assert (unknown["same"], unknown["operating_point"].get("errors")) == (None, None)
    in_process("calibrate", "drawn", tmp_path / "photos", "--out", tmp_path / "mine", check=0)
    known = in_process(*pair, tmp_path / "mine", "--json")
    assert known.returncode in (0, 1)
    assert json.loads(known.stdout)["operating_point"]["errors"]["fmr"] is not None
    info = in_process("info", "drawn", check=0).stdout
    assert "MIT" in info
    both = in_process("evaluate", "default", "drawn", "none", check=REFUSED)
    assert "none" in both.stderr
