"""`facepairs verify`: pairs, one against many, thresholds, misuse."""

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import time

import numpy as np
import pytest
from command_line import command, in_process
from PIL import Image
from tiny_bundles import FRAME_PX, tiny_bundle

from facepairs.verification.verifier import Verifier

RATE = {
    "fmr": 0.01,
    "threshold": 0.75,
    "measured_fmr": 0.009,
    "fmr_interval": [0.006, 0.014],
    "genuine_pairs": 30,
    "impostor_pairs": 3000,
}


def verify(*arguments):
    return in_process("verify", *arguments)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return tiny_bundle(
        tmp_path_factory.mktemp("b") / "bundle", "embedding", thresholds=[RATE]
    ).folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (FRAME_PX, FRAME_PX, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"no image")
    (folder / "pairs.csv").write_text(
        "left,right,genuine\n0.png,1.png,1\n0.png,broken.jpg,0\n2.png,3.png,0\n1.png,1.png,yes\n"
    )
    (folder / "good.csv").write_text("left,right\n0.png,1.png\n")
    return folder


def rows_of(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def test_pairs(bundle, photos, tmp_path):
    out = tmp_path / "out.csv"
    options = ("--bundle", bundle, "--pairs", photos / "pairs.csv", "--out", out)
    done = verify(*options)
    assert done.returncode == 1
    assert f"warning: 1 of 4 pairs could not be scored; see column error of {out}" in done.stderr
    assert "threshold" in done.stdout
    rows = rows_of(out)
    assert [bool(row["error"]) for row in rows] == [False, True, False, False]
    assert [row["genuine"] for row in rows] == ["1", "0", "0", "yes"]
    single = Verifier.load(bundle).verify(photos / "0.png", photos / "1.png")
    assert float(rows[0]["score"]) == pytest.approx(single.score, abs=1e-5)

    output = json.loads(verify(*options, "--json", "--max-fmr", "0.01").stdout)
    assert (output["pairs"], output["failed"], output["images"]) == (4, 1, 5)
    assert (output["threshold"], output["fmr_interval"]) == (0.75, [0.006, 0.014])
    assert output["out"] == str(out)
    done = verify("--bundle", bundle, "--pairs", photos / "good.csv", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_output_can_be_evaluated(bundle, photos, tmp_path):
    from facepairs.evaluation.scores import read_scores

    verify("--bundle", bundle, "--pairs", photos / "pairs.csv", "--out", tmp_path / "out.csv")
    scores = read_scores(tmp_path / "out.csv")
    assert scores.genuine.tolist() == [True, False, True]
    assert scores.unscored == 1


def test_paths_count_from_root(bundle, photos, tmp_path):
    (tmp_path / "p.csv").write_text("left,right\n0.png,1.png\n")
    options = ("--bundle", bundle, "--pairs", tmp_path / "p.csv", "--out", tmp_path / "o.csv")
    assert verify(*options).returncode == 1
    assert verify(*options, "--root", photos).returncode == 0


def saved_rows(database):
    """The number of rows that a run in progress has committed."""
    if not database.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        try:
            return opened.execute("SELECT count(*) FROM results").fetchone()[0]
        except sqlite3.OperationalError:  # locked, or its tables are not there yet
            return 0


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_saves_and_resume_continues(bundle, photos, tmp_path):
    names = []
    for number in range(3000):
        os.link(photos / f"{number % 4}.png", tmp_path / f"{number}.png")
        names.append(f"{number}.png,{number}.png\n")
    (tmp_path / "p.csv").write_text("left,right\n" + "".join(names))
    options = ("--bundle", bundle, "--pairs", tmp_path / "p.csv", "--out", tmp_path / "out.csv")
    with subprocess.Popen(
        command("verify", *options), stderr=subprocess.PIPE, text=True
    ) as process:
        partial, limit = tmp_path / "out.csv.partial", time.monotonic() + 60
        while not saved_rows(partial / "work.sqlite") and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "--resume" in output
    assert not (tmp_path / "out.csv").exists()
    assert "continue with --resume" in verify(*options).stderr
    assert verify(*options, "--resume").returncode == 0
    assert len(rows_of(tmp_path / "out.csv")) == 3000
    assert not partial.exists()


def test_one_against_many(bundle, photos, tmp_path):
    options = (photos / "0.png", "--bundle", bundle, "--against", photos)
    done = verify(*options, "--out", tmp_path / "o.csv", "--top", 2)
    assert done.returncode == 1
    assert "warning: 1 of 4 photos could not be used" in done.stderr
    assert "broken.jpg" in done.stderr
    assert len([line for line in done.stdout.splitlines() if ".png" in line]) == 2
    assert len(rows_of(tmp_path / "o.csv")) == 4
    output = json.loads(verify(*options, "--json", "--max-fmr", 0.01).stdout)
    scores = [match["score"] for match in output["matches"]]
    assert scores == sorted(scores, reverse=True)
    assert {match["path"] for match in output["matches"]} == {"1.png", "2.png", "3.png"}
    assert [item["path"] for item in output["failed"]] == ["broken.jpg"]
    assert (output["max_fmr"], output["impostor_pairs"]) == (0.01, 3000)


def test_thresholds_on_demand(bundle, photos):
    both = (photos / "0.png", photos / "1.png", "--bundle", bundle)
    score = json.loads(verify(*both, "--json").stdout)["score"]
    for threshold, code in ((0.0, int(score < 0)), (score, 0), (2, 1), ("-2", 0)):
        done = verify(*both, "--threshold", threshold, "--json")
        assert done.returncode == code
        assert json.loads(done.stdout)["threshold"] == float(threshold)
    done = verify(*both, "--max-fmr", "0.01")
    assert "FMR at most 1 % (95 % interval 0.6 % to 1.4 %, 3,000 impostor pairs)" in done.stdout
    assert done.returncode == int(score < 0.75)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["a.png", "b.png", "--max-fmr", "0.02"],
            "no threshold for FMR 0.02; it has thresholds for 0.01",
        ),
        (["a.png", "b.png", "--max-fmr", "0.01", "--threshold", "0"], "exclude each other"),
        (["a.png", "b.png", "--threshold", "nan"], "not a finite number"),
        (["a.png"], "give two photos"),
        ([], "give two photos"),
        (["--pairs", "p.csv"], "--pairs needs --out"),
        (["a.png", "--pairs", "p.csv", "--out", "o"], "A does not go with --pairs"),
        (["--pairs", "p.csv", "--out", "o", "--against", "d"], "--against does not go with"),
        (["--pairs", "none.csv", "--out", "o"], "none.csv: No such file"),
        (["--against", "d"], "--against needs the photo"),
        (["a.png", "b.png", "--against", "d"], "B does not go with --against"),
        (["a.png", "b.png", "--out", "o"], "--out does not go with two photos"),
        (["a.png", "b.png", "--resume"], "--resume does not go with two photos"),
    ],
)
def test_misuse_is_one_line_and_exit_2(bundle, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = verify(*arguments, "--bundle", bundle)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_model_is_still_another_name_of_bundle(bundle, photos):
    words = (photos / "0.png", photos / "1.png", "--json")
    old, new = (verify(*words, option, bundle).stdout for option in ("--model", "--bundle"))
    assert old == new


def test_help_shows_every_mode():
    output = verify("--help").stdout
    for example in ("verify a.jpg b.jpg", "--pairs pairs.csv --out", "--against photos/"):
        assert f"facepairs verify {example.removeprefix('verify ')}" in output or example in output
