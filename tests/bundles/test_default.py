"""What a user may give as a bundle: its folder, the run that holds it, or the word `default`."""

import shutil
from pathlib import Path

import pytest
from processes.command_line import in_process
from tiny.bundles import tiny_bundle

from facepairs.bundles.bundle import FOLDER, Bundle, bundle_folder
from facepairs.errors import BadBundle, BadData
from facepairs.verification.verifier import Verifier


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(FOLDER, folder / "bundle")
    (folder / "config.toml").touch()
    return folder


def test_a_run_folder_stands_for_the_bundle_in_it(run):
    assert Bundle.open(run).folder == run / "bundle"
    assert Bundle.open(str(run)).raw == Bundle.open(None).raw
    assert bundle_folder(run / "bundle") == run / "bundle"
    for folder in (run.parent, run / "bundle"):
        shutil.copytree(FOLDER, folder / "bundle", dirs_exist_ok=True)
    assert bundle_folder(run / "bundle") == run / "bundle"  # is one, whatever lies in it
    assert bundle_folder(run.parent / "nothing") == run.parent / "nothing"
    expected = in_process("info", run / "bundle", check=0).stdout
    assert in_process("info", run, check=0).stdout == expected


def test_info_shows_the_default_threshold_first_and_the_others_rising():
    lines = in_process("info", "default", check=0).stdout.splitlines()
    shown = [line.split() for line in lines if line.startswith(("decides at", "or at"))]
    first, *others = [float(words[words.index("score") + 1].rstrip(":")) for words in shown]
    assert first == pytest.approx(Verifier.load().operating_point().threshold, abs=1e-4)
    assert others == sorted(others)
    assert len(others) == len(Verifier.load().model.profile.thresholds)


def test_a_licence_is_told_as_that_of_the_weights_or_of_those_before_them(tmp_path):
    start = {"init": {"created": "2025", "licence": "research"}}
    before = "research (of the weights that it started from)"
    for number, (changes, told) in enumerate(
        (
            ({"licence": "own"}, "own"),
            ({"licence": "own", "training": start}, "own"),
            ({"training": start}, before),
            ({}, "not recorded"),
        )
    ):
        bundle = tiny_bundle(tmp_path / str(number), "embedding", **changes)
        lines = in_process("info", bundle.folder, check=0).stdout.splitlines()
        (line,) = (line for line in lines if line.startswith("licence"))
        assert line.split(maxsplit=1)[1] == told


def test_a_run_without_a_bundle_yet_is_named(run):
    shutil.rmtree(run / "bundle")
    with pytest.raises(BadBundle, match=f"^{run}/manifest.json: missing"):
        Bundle.open(run)


def test_a_url_is_no_bundle():
    with pytest.raises(BadData, match=r"^https://x\.org/bundle: is a web address"):
        Bundle.open("https://x.org/bundle")
