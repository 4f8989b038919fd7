"""`evaluate` on drawn faces: unequal classes, decisions of files, known people and groups."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes.command_line import Result, in_process
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.error_profile import Calibration
from facepairs.data.index import FaceIndex
from facepairs.verification.provenance import provenance_path

KNOWN = ("Ann", "Bé", "Cyd")  # to every tiny bundle


def evaluate(*arguments: object, check: int = 0) -> Result:
    return in_process("evaluate", *arguments, check=check)


def measured(*arguments: object) -> dict[str, Any]:
    return figures(evaluate(*arguments, "--json"))


def figures(done: Result) -> dict[str, Any]:
    """Return the figures of the one verifier that was measured."""
    summary: dict[str, Any]
    (summary,) = json.loads(done.stdout)["models"]
    return summary


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Its default operating point is stricter than the balanced one."""
    return tiny_bundle(tmp_path_factory.mktemp("model") / "bundle", **AMONG_LOOKALIKES)


@pytest.fixture(scope="module")
def photos(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 people, three of whom every tiny bundle knows."""
    root = tmp_path_factory.mktemp("photos") / "people"
    shutil.copytree(faces, root)
    for name, person in zip(KNOWN, sorted(root.iterdir())[:3], strict=True):
        person.rename(root / name)
    return root


@pytest.fixture(scope="module")
def pairs(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 genuine and 420 impostor pairs, of all people."""
    index = FaceIndex.scan(photos)
    names = [[index.name(i) for i in range(*index.first[k : k + 2])] for k in range(24)]
    rows = [(names[k][0], names[k][1], 1) for k in range(24)]
    rows += [(names[k][1], names[k][2], 1) for k in range(6)]
    rows += [
        (names[k][i], names[(k + step) % 24][i], 0)
        for k in range(24)
        for step in range(1, 6)
        for i in range(4)
    ][:420]
    path = tmp_path_factory.mktemp("lists") / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([("left", "right", "genuine"), *rows])
    return path


def test_the_headline_is_the_balanced_accuracy(bundle: Bundle, photos: Path, pairs: Path) -> None:
    words = (bundle.folder, photos, "--pairs", pairs)
    summary = measured(*words)
    assert (summary["genuine_pairs"], summary["impostor_pairs"]) == (30, 420)
    assert (summary["accuracy"], summary["verify_point"]) == (None, "fmr-0.01")
    balanced, default = summary["operating_points"]
    assert (balanced["name"], default["name"]) == ("balanced", "fmr-0.01")
    both = sum(balanced["errors"][rate]["value"] for rate in ("fmr", "fnmr"))
    assert summary["balanced_accuracy"]["value"] == pytest.approx(1 - both / 2)
    lines = evaluate(*words).stdout.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Balanced accuracy"))
    _, own, verify, strangers, genuine, *_ = lines[first:]
    assert own.startswith("  Threshold ")
    assert verify.startswith("As verify decides ")
    assert f" {100 * default['errors']['fmr']['value']:.2f} % (" in strangers
    assert f" {100 * default['errors']['fnmr']['value']:.2f} % (" in genuine


def test_a_file_of_verify_is_decided_as_verify_decided(
    bundle: Bundle, photos: Path, pairs: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    options = ("--bundle", bundle.folder, "--root", photos, "--threshold", "0.9")
    in_process("score", pairs, "--out", scores, *options)
    with scores.open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    accepted = [row["same"] == "1" for row in rows if row["genuine"] == "0"]
    known = sum(any(row[side].split("/")[0] in KNOWN for side in ("left", "right")) for row in rows)
    summary = measured(scores)
    assert (summary["threshold_source"], summary["verify_point"]) == ("model", "threshold")
    assert summary["about"]["scored_by"] == str(bundle.folder)
    assert summary["about"]["pairs_with_known_people"] == known
    fmr = summary["operating_points"][1]["errors"]["fmr"]
    assert (fmr["count"], fmr["of"]) == (sum(accepted), len(accepted))
    provenance_path(scores).unlink()
    assert measured(scores)["about"]["scored_by"] is None


def test_a_written_file_gives_the_same_figures_until_it_is_changed(
    bundle: Bundle, photos: Path, pairs: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    before = measured(bundle.folder, photos, "--pairs", pairs, "--out", scores)
    again = measured(scores)
    for key in ("balanced_accuracy", "auc"):
        for part in ("value", "interval"):
            assert again[key][part] == pytest.approx(before[key][part])
    assert again["ece"] == pytest.approx(before["ece"])
    points = [[p["threshold"] for p in found["operating_points"]] for found in (before, again)]
    assert points[0] == points[1] == [0.5, 0.75]
    promised = [found["operating_points"][1] for found in (before, again)]
    assert [(p["max_fmr"], p["among"]) for p in promised] == [(0.01, "look-alikes")] * 2
    assert "FMR 1 % among look-alikes where it was set" in evaluate(scores).stdout
    scores.write_text(scores.read_text("utf-8").replace("0.9", "0.8", 1), "utf-8")
    assert "scores.csv.json: " in evaluate(scores, check=2).stderr


def test_errors_within_the_user_s_groups(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    people = sorted(person.name for person in photos.iterdir() if person.name not in KNOWN)
    rows = [("person", "group"), *((name, "young") for name in people[:12])]
    rows += [(name, "old") for name in people[10:16]]  # two people are in both
    rows += [("Ann", "old"), ("Ann", "absent")]
    groups, scores = tmp_path / "groups.csv", tmp_path / "scores.csv"
    groups.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    folder = make_bundle("embedding", calibration=Calibration(20.0, -10.0)).folder
    words = (folder, photos, "--protocol", "heldout", "--groups", groups)
    done = evaluate(*words, "--out", scores, "--json")
    found = figures(done)["groups"]
    assert set(found) == {"young", "old", "absent"}
    young, old = found["young"], found["old"]
    assert (young["people"], old["people"]) == (12, 6)  # Ann is known, and left out
    assert young["fnmr"]["of"] == 12 * 6
    assert young["fmr"]["of"] > 900  # of 1,056, drawn within the group
    low, high = young["fmr"]["interval"]
    assert low <= young["fmr"]["value"] <= high
    lines = evaluate(*words).stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(("young", "old"))]
    assert listed[:2] == list(found)[:2]  # the worst first; tables between groups follow
    assert found["absent"].get("fmr") is None
    assert measured(scores, "--groups", groups)["groups"] == found  # Ann is known to the model
    wrong = groups.read_text(encoding="utf-8").replace(people[11], f"{people[11]}x", 1)
    groups.write_text(wrong, encoding="utf-8")
    for sources in (words[:-2], (scores,)):
        error = evaluate(*sources, "--groups", groups, check=2).stderr
        assert f"line 13: no person '{people[11]}x'; did you mean '{people[11]}'?" in error


def test_unknown_names_are_refused_with_the_nearest(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    name = next(person.name for person in photos.iterdir() if "_" in person.name)
    listed = tmp_path / "listed.csv"
    words = (make_bundle("embedding").folder, photos, "--protocol", "heldout")
    for option, column in (("--groups", "group"), ("--families", "family")):
        listed.write_text(f"person,{column}\n{name},a\n{name.replace('_', ' ')},a\n")
        error = evaluate(*words, option, listed, check=2).stderr
        assert f"{listed}: line 3: no person '{name.replace('_', ' ')}'" in error
        assert f"did you mean '{name}'?" in error
        for row, empty in ((f"{name},", column), (",a", "person")):
            listed.write_text(f"person,{column}\n{row}\n")
            assert f"line 2: {empty} is empty" in evaluate(*words, option, listed, check=2).stderr
    listed.write_text(f"person,family\n{name},a\n{name},b\n")
    assert "in families 'a' and 'b'" in evaluate(*words, "--families", listed, check=2).stderr


def test_with_families_intervals_are_wider_and_rates_stay(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    names = sorted(person.name for person in photos.iterdir())
    families = tmp_path / "families.csv"
    rows = [f"{name},{number % 5}" for number, name in enumerate(names)]
    families.write_text("\n".join(["person,family", *rows]) + "\n", encoding="utf-8")
    scores = tmp_path / "scores.csv"
    folder = make_bundle("embedding", calibration=Calibration(20.0, -10.0)).folder
    words = (folder, photos, "--protocol", "heldout", "--json")
    alone = figures(evaluate(*words, "--out", scores))
    related = figures(evaluate(*words, "--families", families))
    assert measured(scores, "--families", families)["auc"] == related["auc"]
    assert related["people"] == alone["people"] > 5
    assert related["auc"]["value"] == alone["auc"]["value"]
    low, high = related["auc"]["interval"]
    assert low < alone["auc"]["interval"][0] < alone["auc"]["interval"][1] < high


def test_scores_that_are_distances_get_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "distances.csv"
    rows = [f"{n % 2},{0.9 - 0.5 * (n % 2) + n / 1000}" for n in range(80)]
    path.write_text("genuine,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    done = evaluate(path)
    assert "AUC 0)" in done.stderr
    assert "1 - distance" in done.stderr
    turned = [f"{n % 2},{1 - (0.9 - 0.5 * (n % 2) + n / 1000)}" for n in range(80)]
    path.write_text("genuine,score\n" + "\n".join(turned) + "\n", encoding="utf-8")
    assert "as distances do" not in evaluate(path).stderr


def test_too_few_pairs_are_counted_rightly(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("genuine;score\n1;0,9\n0;0,2\n", encoding="utf-8")
    assert "1 genuine and 1 impostor" in evaluate(path, check=2).stderr


def test_nobody_with_two_photos_is_said(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    for person in sorted(photos.iterdir())[:5]:
        (tmp_path / "one" / person.name).mkdir(parents=True)
        shutil.copy(min(person.iterdir()), tmp_path / "one" / person.name)
    words = (make_bundle("embedding").folder, tmp_path / "one", "--protocol", "heldout")
    assert "none of them has two photos" in evaluate(*words, check=2).stderr


def test_copies_of_a_photo_are_neither_strangers_nor_one_person_twice(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    some = tmp_path / "some"
    people = sorted(photos.iterdir())[:8]
    for person in people:
        (some / person.name).mkdir(parents=True)
        for photo in sorted(person.iterdir())[:3]:
            shutil.copy(photo, some / person.name)
    words = (make_bundle("embedding").folder, some, "--protocol", "heldout")
    left_out = sum(person.name in KNOWN for person in people)
    before = measured(*words)
    copied = min((some / people[-1].name).iterdir())
    shutil.copy(copied, some / people[-2].name / "copy.jpg")  # under another name
    shutil.copy(copied, some / people[-1].name / "again.jpg")  # and twice under his own
    done = evaluate(*words, "--json")
    after = figures(done)
    assert before["genuine_pairs"] == 3 * (8 - left_out)
    assert after["genuine_pairs"] == before["genuine_pairs"] + 3 + 3 - 1
    photos_in_all = 3 * (8 - left_out) + 2
    possible = photos_in_all * (photos_in_all - 1) // 2 - after["genuine_pairs"] - 1
    assert after["impostor_pairs"] == possible - 2
    assert "3 pairs of identical files" in done.stderr


def test_nobody_is_left_to_measure_on(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    for name in KNOWN:
        shutil.copytree(photos / name, tmp_path / "known" / name)
    words = (make_bundle("embedding").folder, tmp_path / "known", "--protocol", "heldout")
    error = json.loads(evaluate(*words, "--json", check=2).stdout)["error"]
    assert error["kind"] == "not_enough"
