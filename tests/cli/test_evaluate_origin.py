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
from facepairs.bundles.measured import Calibration
from facepairs.data.index import FaceIndex
from facepairs.verification.provenance import provenance_path

KNOWN = ("Ann", "Bé", "Cyd")  # to every tiny bundle


def evaluate(*arguments: object, check: int = 0) -> Result:
    return in_process("evaluate", *arguments, check=check)


def measured(*arguments: object) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(evaluate(*arguments, "--json").stdout)
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
    assert summary["scored_by"] == str(bundle.folder)
    assert summary["pairs_with_known_people"] == known
    fmr = summary["operating_points"][1]["errors"]["fmr"]
    assert (fmr["count"], fmr["of"]) == (sum(accepted), len(accepted))
    provenance_path(scores).unlink()
    assert measured(scores)["scored_by"] is None


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
    scores.write_text(scores.read_text("utf-8").replace("0.9", "0.8", 1), "utf-8")
    assert "scores.csv.json: " in evaluate(scores, check=2).stderr


def test_errors_within_the_user_s_groups(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    people = sorted(person.name for person in photos.iterdir() if person.name not in KNOWN)
    rows = [("person", "group"), *((name, "young") for name in people[:12])]
    rows += [(name, "old") for name in people[10:16]]  # two people are in both
    rows += [("Nobody", "old"), ("Ann", "old"), ("Nobody", "absent")]
    groups, scores = tmp_path / "groups.csv", tmp_path / "scores.csv"
    groups.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    folder = make_bundle("embedding", calibration=Calibration(20.0, -10.0)).folder
    words = (folder, photos, "--protocol", "heldout", "--groups", groups)
    done = evaluate(*words, "--out", scores, "--json")
    found = json.loads(done.stdout)["groups"]
    assert set(found) == {"young", "old", "absent"}
    young, old = found["young"], found["old"]
    assert (young["people"], old["people"]) == (12, 6)  # Ann is known, and left out
    assert young["fnmr"]["of"] == 12 * 6
    assert young["fmr"]["of"] > 900  # of 1,056, drawn within the group
    low, high = young["fmr"]["interval"]
    assert low <= young["fmr"]["value"] <= high
    lines = evaluate(*words).stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(("young", "old"))]
    assert listed == list(found)[:2]  # the worst first
    assert measured(scores, "--groups", groups)["groups"]["young"]["people"] == 12


def test_nobody_is_left_to_measure_on(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    for name in KNOWN:
        shutil.copytree(photos / name, tmp_path / "known" / name)
    words = (make_bundle("embedding").folder, tmp_path / "known", "--protocol", "heldout")
    error = json.loads(evaluate(*words, "--json", check=2).stdout)["error"]
    assert error["kind"] == "not_enough"
