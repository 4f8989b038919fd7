"""Checking a folder: photos without a face, with several, with small ones."""

import shutil
from pathlib import Path

import pytest
from drawn.scenes import Place, canvas, paste
from golden import assert_golden

from facepairs.data.findings import DatasetReport
from facepairs.evaluation.dataset_check import check_dataset
from facepairs.support.console import showing


@pytest.fixture(scope="module")
def photos(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One photo of each kind, of one person each."""
    root = tmp_path_factory.mktemp("photos")
    first, second = sorted(faces.glob("*/*.jpg"))[0:8:4]
    middle = Place(200, 150, 220)
    pictures = {
        "Good/1.jpg": paste(canvas(400, 300), first, middle),
        "None/1.jpg": canvas(400, 300),
        "Two/1.jpg": paste(paste(canvas(600, 300), first, middle), second, Place(500, 200, 150)),
        "Small/1.jpg": paste(canvas(400, 300), first, Place(200, 150, 44)),
    }
    for name, picture in pictures.items():
        (root / name).parent.mkdir()
        picture.save(root / name, quality=95)
    return root


def found(report: DatasetReport) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {finding.kind: (finding.severity, finding.paths) for finding in report.findings}


def test_every_unusual_face_is_found_once(photos: Path) -> None:
    phases: list[str] = []
    with showing(progress=lambda phase: phases.append(phase) or (lambda *_: None)):
        report = check_dataset(photos)
    assert found(report) == {
        "no_face": ("error", ("None/1.jpg",)),
        "several_faces": ("note", ("Two/1.jpg",)),
        "small_face": ("error", ("Small/1.jpg",)),
        "labels_unchecked": ("note", ()),
    }
    told = report.to_json()
    values = {name: told[name] for name in told if name not in ("root", "fingerprint", "findings")}
    assert_golden(Path(__file__).parent / "golden" / "dataset.json", values, rel=0.02)
    assert report.bad_images == (1, 2)
    assert not report.ok
    assert phases[0] == "checking photos"


def test_a_photo_of_two_people_may_lie_in_both_folders(few_faces: Path, tmp_path: Path) -> None:
    people = sorted(few_faces.iterdir())
    ann, bob = (sorted(people[number].glob("*.jpg")) for number in (0, 5))
    for name, photos in {"Ann": ann, "Bob": bob}.items():
        (tmp_path / name).mkdir()
        for photo in photos[1:3]:
            paste(canvas(400, 300), photo, Place(200, 150, 220)).save(tmp_path / name / photo.name)
    both = paste(canvas(600, 300), ann[0], Place(150, 150, 240))
    both = paste(both, bob[0], Place(450, 150, 180))
    for name in ("Ann", "Bob"):
        both.save(tmp_path / name / "both.png")
    assert found(check_dataset(tmp_path))["shared_photo"] == (
        "note",
        ("Ann/both.png", "Bob/both.png"),
    )
    (tmp_path / "Bob" / "both.png").rename(tmp_path / "Ann" / "again.png")
    shutil.copy(sorted((tmp_path / "Ann").glob("*.jpg"))[0], tmp_path / "Bob" / "hers.jpg")
    report = check_dataset(tmp_path)
    severities = {kind: severity for kind, (severity, _) in found(report).items()}
    assert "shared_photo" not in severities
    assert (severities["duplicate"], severities["same_face_two_people"]) == ("warning", "error")
    assert not report.ok
