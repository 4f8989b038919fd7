"""What a user may give as a bundle: its folder, the run that holds it, or the word `default`."""

import shutil
from pathlib import Path

import pytest
from processes.command_line import in_process

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
    expected = in_process("info", run / "bundle", check=0).stdout
    assert in_process("info", run, check=0).stdout == expected


def test_info_shows_the_default_threshold_first_and_the_others_rising():
    lines = in_process("info", "default", check=0).stdout.splitlines()
    shown = [line.split() for line in lines if line.startswith(("decides at", "or at"))]
    first, *others = [float(words[words.index("score") + 1].rstrip(":")) for words in shown]
    assert first == pytest.approx(Verifier.load().operating_point().threshold, abs=1e-4)
    assert others == sorted(others)
    assert len(others) == len(Verifier.load().model.profile.thresholds)


def test_a_run_without_a_bundle_yet_is_named(run):
    shutil.rmtree(run / "bundle")
    with pytest.raises(BadBundle, match=f"^{run}/manifest.json: missing"):
        Bundle.open(run)


def test_a_url_is_no_bundle():
    with pytest.raises(BadData, match=r"^https://x\.org/bundle: is a web address"):
        Bundle.open("https://x.org/bundle")
