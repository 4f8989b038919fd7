"""Lists and folders that were made on other systems are read by every reader alike."""

import codecs
import os
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from tiny.bundles import tiny_bundle

from facepairs.bundles.embedder import read_toml
from facepairs.bundles.error_profile import operating_point
from facepairs.config import load_config
from facepairs.data.groups import read_groups
from facepairs.data.index import FaceIndex, find_file
from facepairs.data.pairs import read_pairs_csv
from facepairs.evaluation.scores import match_pairs, read_scores
from facepairs.verification.ranking import rank_folder
from facepairs.verification.score_list import score_list
from facepairs.verification.verifier import Verifier

NFC, NFD = (unicodedata.normalize(form, "Zoë") for form in ("NFC", "NFD"))


def save(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (80, 80), (len(path.name), 99, 30)).save(path)
    return path


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos") / "photos"
    for name in ("Ann/1.jpg", "Ann/2.jpg", f"{NFD}/{NFC}.jpg", f"{NFC} B/{NFD}.jpg"):
        save(root / name)
    return root


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    return Verifier.load(tiny_bundle(tmp_path_factory.mktemp("bundle") / "b").folder)


LISTS = {
    "windows": "left,right,genuine\r\nAnn\\1.jpg,.\\Ann\\2.jpg,True\r\n",
    "mark": "\ufeffleft,right,genuine\nAnn/1.jpg,Ann/2.jpg,1.0\n",
    "old mac": "left,right,genuine\rAnn/1.jpg,Ann/2.jpg,1\r",
    "capitals": " Left , RIGHT ,Genuine\nAnn/1.jpg, Ann/2.jpg, 1\n",
    "semicolons": "left;right;genuine\nAnn/1.jpg;Ann/2.jpg;1\n",
    "tabs": "left\tright\tgenuine\nAnn/1.jpg\tAnn/2.jpg\t1\n",
    "bars": "left|right|genuine\nAnn/1.jpg|Ann/2.jpg|1\n",
    "quotes": 'left;right;genuine\n"Ann/1.jpg";"Ann/2.jpg";"1"\n',
    "composed": f"left,right,genuine\n{NFC}/{NFC}.jpg,{NFC} B/{NFC}.jpg,0.0\n",
    "decomposed": f"left,right,genuine\n{NFD}/{NFD}.jpg,{NFD} B/{NFD}.jpg,False\n",
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_pairs(photos, verifier, tmp_path, name):
    path = tmp_path / "pairs.csv"
    path.write_bytes(LISTS[name].encode())
    pairs = read_pairs_csv(path, FaceIndex.scan(photos))
    assert (len(pairs), pairs.genuine.tolist()) == (1, ["composed" not in name])
    out = tmp_path / "out.csv"
    point = operating_point(verifier.model.profile)
    report = score_list(verifier, path, out, point, photos)
    assert (report.pairs, report.failed) == (1, 0)
    scores = read_scores(out)
    assert scores.genuine.tolist() == pairs.genuine.tolist()
    other = replace(scores, left=["Ann/1.jpg"], right=["Ann/2.jpg"])
    if name in ("tabs", "composed", "decomposed"):
        changed = [{NFC: NFD}.get(part, part) for part in scores.left[0].split("/")]
        other = replace(scores, left=["\\".join(changed)], right=list(scores.right))
    if name != "windows":  # whose `.\\` stands in the list of pairs alone
        assert match_pairs(scores, other, ("a", "b")).tolist() == [0]


def test_groups_in_any_form(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text(f"\ufeffPerson;Group\r\n{NFC};a\r\n", encoding="utf-8")
    groups = read_groups(path)
    assert groups.among([NFD, "x"])["a"].tolist() == [True, False]


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_toml_files(tmp_path, mark):
    path = tmp_path / "x.toml"
    path.write_bytes(mark + b'model = "difference"\r\n')
    assert load_config(path).model == "difference"
    assert read_toml(path) == {"model": "difference"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("Ann/1.jpg", "Ann/1.jpg"),
        ("Ann\\1.jpg", "Ann/1.jpg"),
        (" Ann/1.jpg ", "Ann/1.jpg"),
        (f"{NFC}/{NFD}.jpg", f"{NFD}/{NFC}.jpg"),
        ("Ann\\none.jpg", "Ann\\none.jpg"),
        ("a\0b", "a\0b"),
        (5_000 * "a", 5_000 * "a"),
    ],
)
def test_a_file_is_found_by_its_name_on_another_system(photos, given, found):
    assert find_file(photos, given) == photos / found
    assert find_file("", f"{photos}/{given.strip()}") == photos / found


def test_a_backslash_in_a_name_is_the_first_choice(tmp_path):
    if os.name == "nt":
        pytest.skip("is no name there")
    save(tmp_path / "a" / "1.jpg")
    save(tmp_path / "a\\1.jpg")
    assert find_file(tmp_path, "a\\1.jpg") == tmp_path / "a\\1.jpg"


def test_a_search_follows_the_links_that_a_check_follows(photos, verifier, tmp_path):
    (tmp_path / "Linked").symlink_to(photos / "Ann")
    (tmp_path / "circle").symlink_to(tmp_path)
    save(tmp_path / "Linked2" / "one.png")
    (tmp_path / "Linked2" / "up").symlink_to(tmp_path / "Linked2")
    ranking = rank_folder(verifier, save(tmp_path.with_suffix(".png")), tmp_path)
    found = {one.path for one in ranking.photos}
    assert found == {"Linked/1.jpg", "Linked/2.jpg", "Linked2/one.png"}
    assert set(FaceIndex.scan(tmp_path).names()) == found


def test_a_folder_that_several_links_lead_to_is_searched_once(photos, verifier, tmp_path):
    place = tmp_path / "photos"
    for level in range(12):
        for link in ("a", "b"):
            (place / link).parent.mkdir(parents=True, exist_ok=True)
            (place / link).symlink_to(tmp_path / f"level {level}")
        place = tmp_path / f"level {level}"
    save(place / "one.png")
    ranking = rank_folder(verifier, save(tmp_path / "probe.png"), tmp_path / "photos")
    assert len(ranking.photos) == 1


LEFTOVERS = (
    *("#recycle", "@eaDir", ".Trash-1000", "$RECYCLE.BIN", "System Volume Information"),
    *("lost+found", "#snapshot", "@Recycle", "__MACOSX"),
)


def test_leftovers_of_systems_are_neither_people_nor_photos(photos, verifier, tmp_path):
    for name in LEFTOVERS:
        save(tmp_path / name / "1.jpg")
    for name in ("Thumbs.db", "desktop.ini", "._1.jpg", ".DS_Store"):
        (tmp_path / "Ann").mkdir(exist_ok=True)
        (tmp_path / "Ann" / name).write_bytes(b"x")
    save(tmp_path / "Ann" / "@eaDir" / "1.jpg" / "thumb.jpg")
    save(tmp_path / "Ann" / "1.jpg")
    save(tmp_path / "@ann" / "1.jpg")
    index = FaceIndex.scan(tmp_path)
    assert (list(index.people), len(index), index.skipped) == (["@ann", "Ann"], 2, ())
    ranking = rank_folder(verifier, photos / "Ann" / "2.jpg", tmp_path)
    assert {one.path for one in ranking.photos} == {"Ann/1.jpg", "@ann/1.jpg"}
