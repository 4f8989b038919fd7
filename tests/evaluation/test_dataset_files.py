"""What a check says of files: every flaw becomes one finding of the right severity."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest
from drawn.photos import exif_of, jpeg, put

from facepairs.data.findings import DatasetReport, Finding, list_first
from facepairs.data.index import FaceIndex
from facepairs.evaluation.dataset_check import check_dataset
from facepairs.support.console import showing
from facepairs.support.results import SCHEMA

needs_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX files and permissions")


def check_files(root: Path) -> DatasetReport:
    """Return what a check says about the files of a folder, whose photos show no faces."""
    report, index = check_dataset(root), FaceIndex.scan(root)
    faceless = [finding for finding in report.findings if finding.kind == "no_face"]
    images = {index.find(path) for finding in faceless for path in finding.paths}
    findings = tuple(finding for finding in report.findings if finding not in faceless)
    return msgspec.structs.replace(
        report,
        ok=all(finding.severity != "error" for finding in findings),
        findings=findings,
        bad_images=tuple(image for image in report.bad_images if image not in images),
    )


def folder(root: Path) -> Path:
    """Write five good photos of three people, one with a name that is not ASCII."""
    for at, name in enumerate(("Ann/1.jpg", "Ann/2.jpg", "Bo/1.jpg", "Zoë/1.jpg", "Zoë/2.jpg")):
        put(root, name, jpeg(at))
    return root


def only(report: DatasetReport, kind: str) -> Finding:
    found = [finding for finding in report.findings if finding.kind == kind]
    assert len(found) == 1, report.findings
    return found[0]


def test_a_good_folder_has_no_findings(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    with showing(progress=lambda phase: lambda *done: calls.append((phase, *done))):
        report = check_files(folder(tmp_path))
    assert report.ok
    assert report.findings == ()
    assert report.bad_images == ()
    counts = report.counts
    assert (counts.people, counts.images, counts.people_with_one_image) == (3, 5, 1)
    assert (counts.images_per_person_min, counts.images_per_person_max) == (1, 2)
    assert counts.images_per_person_median == 2.0
    assert counts.genuine_pairs == 2
    assert counts.sizes_px == ((80, 80),) * 3
    total = sum(path.stat().st_size for path in tmp_path.rglob("*.jpg"))
    assert counts.megabytes == pytest.approx(total / 1e6, abs=0.001)
    assert report.fingerprint == check_files(tmp_path).fingerprint
    first = next(tmp_path.rglob("*.jpg"))
    first.write_bytes(first.read_bytes()[:-1] + b"\0")
    assert report.fingerprint != check_files(tmp_path).fingerprint
    assert calls == [("checking photos", 5, 5)]
    assert json.loads(json.dumps(report.to_json()))["schema"] == SCHEMA


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "zero_byte"),
        (b"<html>404</html>", "not_image"),
        (jpeg(0)[:-200], "unreadable"),
    ],
)
def test_an_unreadable_file_is_an_error_that_names_it(
    tmp_path: Path, data: bytes, kind: str
) -> None:
    put(folder(tmp_path), "Bo/2.jpg", data)
    report = check_files(tmp_path)
    assert not report.ok
    finding = only(report, kind)
    assert (finding.severity, finding.paths) == ("error", ("Bo/2.jpg",))
    assert report.bad_images == (FaceIndex.scan(tmp_path).find("Bo/2.jpg"),)


def test_the_same_photo_under_two_names_is_an_error(tmp_path: Path) -> None:
    folder(tmp_path)
    shutil.copy(tmp_path / "Ann/1.jpg", tmp_path / "Bo/copy.jpg")
    report = check_files(tmp_path)
    assert not report.ok
    finding = only(report, "same_face_two_people")
    assert finding.paths == ("Ann/1.jpg", "Bo/copy.jpg")
    assert report.bad_images == ()


@needs_posix
def test_duplicates_of_one_person_include_links(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "Ann/3.jpg").symlink_to(tmp_path / "Ann/1.jpg")
    (tmp_path / "Ann/4.jpg").hardlink_to(tmp_path / "Ann/1.jpg")
    report = check_files(tmp_path)
    finding = only(report, "duplicate")
    assert finding.severity == "warning"
    assert finding.paths == ("Ann/1.jpg", "Ann/3.jpg", "Ann/4.jpg")
    assert report.ok


def test_a_finding_names_three_photos_and_counts_the_others() -> None:
    assert [list_first("abcde"[:names]) for names in (3, 5)] == ["a, b, c", "a, b, c and 2 more"]


def test_everything_the_index_leaves_out_is_a_finding(tmp_path: Path) -> None:
    folder(tmp_path)
    put(tmp_path, "notes.txt", b"x")
    put(tmp_path, "lost.jpg", jpeg(5))
    put(tmp_path, "Ann/list.csv", b"x")
    put(tmp_path, "Ann/3.jp2", b"x")
    put(tmp_path, "Ann/deeper/3.jpg", jpeg(6))
    (tmp_path / "Nobody").mkdir()
    report = check_files(tmp_path)
    findings = {(f.severity, f.kind, f.paths) for f in report.findings}
    assert findings == {
        ("note", "not_image", ("notes.txt",)),
        ("warning", "stray_photo", ("lost.jpg",)),
        ("note", "not_image", ("Ann/list.csv",)),
        ("error", "unsupported", ("Ann/3.jp2",)),
        ("warning", "nested_folder", ("Ann/deeper",)),
        ("warning", "empty_person", ("Nobody",)),
    }
    assert check_files(tmp_path).findings == report.findings  # in the same order
    severities = [finding.severity for finding in report.findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert report.bad_images == ()
    assert report.counts.images == 5


def test_sizes_are_those_of_upright_photos_the_smallest_commonest_and_largest(
    tmp_path: Path,
) -> None:
    for at, size in enumerate([(90, 60), (64, 64), (64, 64), (50, 100)]):
        put(tmp_path, f"Bo/{at}.jpg", jpeg(at, size))
    put(tmp_path, "Bo/turned.jpg", jpeg(9, (110, 80), exif=exif_of(6)))
    report = check_files(tmp_path)
    assert report.findings == ()
    assert report.counts.sizes_px == ((64, 64), (64, 64), (80, 110))


@needs_posix
@pytest.mark.timeout(20)
def test_links_to_nothing_and_pipes_are_errors_and_are_not_opened(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "Ann/self").symlink_to(tmp_path / "Ann/self")
    (tmp_path / "Ann/gone.jpg").symlink_to(tmp_path / "Ann/nowhere.jpg")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "Ann/pipe.jpg")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "Bo/pipe.jpg").symlink_to(tmp_path / "pipe")
    findings = check_files(tmp_path).findings
    assert {(f.severity, f.kind) for f in findings} == {("error", "unreadable")}
    assert {path for f in findings for path in f.paths} == {
        "Ann/self", "Ann/gone.jpg", "gone", "Ann/pipe.jpg", "pipe", "Bo/pipe.jpg",
    }  # fmt: skip


@needs_posix
def test_missing_read_permission_is_an_error() -> None:
    user = os.geteuid()
    # Root reads everything, so it becomes `nobody`, who cannot enter pytest's temporary folder.
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as place:
        root = folder(Path(place))
        root.chmod(0o755)
        put(root, "Shut/1.jpg", jpeg(7))
        assert check_files(root).ok
        (root / "Ann/1.jpg").chmod(0)
        (root / "Shut").chmod(0)
        os.seteuid(user or 65534)
        try:
            report = check_files(root)
        finally:
            os.seteuid(user)
            (root / "Shut").chmod(0o755)
    found = {(f.severity, f.kind, f.paths) for f in report.findings}
    assert found >= {
        ("error", "no_permission", ("Ann/1.jpg",)),
        ("error", "unreadable", ("Shut",)),
    }
    assert report.bad_images == (0,)
