"""`facepairs gallery` from end to end, on drawn people and the included model."""

import json
import os
import re
import shutil

import msgspec
import pytest
from PIL import Image
from processes.command_line import in_process
from tiny.bundles import error_table, tiny_bundle

from facepairs.cli.shared.output import percent
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.support.results import SCHEMA

PEOPLE = 6


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Six people with four photos each: three to enrol, one to ask for."""
    root = tmp_path_factory.mktemp("drawn")
    write_synthetic_faces(root / "all", people=PEOPLE, photos=4, seed=3)
    for photo in sorted((root / "all").glob("*/*_0004.jpg")):
        target = root / "asked" / photo.name
        target.parent.mkdir(exist_ok=True)
        photo.rename(target)
    return root


@pytest.fixture(scope="module")
def enrolled(drawn):
    path = drawn / "known.gallery"
    in_process("gallery", "add", path, drawn / "all", "--any-quality", check=0)
    return path


@pytest.fixture
def place(enrolled, tmp_path):
    return shutil.copy(enrolled, tmp_path / "copy.gallery")


def gallery(*words, **options):
    return in_process("gallery", *words, **options)


def names(drawn):
    return sorted(path.name for path in (drawn / "all").iterdir())


def test_people_are_enrolled_identified_and_removed(drawn, tmp_path):
    place = tmp_path / "known.gallery"
    ann = sorted((drawn / "all" / names(drawn)[0]).iterdir())
    done = gallery("add", place, "--name", "Ann", *ann, "--any-quality", check=0)
    assert done.stdout.splitlines()[-1] == "gallery        1 person, 3 photos"
    photo = drawn / "asked" / f"{names(drawn)[0]}_0004.jpg"
    done = gallery("identify", place, photo, check=0)
    assert done.stdout.startswith("person     Ann\nerrors     at most ")
    *_, blank, _, last = done.stdout.splitlines()
    rank, score, match, name = last.split()
    assert blank == ""
    assert (rank, match, name) == ("1", "yes", "Ann")
    assert score == f"{float(score):.4f}"
    (found,) = json.loads(gallery("identify", place, photo, "--json").stdout)["faces"]
    hints = [hint["text"] for hint in found["face"]["hints"]]
    assert done.stderr.splitlines() == [f"warning: {photo}: {text}" for text in hints]
    assert gallery("identify", place, photo, "--quiet").stderr == ""
    assert gallery("list", place, check=0).stdout.splitlines()[1].startswith("Ann   3       20")
    assert gallery("remove", place, "Ann", check=0).stdout == "removed  Ann, 3 photos\n"
    assert gallery("list", place, check=0).stdout.count("\n") == 1
    assert "is empty" in gallery("identify", place, photo, check=2).stderr


def test_a_folder_is_enrolled_once(drawn, place):
    done = gallery("add", place, drawn / "all", "--any-quality", "--json", check=0)
    counts = json.loads(done.stdout)
    assert (counts["enrolled"], counts["known"], counts["refused"]) == (0, 3 * PEOPLE, [])
    assert (counts["people"], counts["photos"], counts["schema"]) == (PEOPLE, 3 * PEOPLE, SCHEMA)


def test_identify_prints_json_and_exit_codes(drawn, place):
    photo = drawn / "asked" / f"{names(drawn)[2]}_0004.jpg"
    words = ("identify", place, photo, "--json", "--threshold")
    (found,) = json.loads(gallery(*words, -1, check=0).stdout)["faces"]
    assert (found["face"]["number"], found["known"]) == (1, True)
    assert found["name"] == found["candidates"][0]["name"]
    assert len(found["candidates"]) == 5
    assert found["face"]["box"]
    (default,) = json.loads(gallery("identify", place, photo, "--json").stdout)["faces"]
    assert default["max_fpir"] == 0.01
    (unknown,) = json.loads(gallery(*words, 1, check=1).stdout)["faces"]
    assert (unknown["known"], unknown["name"]) == (False, None)
    done = gallery("identify", place, photo, "--max-fpir", 0.5, "--json")
    (found,) = json.loads(done.stdout)["faces"]
    assert found["max_fpir"] == 0.5
    assert 0 < found["fpir"]["value"] <= min(0.5, found["fpir"]["interval"][1])
    assert found["impostor_pairs"] > 80_000_000
    assert "LFW" in found["operating_point"]["errors"]["measured_on"]


def test_every_face_of_a_photo_is_identified(drawn, tmp_path):
    place, group = tmp_path / "known.gallery", tmp_path / "group.png"
    people = [sorted((drawn / "all" / name).iterdir()) for name in names(drawn)[:2]]
    in_process("gallery", "add", place, "--name", "Ann", *people[0], "--any-quality", check=0)
    with Image.open(people[1][0]) as large, Image.open(people[0][0]) as small:
        both = Image.new("RGB", (2 * large.width, large.height))
        both.paste(large, (0, 0))
        both.paste(small.resize((small.width * 2 // 3, small.height * 2 // 3)), (large.width, 0))
    both.save(group)
    words = ("identify", place, group, "--threshold")
    values = json.loads(gallery(*words, 0.99, "--json").stdout)
    scores = [face["candidates"][0]["score"] for face in values["faces"]]
    threshold = sum(scores) / 2
    assert scores[0] < threshold < scores[1]
    done = gallery(*words, threshold, check=0)
    stranger, ann = (line.split() for line in done.stdout.splitlines()[-2:])
    assert (stranger[0], stranger[-1], ann[0], ann[-1]) == ("1", "unknown", "2", "Ann")
    assert "photo       2 faces" in done.stdout.splitlines()
    values = json.loads(gallery(*words, threshold, "--json", check=0).stdout)
    assert ("\nbackground " in done.stdout) == (values["faces"][0]["fpir"] is not None)
    assert done.stderr.splitlines() == [
        f"warning: {group}, face {one['face']['number']}: {hint['text']}"
        for one in values["faces"]
        for hint in one["face"]["hints"]
    ]
    assert "" in done.stdout.splitlines()  # before the table
    left, top, side = values["faces"][0]["face"]["box"]
    assert stranger[1:4] == [f"{left},{top}", f"{side}x{side}", f"{scores[0]:.4f}"]
    assert "\nbackground " in gallery(*words[:3], "--max-fpir", 0.5).stdout
    assert [one["name"] for one in values["faces"]] == [None, "Ann"]
    assert [one["face"]["number"] for one in values["faces"]] == [1, 2]
    assert {one["photos"] for one in values["faces"]} == {3}
    gallery(*words, 1, check=1)


def test_no_face_and_no_verdict(drawn, place, tmp_path):
    gray, face = tmp_path / "gray.png", next((drawn / "all").glob("*/*.jpg"))
    Image.new("RGB", (300, 300), (90, 90, 90)).save(gray)
    assert json.loads(gallery("identify", place, gray, "--json", check=2).stdout)["error"]
    done = gallery("add", place, "--name", "Gray", gray, check=1)
    assert f"not enrolled: {gray}" in done.stderr
    bundle = tiny_bundle(tmp_path / "b", "embedding", alignment="landmarks-5").folder
    other = ("--bundle", bundle)
    small = tmp_path / "small.png"
    Image.open(face).resize((80, 80)).save(small)
    done = gallery("add", tmp_path / "g", "--name", "Ann", small, *other, check=1)
    assert "--any-quality" in done.stderr
    gallery("add", tmp_path / "g", "--name", "Ann", face, "--any-quality", *other, check=0)
    done = gallery("identify", tmp_path / "g", face, *other, check=3)
    assert done.stdout.startswith("person     none")


def test_visitors_are_forgotten(drawn, place):
    guest = ("add", place, "--name", "Guest", next((drawn / "asked").iterdir()))
    gallery(*guest, "--any-quality", "--forget-after", 3, check=0)
    listed = json.loads(gallery("list", place, "--json", check=0).stdout)
    assert (listed["gallery"], listed["problems"]) == (str(place), [])
    assert len(listed["model"]["sha256"]) == 64
    people = listed["people"]
    assert [one["name"] for one in people if one["expires"]] == ["Guest"]
    header, *rows = [line.split() for line in gallery("list", place).stdout.splitlines()]
    assert header == ["name", "photos", "added", "forgotten"]
    assert rows == [
        [
            one["name"],
            str(one["photos"]),
            one["added"][:10],
            (one["expires"] or "never").replace("Z", "+00:00"),
        ]
        for one in people
    ]
    gallery(*guest, "--forget-after", -1, check=2)


def test_people_without_a_name_are_left_out_and_renamed_folders_are_the_same_people(
    few_faces, tmp_path
):
    people, known = tmp_path / "people", tmp_path / "known.gallery"
    for number, folder in enumerate(sorted(few_faces.iterdir())[:3]):
        for photo in sorted(folder.iterdir())[:2]:
            target = people / f"person_{number:04}" / f"{number}{photo.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(photo, target)
    (people / "person_0000").rename(people / "Ann")
    words = ("gallery", "add", known, people, "--any-quality", "--json")
    named = json.loads(in_process(*words, check=0).stdout)
    assert (named["people"], named["enrolled"], named["unnamed"]) == (1, 2, 2)
    everybody = json.loads(in_process(*words, "--unnamed", check=0).stdout)
    assert (everybody["people"], everybody["enrolled"], everybody["unnamed"]) == (3, 4, 0)
    (people / "person_0001").rename(people / "Bea")
    moved = next((people / "person_0002").iterdir())
    moved.rename(people / "Ann" / moved.name)  # the rest of person_0002 is still there
    renamed = json.loads(in_process(*words, check=1).stdout)
    assert renamed["renamed"] == {"person_0001": "Bea"}
    assert (renamed["known"], renamed["unnamed"]) == (4, 1)
    assert [one["photo"] for one in renamed["refused"]] == [str(people / "Ann" / moved.name)]
    listed = json.loads(in_process("gallery", "list", known, "--json", check=0).stdout)
    assert [(one["name"], one["photos"]) for one in listed["people"]] == [
        *(("Ann", 2), ("Bea", 2), ("person_0002", 2)),
    ]


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of files")
def test_a_gallery_that_others_may_read_is_told_with_its_people(few_faces, tmp_path):
    known, photo = tmp_path / "known.gallery", next(few_faces.glob("*/*.jpg"))
    in_process("gallery", "add", known, "--name", "Ann", photo, "--any-quality", check=0)
    listed = in_process("gallery", "list", known, check=0)
    assert listed.stderr == ""
    known.chmod(0o644)
    done = in_process("gallery", "list", known, check=1)
    assert done.stdout == listed.stdout
    assert done.stderr.startswith(f"error: {known}: ")
    values = json.loads(in_process("gallery", "list", known, "--json", check=1).stdout)
    assert len(values["problems"]) == 1
    assert [(one["name"], one["photos"]) for one in values["people"]] == [("Ann", 1)]


def test_a_person_is_renamed_and_may_join_another(few_faces, tmp_path):
    known = tmp_path / "known.gallery"
    photos = [min(folder.iterdir()) for folder in sorted(few_faces.iterdir())[:2]]
    for name, photo in zip(("Ann", "Bo"), photos, strict=True):
        in_process("gallery", "add", known, "--name", name, photo, "--any-quality", check=0)
    done = in_process("gallery", "rename", known, "Ann", "Anna", check=0)
    assert done.stdout == "renamed  Ann: Anna, 1 photo\n"
    done = json.loads(
        in_process("gallery", "rename", known, "Bo", "Anna", "--json", check=0).stdout
    )
    assert (done["former"], done["name"], done["photos"]) == ("Bo", "Anna", 1)
    found = in_process("gallery", "identify", known, photos[1], "--threshold", "0.99", "--json")
    assert json.loads(found.stdout)["faces"][0]["name"] == "Anna"
    in_process("gallery", "rename", known, "Bo", "Anna", check=2)
    in_process("gallery", "rename", known, "Anna", " ", check=2)
    assert b"Bo" not in known.read_bytes()


def test_a_gallery_is_migrated_and_its_models_compared(drawn, place, tmp_path):
    few = msgspec.structs.replace(error_table(), impostor_pairs=1_000)
    other = tiny_bundle(tmp_path / "other", "embedding", errors=few).folder
    copy = shutil.copytree(drawn / "all", tmp_path / "photos")
    shutil.rmtree(copy / names(drawn)[1])
    words = ("migrate", place, tmp_path / "new", "--bundle", other, "--photos", copy)
    for wrong, message in (
        ((*words[:-1], tmp_path / "none"), "no such folder"),
        ((*words[:4], "default", *words[5:]), "of this model already"),
        ((*words[:2], place, *words[3:]), "also read"),
    ):
        assert message in gallery(*wrong, check=2).stderr
        assert not (tmp_path / "new").exists()
    done = gallery(*words, "--json", check=1)
    found = json.loads(done.stdout)
    assert found["lost"] == [names(drawn)[1]]
    assert found["without_photo"] == {names(drawn)[1]: 3}
    assert (found["enrolled"], found["people"]) == (3 * (PEOPLE - 1), PEOPLE - 1)
    errors = found["errors"]
    assert errors["genuine_pairs"] == 3 * (PEOPLE - 1)
    assert errors["fmr"] == 0.1
    done = gallery(*words, check=1)
    assert f"no photo: {names(drawn)[1]}: 3 photos\n" in done.stderr
    (low, high), gap = errors["difference"]["interval"], errors["difference"]["difference"]
    old, new = (
        f"{name} {percent(rate)} ({percent(a)} to {percent(b)})"
        for name, rate, (a, b) in zip(
            ("old", "new"), errors["fnmr"], errors["intervals"], strict=True
        )
    )
    assert done.stdout.splitlines() == [
        "enrolled        0 photos",
        f"already there   {3 * (PEOPLE - 1)}",
        "no photo found  3",
        "not enrolled    0",
        f"people lost     {names(drawn)[1]}",
        f"gallery         {PEOPLE - 1} people, {3 * (PEOPLE - 1)} photos",
        f"errors          of {3 * (PEOPLE - 1)} genuine pairs of {PEOPLE - 1} people, missed where "
        "10 % of strangers pass:",
        f"                {old}, {new}",
        f"difference      {-100 * gap:+.3g} % ({-100 * high:+.3g} to {-100 * low:+.3g})"
        + (", which may be chance" if low <= 0 <= high else ", more than chance"),
    ]
    assert (f"warning: {other} misses more" in done.stderr) == (high < 0)
    identify = ("identify", tmp_path / "new", next(copy.glob("*/*")))
    wanted = re.search(r"warning: identify .*give max FPIR (\S+) or more", done.stderr)[1]
    assert float(wanted) == 0.046  # 15 photos at an FMR of .003
    with_other = (*identify, "--bundle", other)
    assert wanted in gallery(*with_other, check=2).stderr
    assert gallery(*with_other, "--max-fpir", wanted).returncode in (0, 1)
    left_out = gallery(*identify, check=2).stderr
    assert ("use that model" in left_out, "NEW_GALLERY" in left_out) == (True, False)
    command = f"facepairs gallery migrate {place} NEW_GALLERY --bundle {other} --photos photos/"
    assert command in gallery("identify", place, *with_other[2:], check=2).stderr
