"""`facepairs verify`: pairs, one against many, thresholds, misuse."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from processes.command_line import in_process
from tiny.bundles import FRAME_PX, error_table, tiny_bundle

from facepairs.bundles.bundle import Bundle
from facepairs.verification.provenance import read_provenance
from facepairs.verification.verifier import Verifier

RATE = {
    "max_fmr": 0.01,
    "threshold": 0.75,
}


def verify(*arguments, **options):
    return in_process("verify", *arguments, **options)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    out = tmp_path_factory.mktemp("b") / "bundle"
    return tiny_bundle(out, "embedding", errors=error_table(), thresholds=[RATE]).folder


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
    assert output["operating_point"]["threshold"] == 0.75
    assert (output["out"], output["same_content"], output["prior"]) == (str(out), 1, 0.5)
    done = verify("--bundle", bundle, "--pairs", photos / "good.csv", "--out", out)
    assert (done.returncode, "warning" in done.stderr) == (0, False)
    assert f"written: {out}, and where the scores come from: {out}.json\n" in done.stderr


def test_pairs_of_one_content_get_a_hint(bundle, photos, tmp_path):
    shutil.copy(photos / "0.png", tmp_path / "copy.png")
    (tmp_path / "p.csv").write_text(
        f"left,right\n{photos}/0.png,copy.png\n{photos}/0.png,{photos}/1.png\n"
    )
    done = verify("--bundle", bundle, "--pairs", tmp_path / "p.csv", "--out", tmp_path / "o.csv")
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
    options = ("--bundle", bundle, "--pairs", tmp_path / "p.csv", "--out", tmp_path / "o.csv")
    assert (
        f"warning: 2 pairs with people that {bundle} was trained or calibrated on: with others it "
        "may make more errors\n"
    ) in verify(*options).stderr
    assert json.loads(verify(*options, "--json").stdout)["pairs_with_known_people"] == 2
    warning = (
        f"warning: {bundle} was trained or calibrated on Ann: with others it may make more errors"
    )
    for person, warned in (("Ann", True), ("Dan", False)):
        two = (tmp_path / person / "1.png", tmp_path / "Dan" / "2.png", "--bundle", bundle)
        assert (warning in verify(*two).stderr.splitlines()) == warned
    monkeypatch.chdir(tmp_path / "Ann")
    assert warning in verify("1.png", "2.png", "--bundle", bundle).stderr.splitlines()
    search = verify("2.png", "--against", tmp_path, "--bundle", bundle)
    assert warning in search.stderr.splitlines()


def test_the_scores_say_where_they_come_from(bundle, photos, tmp_path):
    out = tmp_path / "o.csv"
    options = ("--pairs", photos / "pairs.csv", "--out", out, "--bundle", bundle)
    done = verify(*options, "--prior", 0.1, "--max-fmr", 0.01)
    assert ["probability", "at", "prior", "0.1"] in [
        line.split() for line in done.stdout.splitlines()
    ]
    origin, opened = read_provenance(out), Bundle.open(bundle)
    assert (origin.model, origin.pairs) == (str(bundle), str(photos / "pairs.csv"))
    assert (origin.threshold, origin.operating_point, origin.max_fmr) == (0.75, "fmr-0.01", 0.01)
    assert (origin.prior, origin.decisions) == (0.1, True)
    assert origin.identities == opened.identities
    assert origin.network_sha256 == opened.files[opened.network.file].sha256
    row = rows_of(out)[0]
    probability = opened.calibration.probability(float(row["score"]), prior=0.1)
    assert float(row["probability"]) == pytest.approx(probability)
    verify(*options[:-2], "--bundle", "default", check=None)
    assert read_provenance(out).model == "default"


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


def test_one_against_many(bundle, photos, tmp_path):
    options = (photos / "0.png", "--bundle", bundle, "--against", photos)
    done = verify(*options, "--out", tmp_path / "o.csv", "--top", 2)
    assert done.returncode == 1
    assert "warning: 1 of 4 photos could not be used" in done.stderr
    assert "broken.jpg" in done.stderr
    assert f"written: {tmp_path / 'o.csv'}" in done.stderr
    header, *table = done.stdout.splitlines()[-3:]
    assert header.split() == ["rank", "score", "match", "photo"]
    assert [line.split()[0] for line in table] == ["1", "2"]
    assert "probability" not in done.stdout
    assert len(rows_of(tmp_path / "o.csv")) == 4
    output = json.loads(verify(*options, "--json", "--max-fmr", 0.01).stdout)
    scores = [match["score"] for match in output["photos"]]
    assert scores == sorted(scores, reverse=True)
    assert {match["path"] for match in output["photos"]} == {"1.png", "2.png", "3.png"}
    assert [item["path"] for item in output["failed"]] == ["broken.jpg"]
    assert (output["operating_point"]["max_fmr"], output["schema"]) == (0.01, 3)
    assert output["expected_false_matches"] == pytest.approx(0.003)
    assert output["expected_false_matches_interval"] == pytest.approx([0.0015, 0.0105])


def test_copies_of_the_photo_are_no_matches(bundle, photos, tmp_path):
    for name in ("a.png", "b.png"):
        shutil.copy(photos / "0.png", tmp_path / name)
    done = verify(photos / "0.png", "--bundle", bundle, "--against", tmp_path, check=0)
    assert "2 photos with the same content as" in done.stderr
    assert done.stdout.count("copy") == 2
    assert "matches        0\n" in done.stdout


def test_thresholds_on_demand(bundle, photos):
    both = (photos / "0.png", photos / "1.png", "--bundle", bundle)
    score = json.loads(verify(*both, "--json").stdout)["score"]
    for threshold, code in ((0.0, int(score < 0)), (score, 0), (1, 1), ("-1", 0)):
        done = verify(*both, "--threshold", threshold, "--json")
        assert done.returncode == code
        assert json.loads(done.stdout)["operating_point"]["threshold"] == float(threshold)
    done = verify(*both, "--max-fmr", "0.01")
    assert "at this threshold 1 in 1,000 strangers" in done.stdout
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
        (["a.png", "b.png", "--threshold", "90"], "scores of this model lie from -1 to 1"),
        (["a.png", "b.png", "--balanced", "--threshold", "0"], "exclude each other"),
        (["a.png", "b.png", "--prior", "1"], "the prior is 1; give the share of genuine pairs"),
        (["--pairs", "p.csv", "--out", "o", "--prior", "-1"], "the prior is -1"),
        (["a.png", "--against", "d", "--prior", "0.1"], "--prior does not go with --against"),
        (["a.png"], "give two photos"),
        ([], "give two photos"),
        (["--pairs", "p.csv"], "--pairs needs --out"),
        (["a.png", "--pairs", "p.csv", "--out", "o"], "A does not go with --pairs"),
        (["--pairs", "p.csv", "--out", "o", "--against", "d"], "--against does not go with"),
        (["--pairs", "none.csv", "--out", "o"], "none.csv: No such file"),
        (["--pairs", "p.csv", "--out", "."], ".: is a folder; give the name of a file to write"),
        (["a.png", "b.png", "c.png"], "3 photos; give two, one and --against FOLDER, or a list"),
        (["--against", "d"], "--against needs the photo"),
        (["a.png", "b.png", "--against", "d"], "B does not go with --against"),
        (["a.png", "b.png", "--out", "o"], "--out does not go with two photos"),
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
