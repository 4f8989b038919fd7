"""Of several faces in a photo, the one that fits its folder: chosen alike by every command."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn.photos import noise_photos
from drawn.scenes import Place, canvas, paste
from hypothesis import given
from hypothesis import strategies as st

from facepairs.bundles.bundle import Bundle
from facepairs.choices import NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.evaluation.dataset_check import check_dataset
from facepairs.evaluation.evaluate import evaluate
from facepairs.gallery.gallery import Gallery
from facepairs.photos.photo_cache import PhotoCache
from facepairs.photos.subject_faces import (
    MOST_PROMINENT,
    choose_faces,
    choose_subjects,
)
from facepairs.support.console import showing
from facepairs.training.inputs.people import usable_photos
from facepairs.verification.verifier import Verifier, subject_faces

LEAST = 0.8


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def person(rng: np.random.Generator) -> np.ndarray:
    return unit(rng.normal(size=128))


@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(1, 4), min_size=2, max_size=8))
def test_the_recurring_face_is_found_wherever_it_stands(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    own, photos, places = person(rng), [], []
    for size in sizes:
        faces = np.stack([person(rng) for _ in range(size)])
        places.append(int(rng.integers(size)) + 1)
        faces[places[-1] - 1] = unit(own + 0.2 * person(rng))
        photos.append(faces)
    assert choose_faces(photos, LEAST) == places


def test_where_no_face_fits_none_is_chosen() -> None:
    rng = np.random.default_rng(0)
    strangers = [np.stack([person(rng), person(rng)]) for _ in range(3)]
    assert choose_faces(strangers, LEAST) == [None] * 3
    own = person(rng)[None]
    assert choose_faces([own, strangers[0], own], LEAST) == [1, None, 1]


def test_a_face_that_just_reaches_the_least_score_is_chosen() -> None:
    own, other = np.eye(2, dtype=np.float32)
    photos = [own[None], np.stack([other, np.float32([0.8, 0.6])])]
    assert choose_faces(photos, 0.8 - 1e-6) == [1, 2]
    assert choose_faces(photos, 0.8 + 1e-6) == [1, None]
    pairs = [np.stack([own, other]), np.stack([np.float32([0.5, -0.8]), np.float32([0.8, 0.6])])]
    assert choose_faces(pairs, 0.5) == [1, 2]  # .8 is the most, and .9 is both's with their mean
    many = [own[None]] * 10 + [other[None]] * 30 + photos[1:]
    assert choose_faces(many, 0.8 - 1e-6)[-1] == 2  # compared with the first ten


def test_of_copies_the_most_prominent_face_is_taken() -> None:
    faces = unit(np.random.default_rng(0).normal(size=(4, 128)))
    assert choose_faces([faces, faces.copy()], LEAST) == [1, 1]


@pytest.fixture(scope="module")
def composed(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six people; the first photo of each shows another person, too, larger and at the right."""
    root = tmp_path_factory.mktemp("composed")
    people = sorted(faces.iterdir())[:12]
    for own, other in zip(people[:6], people[6:], strict=True):
        (root / own.name).mkdir()
        for number, photo in enumerate(sorted(own.iterdir())[:4]):
            picture = paste(canvas(700, 400), photo, Place(150, 200, 220))
            if number == 0:
                stranger = sorted(other.iterdir())[0]
                picture = paste(picture, stranger, Place(480, 200, 390))
            picture.save(root / own.name / f"{number}.png", compress_level=1)
    return root


def test_every_command_uses_the_face_that_fits(
    composed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = FaceIndex.scan(composed)
    subjects = subject_faces(index, range(len(index)))
    chosen = subjects.numbers
    assert set(chosen.values()) == {2}
    assert set(chosen) <= set(index.first[:-1].tolist())
    assert len(chosen) >= 4  # the included model confuses some drawn people
    for photo in composed.glob("*/[01].png"):  # two of each person are enough
        (tmp_path / "two" / photo.parent.name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "two" / photo.parent.name / photo.name).symlink_to(photo)
    two = subject_faces(FaceIndex.scan(tmp_path / "two"), range(12))
    assert len(two.numbers) >= 3
    assert set(two.numbers.values()) == {2}
    (tmp_path / "one" / photo.parent.name).mkdir(parents=True)
    (tmp_path / "one" / photo.parent.name / "0.png").symlink_to(photo.parent / "0.png")
    lonely = subject_faces(FaceIndex.scan(tmp_path / "one"), [0])
    assert (lonely.numbers, lonely.unclear) == ({}, [])  # there is no other photo to compare with
    config = TrainConfig().resolve()
    for fit, expected in ((True, len(chosen)), (False, 0)):
        lines: list[str] = []
        with showing(log=lines.append):
            _, plan = usable_photos(index, config, fit_faces=fit)
        assert len(lines) == fit
        assert plan.to_crop is not None
        own = plan.to_crop[index.first[:-1]] @ (150, 200, 1)  # of the face on the left
        assert int((np.abs(own - 75).max(axis=1) < 75).sum()) == expected
    (measured,) = evaluate("default", composed).measurements
    assert measured.summary.about.other_faces == len(chosen)
    assert measured.faces == {index.name(image): face for image, face in chosen.items()}
    findings = {one.kind: one.paths for one in check_dataset(composed).findings}
    assert findings["other_face"] == tuple(index.name(image) for image in sorted(chosen))
    verifier = Verifier.load()
    monkeypatch.delenv(NO_PHOTO_CACHE, raising=False)
    monkeypatch.setenv(PHOTO_CACHE, str(tmp_path / "photos.db"))
    with Gallery(tmp_path / "known.gallery", verifier, write=True) as gallery:
        enrolment = gallery.add_folder(composed, any_quality=True)
        known = gallery.vectors()
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in index.paths]
    kept = PhotoCache(tmp_path / "photos.db")  # would outlive the gallery's entry
    assert [digest for digest in digests if kept.record(digest, aligned=True)] == []
    assert enrolment.enrolled == len(index)
    for row in verifier.embed([subjects.face_of(index, image) for image in chosen]):
        assert known.best(row).max() > 0.999


def test_where_every_photo_has_one_face_no_network_is_opened(faces: Path) -> None:
    index = FaceIndex.scan(faces)
    assert subject_faces(index, range(8)) is MOST_PROMINENT


def test_photos_with_several_faces_are_compared_with_ten_others_at_most(
    make_bundle: Callable[..., Bundle], tmp_path: Path
) -> None:
    opened: list[str] = []

    def content(path: Path) -> bytes:
        opened.append(path.name)
        return path.read_bytes()

    noise_photos(tmp_path / "photos" / "Ann", 14, (40, 32))
    index = FaceIndex.scan(tmp_path / "photos")
    verifier = Verifier.load(make_bundle("embedding").folder)
    reader = replace(verifier.reader(keep=False), cache=None, open=content)
    faces = np.ones(len(index), np.int64)
    faces[[2, 3]] = 2
    people: list[tuple[int, ...]] = []
    with showing(progress=lambda _: lambda *counts: people.append(counts)):
        chosen = choose_subjects(reader, index, faces, LEAST)
    assert people == [(1, 1)]
    assert (chosen.numbers, chosen.unclear) == ({}, [])  # each shows one, as the reader sees it
    names = [index.path(image).name for image in range(len(index))]
    assert opened == [*names[2:4], *names[:2], *names[4:12]]


def test_listed_pairs_are_of_the_most_prominent_faces(composed: Path, tmp_path: Path) -> None:
    names = [path.relative_to(composed).as_posix() for path in sorted(composed.glob("*/*"))]
    rows = [f"{names[0]},{name},{int(name[:11] == names[0][:11])}" for name in names[1:]]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["left,right,genuine", *rows]))
    assert evaluate("default", composed, pairs=pairs).summary.about.other_faces == 0
