"""What a user may give as a bundle: its folder, the run that holds it, or the word `default`."""

import shutil
from pathlib import Path

import pytest
from command_line import in_process

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.default import FOLDER, bundle_folder
from facepairs.errors import BadBundle, BadData


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


def test_a_run_without_a_bundle_yet_is_named(run):
    shutil.rmtree(run / "bundle")
    with pytest.raises(BadBundle, match=f"^{run}/manifest.json: missing"):
        Bundle.open(run)


def test_a_url_is_no_bundle():
    with pytest.raises(BadData, match=r"^https://x\.org/bundle: a web address"):
        Bundle.open("https://x.org/bundle")
