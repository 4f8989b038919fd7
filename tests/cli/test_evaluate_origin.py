"""`evaluate` on drawn faces: unequal classes, decisions of files, known people and groups."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes.command_line import Result, in_process
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.identities import Identities
from facepairs.data.index import FaceIndex
from facepairs.evaluation.scores import read_scores, write_scores
from facepairs.verification.provenance import Provenance, provenance_path

pytestmark = pytest.mark.usefixtures("few_draws")

KNOWN = ("Ann", "Bé", "Cyd")  # to every tiny bundle
Rows = list[tuple[str, str, int]]


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
    rows: Rows = [(names[k][0], names[k][1], 1) for k in range(24)]
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
    assert summary["accuracy"] is None
    errors = summary["operating_points"][0]["errors"]
    both = errors["fmr"]["value"] + errors["fnmr"]["value"]
    assert summary["balanced_accuracy"]["value"] == pytest.approx(1 - both / 2)
    names = [point["name"] for point in summary["operating_points"]]
    assert names == ["balanced", "fmr-0.01"]
    assert summary["verify_point"] == "fmr-0.01"
    lines = evaluate(*words).stdout.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("Balanced accuracy"))
    accuracy, own, verify, strangers, genuine, *_ = lines[first:]
    assert "95 % interval" in accuracy
    assert own.startswith("  Threshold ")
    assert "where it was set, threshold 0.75" in verify
    default = summary["operating_points"][1]
    assert verify.startswith("As verify decides ")
    assert strangers.startswith("  Strangers accepted (FMR) ")
    assert f" {100 * default['errors']['fmr']['value']:.2f} % (" in strangers
    assert genuine.startswith("  Genuine pairs missed (FNMR) ")


def test_a_comparison_shows_the_errors_as_verify_decides(
    bundle: Bundle, photos: Path, pairs: Path
) -> None:
    words = (bundle.folder, bundle.folder, photos, "--pairs", pairs)
    point = measured(*words)["models"][0]["operating_points"][1]
    source, _, _, _, head, row = evaluate(*words).stdout.splitlines()[:6]
    assert source.startswith(f"Pairs from  {pairs}")
    assert re.split(r" {2,}", head)[2:4] == ["FMR", "FNMR"]
    assert re.split(r" {2,}", row)[2:4] == [
        f"{100 * point['errors'][x]['value']:.2f} %" for x in ("fmr", "fnmr")
    ]


def test_a_file_of_verify_is_decided_as_verify_decided(
    bundle: Bundle, photos: Path, pairs: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    options = ("--bundle", bundle.folder, "--root", photos, "--threshold", "0.9")
    in_process("score", pairs, "--out", scores, *options)
    with scores.open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    accepted = [row["same"] == "1" for row in rows if row["genuine"] == "0"]
    done = evaluate(scores, "--json")
    summary = json.loads(done.stdout)
    assert summary["threshold_source"] == "file"
    (point,) = summary["operating_points"]
    assert (point["threshold"], point["name"], summary["verify_point"]) == (0.9, "file", "file")
    fmr = point["errors"]["fmr"]
    assert (fmr["count"], fmr["of"]) == (sum(accepted), len(accepted))
    assert summary["scored_by"] == str(bundle.folder)
    known = sum(any(row[side].split("/")[0] in KNOWN for side in ("left", "right")) for row in rows)
    assert summary["pairs_with_known_people"] == known
    assert f"{known} of 450 pairs show people that" in done.stderr
    provenance_path(scores).unlink()  # the decisions stay, the origin is unknown
    done = evaluate(scores, "--json")
    assert "scores.csv: of unknown origin" in done.stderr
    (point,) = json.loads(done.stdout)["operating_points"]
    assert point["errors"]["fmr"]["count"] == sum(accepted)
    assert json.loads(done.stdout)["scored_by"] is None


def test_a_written_file_gives_the_same_figures_until_it_is_changed(
    bundle: Bundle, photos: Path, pairs: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    before = measured(bundle.folder, photos, "--pairs", pairs, "--out", scores)
    again = measured(scores)
    for key in ("balanced_accuracy", "auc"):
        assert again[key]["value"] == pytest.approx(before[key]["value"])
        assert again[key]["interval"] == pytest.approx(before[key]["interval"])
    assert again["ece"] == pytest.approx(before["ece"])
    points = [[p["threshold"] for p in found["operating_points"]] for found in (before, again)]
    assert points[0] == points[1] == [0.5, 0.75]
    scores.write_text(scores.read_text("utf-8").replace("0.9", "0.8", 1), "utf-8")
    done = evaluate(scores, check=2)
    assert "scores.csv.json: belongs to other scores" in done.stderr


def test_known_people_are_refused_in_the_pairs_of_a_protocol(
    bundle: Bundle, photos: Path, pairs: Path, tmp_path: Path
) -> None:
    scores, copy = tmp_path / "scores.csv", tmp_path / "view1.csv"
    evaluate(bundle.folder, photos, "--pairs", pairs, "--out", scores)
    people = Identities.of([person.name for person in photos.iterdir()], [])
    origin = Provenance(
        model="run", embedder_sha256="0", pairs="View 1", protocol="view1", identities=people
    )
    write_scores(copy, read_scores(scores), origin)
    done = evaluate(copy, check=2)
    assert "all 450 pairs show people that run was trained or calibrated on" in done.stderr


def test_errors_within_the_user_s_groups(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    people = sorted(person.name for person in photos.iterdir() if person.name not in KNOWN)
    rows = [("person", "group"), *((name, "young") for name in people[:12])]
    rows += [(name, "old") for name in people[10:16]]  # two people are in both
    rows += [("Nobody", "old"), ("Ann", "old"), ("Nobody", "absent"), ("Nobody", "lost")]
    groups = tmp_path / "groups.csv"
    with groups.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows(rows)
    folder = make_bundle("embedding", calibration=Calibration(20.0, -10.0)).folder
    words = (folder, photos, "--protocol", "heldout", "--groups", groups)
    done = evaluate(*words, "--json")
    found = json.loads(done.stdout)["groups"]
    assert list(found)[2:] == ["absent", "lost"]
    assert "nobody in the pairs is in group absent, lost" in done.stderr
    young, old = found["young"], found["old"]
    assert (young["people"], old["people"]) == (12, 6)  # Ann is known, and left out
    assert young["fnmr"]["of"] == 12 * 6
    assert young["fmr"]["of"] > 900  # of 1,056, drawn within the group
    low, high = young["fmr"]["interval"]
    assert low <= young["fmr"]["value"] <= high
    assert "group old: 6 people" in done.stderr
    assert "its rates are rough" in done.stderr
    assert "1 person not in" in done.stderr
    assert "Nobody" in done.stderr
    assert "group young" not in done.stderr
    lines = evaluate(*words).stdout.splitlines()
    assert any(line.startswith("group ") and "strangers accepted" in line for line in lines)
    listed = [line.split()[0] for line in lines if line.startswith(("young", "old"))]
    assert listed == list(found)[:2]  # the worst first
    both = evaluate(folder, folder, *words[1:])
    assert both.stdout.count(": Errors by group\n") == 2
    assert sum(line.startswith(("young ", "old ")) for line in both.stdout.splitlines()) == 4
    assert both.stderr.count("group old: 6 people") == both.stderr.count("1 person not in") == 1

    scores = tmp_path / "scores.csv"
    evaluate(*words, "--out", scores)
    again = measured(scores, "--groups", groups)["groups"]
    assert again["young"]["people"] == 12  # from the pairs of the file
    (tmp_path / "bad.csv").write_text("person,group\nAnn,\n")
    done = evaluate(scores, "--groups", tmp_path / "bad.csv", check=2)
    assert "bad.csv: line 2: group is empty" in done.stderr


def test_nobody_is_left_to_measure_on(
    make_bundle: Callable[..., Bundle], photos: Path, tmp_path: Path
) -> None:
    for name in KNOWN:
        shutil.copytree(photos / name, tmp_path / "known" / name)
    folder = make_bundle("embedding").folder
    done = evaluate(folder, tmp_path / "known", "--protocol", "heldout", check=2)
    assert "0 of 3 people are unknown" in done.stderr
    shutil.copytree(sorted(photos.iterdir())[-1], tmp_path / "known" / "Zoe")
    done = evaluate(folder, tmp_path / "known", "--protocol", "heldout", check=2)
    assert "1 of 4 people are unknown" in done.stderr


def test_all_photos_that_cannot_be_used_are_counted(
    make_bundle: Callable[..., Bundle], photos: Path, pairs: Path, tmp_path: Path
) -> None:
    root = tmp_path / "people"
    shutil.copytree(photos, root)
    index = FaceIndex.scan(root)
    for image in (0, 5, 9):
        index.paths[image].write_bytes(b"\xff\xd8\xff broken")
    done = evaluate(make_bundle("pair").folder, root, "--pairs", pairs, check=2)
    assert index.name(0) in done.stderr
    assert "(and 2 more photos)" in done.stderr
    assert "--skip-bad" in done.stderr
