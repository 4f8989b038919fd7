"""`facepairs fetch`, and the fetched network in other commands."""

import io
import json
import shutil
import sys

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


def test_the_list_tells_licence_and_state(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal(""))  # nobody is asked: the licence is free
    onnx = remote.files["d"] = network_table(tmp_path / "networks", f"{remote.url}/d")
    done = in_process("fetch", "drawn", check=0)
    assert done.stdout.splitlines() == [
        f"network     drawn, in {tmp_path / 'networks' / 'drawn'}",
        "licence     MIT",
        "trained on  not recorded",
        "errors      unknown until they are measured on your people",
        "next        facepairs calibrate drawn photos/ --out mine",
    ]
    assert "licence" not in done.stderr  # told once
    listed = json.loads(in_process("fetch", "--list", "--json", check=0).stdout)["networks"]
    assert {row["name"]: row["folder"] for row in listed} == {
        **dict.fromkeys(("sface", "auraface", "w600k-mbf", "w600k-r50")),
        "drawn": str(tmp_path / "networks" / "drawn"),
    }
    sface = listed[0]
    assert sface["bytes"] == 38_696_353
    assert sface["embedder"]["licence"] == "Apache-2.0"
    shown = in_process("fetch", check=0).stdout
    header, *lines = shown.splitlines()
    assert header.split() == ["name", "download", "fetched", "licence", "trained", "on"]
    assert [line.split()[:5] for line in lines] == [
        [
            *(row["name"], f"{row['bytes'] / 1e6:.1f}", "MB"),
            "yes" if row["name"] == "drawn" else "no",
            row["embedder"]["licence"].split()[0],
        ]
        for row in listed
    ]
    assert len(onnx) == listed[-1]["bytes"]
    for words in (("drawn", "--list"), ("--url", "http://x"), ("--accept-licence",)):
        in_process("fetch", *words, check=REFUSED)


class Terminal(io.StringIO):
    """A terminal in which somebody answers."""

    def isatty(self):
        return True


def test_a_licence_that_is_not_free_must_be_accepted(remote, tmp_path, monkeypatch):
    remote.files["d"] = network_table(tmp_path / "networks", f"{remote.url}/d", is_free=False)
    done = in_process("fetch", "drawn", check=REFUSED)
    assert "--accept-licence" in done.stderr
    assert "MIT" in done.stderr
    assert not remote.asked
    for answer, code in (("n\n", 1), ("y\n", 0)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        done = in_process("fetch", "drawn", "--json", check=code)
        assert ("error" in done.stderr, "MIT" in done.stderr) == (False, True)
        assert ("not accepted" in done.stderr) == (code == 1)
        result = done.stdout.strip()  # the question is not there
        assert (result and json.loads(result)["name"]) == ("" if code else "drawn")
    again = in_process("fetch", "drawn", check=0)  # it is there: nobody is asked again
    assert again.stderr == "drawn: already there\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    shutil.rmtree(tmp_path / "networks" / "drawn")
    in_process("fetch", "drawn", "--accept-licence", check=0)
    assert remote.asked == ["d", "d"]


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
    rows = [line.partition("  ")[0] for line in info.splitlines()]
    assert rows == ["model", "photos", "trained on", "licence", "threshold", "files", "runs on"]
    both = in_process("evaluate", "default", "drawn", "none", check=REFUSED)
    assert "none" in both.stderr
