"""`facepairs gallery` from end to end, on drawn people and the included model."""

import json
import os
import shutil
import subprocess

import pytest
from processes.command_line import facepairs, in_process
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle

from facepairs.data.synth.folder import write_synthetic_faces

PEOPLE = 6


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Six people with four photos each: three to enrol, one to ask for."""
    root = tmp_path_factory.mktemp("drawn")
    write_synthetic_faces(root / "all", people=PEOPLE, images=4, seed=3)
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
    assert done.stdout.splitlines()[0] == "enrolled       3 photos"
    assert done.stdout.splitlines()[-1] == "gallery        1 person, 3 photos"
    photo = drawn / "asked" / f"{names(drawn)[0]}_0004.jpg"
    done = gallery("identify", place, photo, check=0)
    assert done.stdout.startswith("person     Ann\nerrors     at most ")
    assert "pairs: LFW" in done.stdout
    assert "(by the gallery's size)" in done.stdout
    done = gallery("verify-as", place, "Ann", photo, check=0)
    assert done.stdout.startswith("verdict        match\n")
    assert "expected among 3 comparisons" in done.stdout
    assert gallery("list", place, check=0).stdout.splitlines()[1].startswith("Ann   3       20")
    assert gallery("remove", place, "Ann", check=0).stdout == "removed  Ann, 3 photos\n"
    assert gallery("list", place, check=0).stdout.splitlines() == ["name  photos  added  forgotten"]
    assert "holds nobody; add people" in gallery("identify", place, photo, check=2).stderr


def test_a_folder_is_enrolled_once(drawn, place):
    done = gallery("add", place, drawn / "all", "--any-quality", "--json", check=0)
    counts = json.loads(done.stdout)
    assert (counts["enrolled"], counts["known"], counts["refused"]) == (0, 3 * PEOPLE, [])
    assert (counts["people"], counts["photos"], counts["schema"]) == (PEOPLE, 3 * PEOPLE, 2)


def test_identify_prints_json_and_exit_codes(drawn, place):
    photo = drawn / "asked" / f"{names(drawn)[2]}_0004.jpg"
    words = ("identify", place, photo, "--json", "--threshold")
    found = json.loads(gallery(*words, -1, check=0).stdout)
    assert found["known"] is True
    assert found["name"] == found["candidates"][0]["name"]
    assert len(found["candidates"]) == 5
    assert found["face"]["box"]
    unknown = json.loads(gallery(*words, 1, check=1).stdout)
    assert (unknown["known"], unknown["name"]) == (False, None)
    found = json.loads(gallery("identify", place, photo, "--max-fpir", 0.5, "--json").stdout)
    assert found["max_fpir"] == 0.5
    assert 0 < found["fpir"]["value"] <= min(0.5, found["fpir"]["interval"][1])
    assert found["impostor_pairs"] > 80_000_000
    assert "LFW" in found["operating_point"]["errors"]["measured_on"]


def test_verify_as_has_verdicts(drawn, place):
    photo = drawn / "asked" / f"{names(drawn)[1]}_0004.jpg"
    words = ("verify-as", place, names(drawn)[1], photo)
    assert "verdict        no match" in gallery(*words, "--threshold", 1, check=1).stdout
    values = json.loads(gallery(*words, "--threshold", -1, "--json", check=0).stdout)
    assert (values["same"], values["comparisons"], values["name"]) == (True, 3, words[2])
    assert values["face"]["faces"] == 1
    enrolled = min((drawn / "all" / words[2]).iterdir())
    warning = f"warning: this very photo is enrolled as {words[2]}: that it matches says nothing"
    assert warning in gallery("verify-as", place, words[2], enrolled, check=0).stderr.splitlines()
    other = ("verify-as", place, names(drawn)[2], enrolled, "--json", "--threshold", -1)
    done = gallery(*other, check=0)
    assert f"enrolled as {words[2]}, not as {names(drawn)[2]}\n" in done.stderr
    assert json.loads(done.stdout)["same_photo"] == words[2]
    assert "nobody is called Zoe" in gallery("verify-as", place, "Zoe", photo, check=2).stderr


def test_too_few_pairs_are_refused_in_one_line(drawn, place):
    photo = next((drawn / "asked").iterdir())
    done = gallery("identify", place, photo, "--max-fpir", 1e-8, check=2)
    assert done.stderr.count("\n") == 1
    done = gallery("identify", place, photo, "--max-fpir", 1e-8, "--json", check=2)
    assert json.loads(done.stdout)["error"]["kind"] == "not_enough"


def test_no_face_and_no_verdict(drawn, place, tmp_path):
    from PIL import Image

    Image.new("RGB", (300, 300), (90, 90, 90)).save(tmp_path / "gray.png")
    assert "no face found" in gallery("identify", place, tmp_path / "gray.png", check=2).stderr
    done = gallery("add", place, "--name", "Gray", tmp_path / "gray.png", check=1)
    assert f"not enrolled: {tmp_path}/gray.png: no face found" in done.stderr
    face = next((drawn / "all").glob("*/*.jpg"))
    with Image.open(face) as image:
        small = image.resize((48, 48))
    canvas = Image.new("RGB", (300, 300), (90, 90, 90))
    canvas.paste(small, (120, 120))
    canvas.save(tmp_path / "small.png")
    done = gallery("identify", place, tmp_path / "small.png")
    assert done.returncode in (2, 3)  # 2 if the detector misses it
    bundle = tiny_bundle(tmp_path / "b", "embedding", alignment="landmarks-5").folder
    other = ("--bundle", bundle)
    gallery("add", tmp_path / "g", "--name", "Ann", face, "--any-quality", *other, check=0)
    done = gallery("identify", tmp_path / "g", face, *other, check=3)
    assert done.stdout.startswith("person     none: no threshold\n")
    assert "this very photo is enrolled as Ann" in done.stderr


def test_another_model_names_the_way_out(place, drawn, tmp_path):
    bundle = tiny_bundle(tmp_path / "b", alignment="landmarks-5", **AMONG_LOOKALIKES).folder
    photo = next((drawn / "asked").iterdir())
    for words in (("identify", place, photo), ("add", place, "--name", "Ann", photo)):
        done = gallery(*words, "--bundle", bundle, check=2)
        assert "made with another model" in done.stderr
        assert "facepairs gallery add NEW_GALLERY photos/ (--bundle)" in done.stderr


def test_visitors_are_forgotten(drawn, place):
    photo = next((drawn / "asked").iterdir())
    done = gallery(
        "add", place, "--name", "Guest", photo, "--any-quality", "--forget-after", 3, check=0
    )
    rows = {row.split()[0]: row.split()[-1] for row in gallery("list", place).stdout.splitlines()}
    assert rows.pop("Guest").startswith("20")
    assert set(rows.values()) == {"forgotten", "never"}
    people = json.loads(gallery("list", place, "--json", check=0).stdout)["people"]
    assert [one["name"] for one in people if one["expires"]] == ["Guest"]
    assert (
        "forget-after is -1"
        in gallery("add", place, "--name", "Guest", photo, "--forget-after", -1, check=2).stderr
    )
    assert "enrolled       1 photo\n" in done.stdout


def test_damage_is_one_line(place, tmp_path):
    data = place.read_bytes()
    place.write_bytes(data[: len(data) // 2])
    for words in (("list", place), ("remove", place, "x")):
        done = gallery(*words, check=2)
        assert done.stderr.startswith(f"facepairs: error: {place}: damaged, or not a gallery")
        assert done.stderr.count("\n") == 1
    for words in (
        ("list", tmp_path / "x"),
        ("remove", tmp_path / "x", "y"),
    ):
        assert f"{tmp_path}/x: no such gallery" in gallery(*words, check=2).stderr
        assert not (tmp_path / "x").exists()


def test_the_list_says_what_is_wrong(place):
    place.chmod(0o600)
    listed = json.loads(gallery("list", place, "--json", check=0).stdout)
    assert (listed["problems"], len(listed["people"])) == ([], PEOPLE)
    if os.name == "posix":
        place.chmod(0o644)
        listed = json.loads(gallery("list", place, "--json", check=1).stdout)
        assert (len(listed["problems"]), len(listed["people"])) == (1, PEOPLE)


def test_photos_need_a_name_and_a_folder_has_names(drawn, tmp_path):
    person = min((drawn / "all").iterdir())
    one, other = sorted(person.iterdir())[:2]
    for words in ((one,), (one, other), (drawn / "all", drawn / "asked")):
        done = gallery("add", tmp_path / "g", *words, "--json", check=2)
        assert json.loads(done.stdout)["error"]["kind"] == "usage"
        assert not (tmp_path / "g").exists()


def test_quiet_leaves_the_result_alone(drawn, place):
    photo = next((drawn / "asked").iterdir())
    done = gallery("identify", place, photo, "--quiet")
    assert done.stderr == ""
    assert done.stdout.startswith("person     ")


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_an_interrupted_folder_goes_on(drawn, tmp_path):
    place, folder = tmp_path / "g", drawn / "all"
    words = ("gallery", "add", place, folder, "--any-quality", "--json")
    for wait_s in (0.7, 1.4):
        try:
            facepairs(*words, timeout=wait_s)
        except subprocess.TimeoutExpired:  # it was killed
            if place.exists() and place.stat().st_size > 4096:
                gallery("list", place, check=0)
    counts = json.loads(facepairs(*words, check=0).stdout)
    assert counts["enrolled"] + counts["known"] == counts["photos"] == 3 * PEOPLE
    assert len(gallery("list", place, check=0).stdout.splitlines()) == 1 + PEOPLE
