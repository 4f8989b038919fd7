"""Whatever takes long counts its steps: from few to all of them, never backwards."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest
from storage.archives import tree, zipped

import facepairs
from facepairs.data.importing import import_photos
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.support.console import showing
from facepairs.verification.ranking import rank_folder
from facepairs.verification.verifier import Verifier

Phases = dict[str, list[tuple[int, int]]]


@pytest.fixture
def phases():
    """The calls of each phase, recorded while a test runs."""
    found: Phases = defaultdict(list)

    def progress(phase):
        calls = found[phase]  # also of a phase that never counts
        return lambda *counts: calls.append(counts)

    with showing(progress=progress):
        yield found


def check(phases: Phases, totals: dict[str, int]) -> None:
    """Check that these phases, and no others, counted up to these totals."""
    assert set(phases) == set(totals)
    for phase, calls in phases.items():
        done, of = zip(*calls, strict=True)
        assert done == tuple(sorted(set(done)))
        assert set(of) == {totals[phase]}
        assert done[-1] == totals[phase], phase
    phases.clear()


def test_importing_counts_photos_and_unpacking_bytes(few_faces, tmp_path, phases):
    import_photos(few_faces, tmp_path / "folder")
    check(phases, {"importing photos": 32})
    with open(tmp_path / "table.csv", "w", newline="") as file:
        rows = [(path, path.parent.name) for path in sorted(few_faces.glob("*/*.jpg"))]
        csv.writer(file).writerows([("path", "person"), *rows])
    import_photos(tmp_path / "table.csv", tmp_path / "table")
    check(phases, {"importing photos": 32})
    archive = tmp_path / "photos.zip"
    archive.write_bytes(zipped(tree(few_faces)))
    import_photos(archive, tmp_path / "archive")
    unpacked = phases.pop("unpacking")
    assert 0 < unpacked[0][0] < unpacked[-1][0] == unpacked[-1][1]
    check(phases, {"importing photos": 32})


def test_enrolling_and_embedding_count_photos(few_faces, tmp_path, phases):
    with facepairs.Gallery(tmp_path / "g", write=True) as gallery:
        gallery.add_folder(few_faces, any_quality=True)
    check(phases, {"enrolling photos": 32})
    photos: list[Path] = sorted(few_faces.glob("*/*.jpg"))[:3]
    Verifier.load().embed(photos)
    check(phases, {"reading photos": 3})


def test_grouping_counts_photos_faces_and_what_it_writes(few_faces, tmp_path, phases):
    groups = facepairs.group(few_faces, out=tmp_path / "people")
    faces = len(groups.person)
    assert faces == 32
    done, pictures = phases.pop("writing the page")[-1]
    assert 0 < done == pictures <= faces
    apart = phases.pop("cutting out faces")
    assert apart == []  # one face on each photo
    check(phases, {"finding faces and embedding": 32, "grouping": faces})
    facepairs.group(few_faces, out=tmp_path / "people")
    assert phases.pop("writing the page") == []  # the pictures are those of the earlier page
    files = sum(path.suffix == ".jpg" for path in (tmp_path / "people").rglob("*"))
    assert phases["reading the folder of people"][-1] == (files, files)


def test_drawing_and_searching_count_photos(few_faces, tmp_path, phases):
    write_synthetic_faces(tmp_path / "faces", people=3, photos=2, seed=1)
    check(phases, {"drawing faces": 6})
    photo = min(few_faces.glob("*/*.jpg"))
    rank_folder(Verifier.load(threads=1), photo, few_faces)
    check(phases, {"searching photos": 31})
