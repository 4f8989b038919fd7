"""Lists of other data sets are read as their authors publish them; the photos are drawn."""

import json
from collections import Counter

import numpy as np
import pytest
import scipy.io
from drawn.photos import smooth
from PIL import Image
from processes.command_line import in_process
from tiny.embedders import embedder

from facepairs.data.published_pairs import read_published
from facepairs.errors import BadData
from facepairs.support.console import showing

PEOPLE = [f"Per_Son{chr(97 + number)}" for number in range(20)]
SAME = [(person, 0, person, 1) for person in range(20)]  # person, photo, person, photo
DIFF = [(person, 0, (person + 7) % 20, 1) for person in range(20)]


def draw(path, person, photo):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = smooth(64, 64, person) + np.random.default_rng(photo).integers(-5, 6, (64, 64, 3))
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(path)


def two_lines(lists, photos, name, marks):
    """CALFW and CPLFW: positives first, two lines each, with the fold or 1 behind the name."""
    lines = []
    for pairs, is_same in ((SAME, True), (DIFF, False)):
        for number, (left, a, right, b) in enumerate(pairs):
            mark = marks(number) if is_same else 0
            for person, photo in ((left, a), (right, b)):
                file = f"{PEOPLE[person]}_{photo + 1:04d}.jpg"
                draw(photos / file, person, photo)
                lines.append(f"{file} {mark}\n")
    lists.mkdir(exist_ok=True)
    (lists / name).write_text("".join(lines))
    return lists / name


def calfw(lists, photos):
    return two_lines(lists, photos, "pairs_CALFW.txt", lambda number: number // 2 + 1)


def cplfw(lists, photos):
    return two_lines(lists, photos, "pairs_CPLFW.txt", lambda number: 1)


def cfp_fp(lists, photos):
    """CFP: every photo has a number, frontal and profile ones apart; ten folders of pairs."""
    for kind, folder in (("F", "frontal"), ("P", "profile")):
        lines = []
        for person in range(20):
            place = f"{person + 1:03d}/{folder}/01.jpg"
            draw(photos / place, person, int(kind == "P"))
            lines.append(f"{person + 1} ../Data/Images/{place}\n")
        lists.mkdir(exist_ok=True)
        (lists / f"Pair_list_{kind}.txt").write_text("".join(lines))
    for fold in range(10):
        for file, pairs in (("same.txt", SAME), ("diff.txt", DIFF)):
            to = lists / "Split" / "FP" / f"{fold + 1:02d}" / file
            to.parent.mkdir(parents=True, exist_ok=True)
            mine = pairs[2 * fold : 2 * fold + 2]
            to.write_text("".join(f"{left + 1},{right + 1}\n" for left, _, right, _ in mine))
    return lists / "Split" / "FP"


def agedb_30(lists, photos):
    """AgeDB: MATLAB's cells of structures, with names without a suffix."""
    splits = np.empty((10, 1), object)
    for fold in range(10):
        pairs = SAME[2 * fold : 2 * fold + 2] + DIFF[2 * fold : 2 * fold + 2]
        names = np.empty((2, len(pairs)), object)
        for column, (left, a, right, b) in enumerate(pairs):
            for row, (person, photo) in enumerate(((left, a), (right, b))):
                stem = f"{2 * person + photo}_{PEOPLE[person].replace('_', '')}_{30 + photo}_f"
                draw(photos / f"{stem}.jpg", person, photo)
                names[row, column] = {"name": stem}
        splits[fold, 0] = {"pairs": names, "labels": np.array([[1, 1, -1, -1]])}
    lists.mkdir(exist_ok=True)
    path = lists / "04_FINAL_protocol_30_years.mat"
    scipy.io.savemat(path, {"splits": splits})
    return path


def xqlfw(lists, photos):
    """XQLFW: LFW's own layout."""
    lines = ["10\t2\n"]
    for fold in range(10):
        for left, a, _, b in SAME[2 * fold : 2 * fold + 2]:
            lines.append(f"{PEOPLE[left]}\t{a + 1}\t{b + 1}\n")
        for left, a, right, b in DIFF[2 * fold : 2 * fold + 2]:
            lines.append(f"{PEOPLE[left]}\t{a + 1}\t{PEOPLE[right]}\t{b + 1}\n")
    for person, name in enumerate(PEOPLE):
        for photo in (0, 1):
            draw(photos / name / f"{name}_{photo + 1:04d}.jpg", person, photo)
    lists.mkdir(exist_ok=True)
    (lists / "xqlfw_pairs.txt").write_text("".join(lines))
    return lists / "xqlfw_pairs.txt"


LAYOUTS = {
    "cfp-fp": cfp_fp,
    "agedb-30": agedb_30,
    "calfw": calfw,
    "cplfw": cplfw,
    "xqlfw": xqlfw,
}
READ_HERE = [name for name in LAYOUTS if name != "xqlfw"]  # which is read as LFW is


@pytest.mark.parametrize("name", READ_HERE)
def test_pairs_people_and_folds_are_those_of_the_list(tmp_path, name):
    path = LAYOUTS[name](tmp_path / "lists", tmp_path / "photos")
    index, pairs, missing = read_published(path, tmp_path / "photos")
    assert missing == 0
    assert (len(index.people), len(index)) == (20, 40)
    assert all(place.is_file() for place in index.paths)
    same = index.person_of[pairs.left] == index.person_of[pairs.right]
    assert np.array_equal(same, pairs.genuine)
    assert Counter(zip(pairs.fold.tolist(), pairs.genuine.tolist(), strict=True)) == {
        (fold, genuine): 2 for fold in range(1, 11) for genuine in (True, False)
    }
    drawn = [np.asarray(Image.open(index.path(k)), int) for k in (pairs.left[0], pairs.right[0])]
    assert abs(drawn[0] - drawn[1]).mean() < 15  # person 0 and again


@pytest.mark.parametrize("name", READ_HERE)
def test_pairs_of_missing_photos_are_left_out(tmp_path, name):
    path = LAYOUTS[name](tmp_path / "lists", tmp_path / "photos")
    gone = sorted((tmp_path / "photos").rglob("*.jpg"))[0]
    gone.unlink()
    lines = []
    with showing(lines.append):
        index, pairs, missing = read_published(path, tmp_path / "photos")
    assert missing == 40 - len(pairs) == 2
    assert len(index) == 39
    assert gone.name in lines[0]
    with pytest.raises(BadData, match="no photo"):
        read_published(path, tmp_path)


@pytest.mark.parametrize("name", READ_HERE)
def test_another_file_of_the_name_is_refused(tmp_path, name):
    path = LAYOUTS[name](tmp_path / "lists", tmp_path / "photos")
    file = path / "03" / "same.txt" if path.is_dir() else path
    for content in ("x y z\n", "1\n", "\x00", "900,1\n"):
        file.write_text(content)
        with pytest.raises(BadData, match="published"):
            read_published(path, tmp_path / "photos")
    file.unlink()
    with pytest.raises(BadData):
        read_published(path, tmp_path / "photos")


@pytest.mark.parametrize("name", LAYOUTS)
def test_evaluate_takes_each_folds_threshold_from_the_others(tmp_path, name):
    LAYOUTS[name](tmp_path / "lists", tmp_path / "photos")
    toml = embedder(tmp_path / "network")
    words = (toml, tmp_path / "photos", "--protocol", name, "--lists", tmp_path / "lists")
    done = in_process("evaluate", *words, "--json", check=0)
    figures = json.loads(done.stdout)["models"][0]
    assert figures["about"]["pairs"].lower().startswith(name)
    assert (figures["genuine_pairs"], figures["impostor_pairs"]) == (20, 20)
    assert figures["auc"]["value"] > 0.9
