"""`facepairs score`: a list of pairs in, a list of scores out."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from processes.command_line import in_process
from tiny.bundles import FRAME_PX, error_table, tiny_bundle

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.rates import OperatingPoint
from facepairs.verification.provenance import read_provenance
from facepairs.verification.verifier import Verifier

RATE = OperatingPoint(0.75, max_fmr=0.01)


def score(*arguments, **options):
    return in_process("score", *arguments, **options)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    out = tmp_path_factory.mktemp("b") / "bundle"
    return tiny_bundle(out, "embedding", errors=error_table(), thresholds=(RATE,)).folder


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
    options = ("--bundle", bundle, photos / "pairs.csv", "--out", out)
    done = score(*options)
    assert done.returncode == 1
    assert f"warning: 1 of 4 pairs could not be scored; see column error of {out}" in done.stderr
    assert "threshold" in done.stdout
    rows = rows_of(out)
    assert [bool(row["error"]) for row in rows] == [False, True, False, False]
    assert [row["genuine"] for row in rows] == ["1", "0", "0", "yes"]
    single = Verifier.load(bundle).verify(photos / "0.png", photos / "1.png")
    assert float(rows[0]["score"]) == pytest.approx(single.score, abs=1e-5)

    output = json.loads(score(*options, "--json", "--max-fmr", "0.01").stdout)
    assert (output["pairs"], output["failed"], output["images"]) == (4, 1, 5)
    assert output["operating_point"]["threshold"] == 0.75
    assert (output["out"], output["same_content"], output["prior"]) == (str(out), 1, 0.5)
    done = score("--bundle", bundle, photos / "good.csv", "--out", out)
    assert (done.returncode, "warning" in done.stderr) == (0, False)
    assert f"written: {out}, and where the scores come from: {out}.json\n" in done.stderr


def test_pairs_of_one_content_get_a_hint(bundle, photos, tmp_path):
    shutil.copy(photos / "0.png", tmp_path / "copy.png")
    (tmp_path / "p.csv").write_text(
        f"left,right\n{photos}/0.png,copy.png\n{photos}/0.png,{photos}/1.png\n"
    )
    done = score("--bundle", bundle, tmp_path / "p.csv", "--out", tmp_path / "o.csv")
    assert "1 pair of a photo and itself or a copy (hint same-content)" in done.stderr
    hints = [(row["left_hints"], row["right_hints"]) for row in rows_of(tmp_path / "o.csv")]
    assert all("same-content" in hint.split() for hint in hints[0])
    assert not any("same-content" in hint for hint in hints[1])


def test_people_of_the_training_are_named_and_pairs_with_them_counted(
    bundle, photos, tmp_path, monkeypatch
):
    for person in ("Ann", "Dan"):
        (tmp_path / person).mkdir()
        shutil.copy(photos / "0.png", tmp_path / person / "1.png")
        shutil.copy(photos / "1.png", tmp_path / person / "2.png")
    known, other = f"{tmp_path}/Ann", "Dan"
    (tmp_path / "p.csv").write_text(
        f"left,right\n{known}/1.png,{known}/2.png\n{other}/1.png,{known}/1.png\n"
        f"{other}/1.png,{other}/2.png\n{known}/none.png,{known}/1.png\n"
    )
    options = ("--bundle", bundle, tmp_path / "p.csv", "--out", tmp_path / "o.csv")
    assert (
        f"warning: 2 pairs with people that {bundle} was trained or calibrated on: with others it "
        "may make more errors\n"
    ) in score(*options).stderr
    assert json.loads(score(*options, "--json").stdout)["pairs_with_known_people"] == 2
    warning = (
        f"warning: {bundle} was trained or calibrated on Ann: with others it may make more errors"
    )
    for person, warned in (("Ann", True), ("Dan", False)):
        two = (tmp_path / person / "1.png", tmp_path / "Dan" / "2.png", "--bundle", bundle)
        assert (warning in in_process("verify", *two).stderr.splitlines()) == warned
    monkeypatch.chdir(tmp_path / "Ann")
    for words in (("verify", "1.png", "2.png"), ("search", "2.png", tmp_path)):
        assert warning in in_process(*words, "--bundle", bundle).stderr.splitlines()


def test_the_scores_say_where_they_come_from(bundle, photos, tmp_path):
    out = tmp_path / "o.csv"
    options = (photos / "pairs.csv", "--out", out, "--bundle", bundle)
    done = score(*options, "--prior", 0.1, "--max-fmr", 0.01)
    assert ["probability", "at", "prior", "0.1"] in [
        line.split() for line in done.stdout.splitlines()
    ]
    origin, opened = read_provenance(out), Bundle.open(bundle)
    assert (origin.model, origin.pairs) == (str(bundle), str(photos / "pairs.csv"))
    assert (origin.threshold, origin.operating_point, origin.max_fmr) == (0.75, "fmr-0.01", 0.01)
    assert (origin.prior, origin.decisions) == (0.1, True)
    assert origin.identities == opened.identities
    assert origin.embedder_sha256 == opened.embedder_sha256
    row = rows_of(out)[0]
    probability = opened.calibration.probability(float(row["score"]), prior=0.1)
    assert float(row["probability"]) == pytest.approx(probability)
    score(*options[:-2], "--bundle", "default", check=None)
    assert read_provenance(out).model == "default"


def test_the_output_can_be_evaluated(bundle, photos, tmp_path):
    from facepairs.evaluation.scores import read_scores

    score("--bundle", bundle, photos / "pairs.csv", "--out", tmp_path / "out.csv")
    scores = read_scores(tmp_path / "out.csv")
    assert scores.genuine.tolist() == [True, False, True]
    assert scores.unscored == 1


def test_paths_count_from_root(bundle, photos, tmp_path):
    (tmp_path / "p.csv").write_text("left,right\n0.png,1.png\n")
    options = ("--bundle", bundle, tmp_path / "p.csv", "--out", tmp_path / "o.csv")
    assert score(*options).returncode == 1
    assert score(*options, "--root", photos).returncode == 0


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["p.csv", "--out", "o", "--prior", "-1"], "config"),
        (["p.csv"], "usage"),
        (["a.png", "b.png", "--out", "o"], "config"),
        (["none.csv", "--out", "o"], "data"),
        (["p.csv", "--out", "."], "data"),
    ],
)
def test_misuse_is_one_line_and_exit_2(bundle, tmp_path, monkeypatch, words, kind):
    monkeypatch.chdir(tmp_path)
    error = json.loads(score(*words, "--bundle", bundle, "--json", check=2).stdout)["error"]
    assert error["kind"] == kind
    assert len(score(*words, "--bundle", bundle, check=2).stderr.splitlines()) == 1
