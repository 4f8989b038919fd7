"""The word `default`, the package's own bundle, and a folder of the same name."""

import shutil

import pytest

from facepairs.bundles import default
from facepairs.bundles.bundle import Bundle
from facepairs.errors import BadBundle
from facepairs.verification.verifier import Verifier


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An empty folder in place of the package's own bundle."""
    monkeypatch.setattr(default, "FOLDER", tmp_path / "package" / "default_model")
    return default.FOLDER


def test_none_and_the_word_default_mean_the_packages_bundle(make_bundle, package):
    shutil.copytree(make_bundle().folder, package)
    assert Bundle.open(None).folder == package
    assert Bundle.open("default").folder == package
    assert Verifier.load().bundle.folder == package


def test_a_folder_called_default_needs_a_path(make_bundle, package, tmp_path, monkeypatch):
    shutil.copytree(make_bundle().folder, tmp_path / "default")
    monkeypatch.chdir(tmp_path)
    for path in ("./default", default.Path("default"), str(tmp_path / "default")):
        assert Bundle.open(path).folder == default.Path(path)
    with pytest.raises(BadBundle):
        Bundle.open("default")


def test_without_a_default_model_the_error_explains_training(package):
    package.mkdir(parents=True)
    for path in (None, "default"):
        with pytest.raises(BadBundle, match=r"without a default model; train one .*--bundle run"):
            Bundle.open(path)
