"""A folder of people that tests change as its user does."""

import shutil

import pytest
from tiny.people_folders import PHOTOS, collection_of, sort


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A collection of nine photos, and the folder of its people."""
    root = tmp_path_factory.mktemp("start")
    sort(collection_of(root / "photos", PHOTOS), root / "people")
    return root


@pytest.fixture
def at_work(start, tmp_path):
    """A copy that a test may change: the collection and the folder."""
    shutil.copytree(start / "people", tmp_path / "people")
    shutil.copytree(start / "photos", tmp_path / "photos")
    return collection_of(tmp_path / "photos", PHOTOS), tmp_path / "people"
