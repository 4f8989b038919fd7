"""`facepairs score`: a list of pairs in, a list of scores out."""

import csv
import json
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from processes.command_line import in_process

from facepairs.bundles.model import open_model
from facepairs.bundles.rates import Errors
from facepairs.verification.provenance import read_provenance
from facepairs.verification.verifier import Verifier

LIST = "left,right,genuine\n0.png,1.png,1\n0.png,broken.jpg,0\n2.png,3.png,0\n1.png,1.png,yes\n"


@pytest.fixture
def words(cosine_bundle: Path, noise: Path, tmp_path: Path) -> tuple[object, ...]:
    (tmp_path / "pairs.csv").write_text(LIST)
    files = (tmp_path / "pairs.csv", "--out", tmp_path / "out.csv", "--root", noise)
    return ("score", *files, "--bundle", cosine_bundle)


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def photos_sha256(folder: Path, names: Iterable[str]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for files, sorted by name."""
    lines = (f"{sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    return sha256("".join(sorted(lines, key=lambda line: line[66:])).encode()).hexdigest()


def as_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(in_process(*words, "--json").stdout))


def test_pairs(words, cosine_bundle, noise, tmp_path):
    out = tmp_path / "out.csv"
    done = in_process(*words, check=1)
    assert "warning: 1 of 4 pairs" in done.stderr
    assert f"written: {out}" in done.stderr
    rows = rows_of(out)
    assert rows[1]["error"] in done.stderr
    assert [bool(row["error"]) for row in rows] == [False, True, False, False]
    assert [row["genuine"] for row in rows] == ["1", "0", "0", "yes"]
    single = Verifier.load(cosine_bundle).verify(noise / "0.png", noise / "1.png")
    assert float(rows[0]["score"]) == pytest.approx(single.score, abs=1e-5)
    output = as_json(*words, "--max-fmr", "0.01")
    assert (output["pairs"], output["failed"], output["images"]) == (4, 1, 5)
    assert output["operating_point"]["threshold"] == 0.75
    assert (output["out"], output["same_content"], output["prior"]) == (str(out), 1, 0.5)
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n")
    assert "warning" not in in_process(*words, check=0).stderr


def test_people_of_the_training_are_named_and_pairs_with_them_counted(
    words, cosine_bundle, noise, tmp_path, monkeypatch
):
    for person in ("Ann", "Dan"):  # the bundle knows Ann
        (tmp_path / person).mkdir()
        for name in ("0.png", "1.png"):
            shutil.copy(noise / name, tmp_path / person / name)
    ann, dan = tmp_path / "Ann", tmp_path / "Dan"
    pairs = [(ann / "0.png", ann / "1.png"), (dan / "0.png", ann / "0.png")]
    pairs += [(dan / "0.png", dan / "1.png"), (ann / "none.png", ann / "0.png")]
    listed = "".join(f"{left},{right}\n" for left, right in pairs)
    (tmp_path / "pairs.csv").write_text("left,right\n" + listed)
    assert as_json(*words)["pairs_with_known_people"] == 2
    warning, model = "trained or calibrated on Ann", ("--bundle", cosine_bundle)
    for person in ("Ann", "Dan"):
        done = in_process("verify", tmp_path / person / "0.png", dan / "1.png", *model)
        assert (warning in done.stderr) == (person == "Ann")
    monkeypatch.chdir(ann)
    for command in (("verify", "0.png", "1.png"), ("search", "1.png", tmp_path)):
        assert warning in in_process(*command, *model).stderr


def test_the_scores_say_where_they_come_from(words, cosine_bundle, noise, tmp_path):
    in_process(*words, "--prior", 0.1, "--max-fmr", 0.01)
    origin, opened = read_provenance(tmp_path / "out.csv"), open_model(cosine_bundle)
    assert (origin.model, origin.pairs) == (str(cosine_bundle), str(tmp_path / "pairs.csv"))
    point = origin.operating_point
    assert (point.threshold, point.name, point.max_fmr) == (0.75, "fmr-0.01", 0.01)
    assert point.errors == Errors()  # those of the model are not copied
    assert (origin.prior, origin.failures) == (0.1, {"broken.jpg": "not_image"})
    names = ("0.png", "1.png", "2.png", "3.png", "broken.jpg")
    assert origin.photos_sha256 == photos_sha256(noise, names)
    assert origin.identities == opened.origin.identities
    assert origin.embedder_sha256 == opened.network.embedder_sha256
    row = rows_of(tmp_path / "out.csv")[0]
    probability = opened.profile.calibration.probability(float(row["score"]), prior=0.1)
    assert float(row["probability"]) == pytest.approx(probability)
    in_process(*words[:-1], "default")
    assert read_provenance(tmp_path / "out.csv").model == "default"
