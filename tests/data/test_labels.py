"""Wrong labels: photos of another person than the rest of their folder stand out."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from drawn.photos import encoded, put
from PIL import Image

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.data.index import FaceIndex
from facepairs.data.likeness import find_mislabelled, pairs_within_folders
from facepairs.verification.verifier import Verifier


def photo(person: int, number: int) -> bytes:
    """Return a photo that shows a person by its colours: a pattern of their own, and noise."""
    pattern = np.random.default_rng(person).integers(0, 256, (4, 4, 3)).repeat(8, 0).repeat(8, 1)
    noise = np.random.default_rng(1000 + number).normal(0, 25, pattern.shape)
    return encoded(Image.fromarray(np.clip(pattern + noise, 0, 255).astype(np.uint8)), "PNG")


@pytest.fixture
def verifier(make_bundle: Callable[..., Bundle]) -> Verifier:
    return Verifier(make_bundle("embedding", calibration=Calibration(100.0, -94.0)))


@pytest.fixture
def index(tmp_path: Path) -> FaceIndex:
    """Folders of 2, 3, 5 and 40 photos, each but the second with one photo of somebody else."""
    root = tmp_path / "photos"
    for person, (name, count) in enumerate({"Two": 2, "Three": 3, "Five": 5, "Forty": 40}.items()):
        for number in range(count):
            wrong = number == 1 and name != "Three"
            put(root, f"{name}/{number:02}.png", photo(person + 10 * wrong, 100 * person + number))
    return FaceIndex.scan(root)


def mislabelled(verifier: Verifier, index: FaceIndex) -> list[str]:
    rows = verifier.embed(index.paths, errors={})
    calibration = verifier.bundle.calibration
    assert calibration is not None
    found = find_mislabelled(index, rows, calibration.scale, calibration.offset)
    return [index.name(int(image)) for image in found]


def test_a_photo_of_somebody_else_is_found(verifier: Verifier, index: FaceIndex) -> None:
    assert mislabelled(verifier, index) == ["Five/01.png", "Forty/01.png"]


def test_photos_that_cannot_be_used_are_not_compared(verifier: Verifier, index: FaceIndex) -> None:
    for name in ("Five/01.png", "Forty/02.png"):
        (index.root / name).write_bytes(b"")
    assert mislabelled(verifier, index) == ["Forty/01.png"]


def test_small_folders_are_compared_whole_and_large_ones_in_part() -> None:
    counts = {"A": 2, "B": 3, "C": 8, "D": 300}
    listing = [f"{name}/{at}.jpg" for name, count in counts.items() for at in range(count)]
    index = FaceIndex.from_listing(listing)
    left, right = pairs_within_folders(index, np.ones(len(index), bool))
    assert (index.person_of[left] == index.person_of[right]).all()
    pairs = set(map(frozenset, zip(left.tolist(), right.tolist(), strict=True)))
    assert len(pairs) == len(left)
    assert all(len(pair) == 2 for pair in pairs)
    assert Counter(index.person_of[left].tolist()) == {1: 3, 2: 28, 3: 3000 - 150}
    others = np.bincount(np.concatenate([left, right]))[-300:]
    assert set(others.tolist()) == {19}
