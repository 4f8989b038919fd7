"""What commands print as text, line by line, where the numbers are known."""

import json
import shutil
from pathlib import Path

import pytest
from drawn.photos import noise_photos
from processes.command_line import in_process
from processes.ctrl_c import press_after
from tiny.bundles import error_table, tiny_bundle

import facepairs
from facepairs.bundles.rates import OperatingPoint
from facepairs.cli.shared.output import (
    MAX_SHOWN,
    log,
    log_first,
    percent,
    warn_of_known,
)
from facepairs.evaluation.protocols import MOST_IMPOSTORS
from facepairs.support.results import SCHEMA
from facepairs.verification.verifier import Verifier


def test_drawing_people(tmp_path: Path) -> None:
    words = ("data", "synth", "--people", 2, "--photos", 3, "--out")
    done = in_process(*words, tmp_path / "a", check=0)
    assert done.stdout == f"written  6 photos of 2 people in {tmp_path / 'a'}\n"
    told = json.loads(in_process(*words, tmp_path / "b", "--json", check=0).stdout)
    assert told == {"schema": SCHEMA, "out": str(tmp_path / "b"), "people": 2, "photos": 6}


def test_the_plan_of_a_study() -> None:
    assert in_process("plan", "--fmr", 0.0001, "--fnmr", 0.05, check=0).stdout.splitlines() == [
        "FMR at most 0.01 %  273 people, 1,092 photos, 37,128 pairs of strangers, if no stranger "
        "is accepted",
        "                    1,243 people, 4,972 photos, 771,903 pairs of strangers, if the true "
        "rate is 0.005 %: 80 % of such studies show it",
        f"                    evaluate draws {MOST_IMPOSTORS:,} pairs of strangers: list more with "
        "--pairs",
        "FNMR at most 5 %    72 people, 288 photos, 432 genuine pairs, if no genuine pair is "
        "missed",
        "                    264 people, 1,056 photos, 1,584 genuine pairs, if the true rate is "
        "2.5 %: 80 % of such studies show it",
    ]
    (fmr,) = json.loads(in_process("plan", "--fmr", 0.01, "--photos", 2, "--json").stdout)["rates"]
    assert fmr["with_errors"]["pairs"] < MOST_IMPOSTORS
    assert "evaluate" not in in_process("plan", "--fmr", 0.01, "--photos", 2, check=0).stdout


def test_the_version() -> None:
    assert in_process("--version", check=0).stdout == f"facepairs {facepairs.__version__}\n"


def test_what_a_verifier_is(cosine_bundle: Path) -> None:
    first, *lines = in_process("info", cosine_bundle, check=0).stdout.splitlines()
    assert first.startswith("model              tiny (embedding network), made 20")
    assert lines == [
        "photos             framed like LFW's; each is used whole, without looking for a face "
        "(lfw-frame)",
        "trained on         0 people, 0 images, protocol none, seed 1",
        "licence            not recorded",
        "calibration error  1 % (ECE, on pairs it was not fitted to)",
        "decides at         score -0.1000: balanced",
        "                   46 in 100 strangers would pass, 64 in 100 of those who look alike; "
        "1 in 22 genuine pairs would be missed (drawn pairs)",
        "or at              score 0.7500: FMR 1 %",
        "                   1 in 1,000 strangers (at most 1 in 290) would pass, 1 in 100 of those "
        "who look alike; 30 in 100 genuine pairs would be missed (drawn pairs)",
        "files              all SHA-256 checksums match",
        "runs on            network on cpu",
    ]


def test_forgetting_photos(tmp_path: Path) -> None:
    file = tmp_path / "photos.sqlite"
    words = ("forget", "--photo-cache", file)
    assert in_process(*words, check=0).stdout == f"nothing at  {file}\n"
    noise_photos(tmp_path, 2)
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n")
    score = ("score", tmp_path / "pairs.csv", "--out", tmp_path / "s.csv")
    in_process(*score, "--photo-cache", file)
    assert in_process(*words, check=0).stdout == f"deleted  {file}\n"


def test_scoring_pairs(cosine_bundle: Path, noise: Path, tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    rows = ["0.png,0.png", "0.png,1.png", "2.png,broken.jpg"]
    pairs.write_text("\n".join(["left,right", *rows]) + "\n")
    words = ("score", pairs, "--out", out, "--root", noise, "--bundle", cosine_bundle)
    done = in_process(*words, "--max-fmr", 0.01, "--prior", 0.2, check=1)
    assert done.stdout.splitlines() == [
        "pairs          3",
        "images         4, each read once",
        "same person    2",
        "failed         1",
        "several faces  0 images: the most prominent was used",
        "threshold      0.7500 (FMR 1 %)",
        "errors         at this threshold 1 in 1,000 strangers (at most 1 in 290) would pass, "
        "1 in 100 of those who look alike",
        "               30 in 100 genuine pairs would be missed (drawn pairs)",
        "probability    at prior 0.2",
    ]
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning")]
    assert warned[0].startswith("warning: 1 of 3 pairs could not be scored, first: ")
    assert "--root names" not in warned[0]
    assert warned[1].startswith("warning: 1 pair of a photo and itself or a copy")
    assert len(warned) == 2
    pairs.write_text("left,right\n7.png,8.png\n")
    done = in_process(*words, check=1)
    assert f"; --root names the folder of the photos that {pairs} lists" in done.stderr


def test_a_search_prints_the_best_twenty(cosine_bundle: Path, tmp_path: Path) -> None:
    photos = noise_photos(tmp_path, 23, (32, 32))
    words = ("search", photos[0], tmp_path, "--bundle", cosine_bundle)
    found = json.loads(in_process(*words, "--json", check=0).stdout)["photos"]
    assert len(found) == 22
    threshold = found[9]["score"]
    lines = in_process(*words, "--threshold", threshold, check=0).stdout.splitlines()
    assert lines[:2] == ["searched       22 faces in 22 photos", "matches        10 photos"]
    assert lines[2].startswith("false matches  ")
    table = [line.split() for line in lines[lines.index("") + 1 :]]
    assert table[0] == ["rank", "score", "match", "photo", "face"]
    assert table[1:] == [
        [str(rank), f"{one['score']:.4f}", "yes" if rank <= 10 else "no", one["path"]]
        for rank, one in enumerate(found[:20], 1)
    ]


@pytest.mark.parametrize(("number", "told"), [(MAX_SHOWN, 0), (MAX_SHOWN + 1, 1)])
def test_of_many_messages_the_first_are_told(number: int, told: int, capsys) -> None:
    log_first([f"line {place}" for place in range(number)])
    lines = capsys.readouterr().err.splitlines()
    assert lines[:MAX_SHOWN] == [f"line {place}" for place in range(MAX_SHOWN)]
    assert lines[MAX_SHOWN:] == [f"… and {told} more: use --json"] * told


def test_shares_have_three_digits() -> None:
    assert [percent(share) for share in (0.012345, 1.0, 0.0)] == ["1.23 %", "100 %", "0 %"]
    assert percent(None).startswith("unknown")


def test_a_cache_of_pairs(faces: Path, tmp_path: Path) -> None:
    words = (
        "cache",
        "build",
        faces,
        "--pair-count",
        10,
        "--align",
        "none",
        "--out",
        tmp_path / "c",
    )
    for more, crops in (((), "JPEG"), (("--encoding", "raw"), "raw pixels")):
        done = in_process(*words, *more, check=0)
        size = sum(path.stat().st_size for path in (tmp_path / "c").glob("*.tfrecord"))
        assert done.stdout.splitlines() == [
            f"written  {tmp_path / 'c'}",
            "pairs    10 in 1 shard",
            f"crops    {crops}",
            f"size     {size / 1e6:.1f} MB",
        ]


def test_a_calibration_and_one_that_finds_nothing_better(
    cosine_bundle: Path, faces: Path, tmp_path: Path
) -> None:
    begin, end = ["bundle", "measured on"], ["verify decides", "errors"]
    rest = ["probability", "calibration error"]
    former, out = cosine_bundle, tmp_path / "first"
    for more in (([], ["before"]), (["kept as it was"], [])):
        shown = in_process("calibrate", former, faces, "--out", out, check=0).stdout
        keys = [line.partition("  ")[0] for line in shown.splitlines()]
        assert list(filter(None, keys)) == [*begin, *more[0], *end, *rest, *more[1], "next"]
        assert "144 genuine and " in shown
        former, out = out, tmp_path / "second"


def test_an_export(cosine_bundle: Path, tmp_path: Path) -> None:
    done = in_process("export", cosine_bundle, "--out", tmp_path / "out", check=0)
    assert done.stdout.splitlines() == [
        f"written     {tmp_path / 'out'} (onnx; README.md there explains its use)",
        "inputs      image; output embedding",
        "difference  at most 0 from the bundle's network, on 8 crops (tolerance 0.0001)",
    ]
    for place, made in ((cosine_bundle, "made 20"), (tmp_path / "out", "described by ")):
        first = in_process("info", place, check=0).stdout.splitlines()[0]
        assert f"(embedding network), {made}" in first


def test_the_default_comes_first_then_other_thresholds_rising_then_what_is_missing(
    tmp_path: Path,
) -> None:
    points = (
        OperatingPoint(0.75, "fmr-0.01", 0.01),
        OperatingPoint(0.9, "fmr-0.005", 0.005),
        OperatingPoint(None, "fmr-0.001", 0.001, reason="too few pairs"),
        OperatingPoint(None, "fmr-0.0001", 0.0001),
    )
    measured = {"errors": error_table(), "thresholds": points, "default_fmr": 0.01}
    bundle = tiny_bundle(tmp_path / "b", "embedding", **measured)
    lines = in_process("info", bundle.folder, check=0).stdout.splitlines()
    begin = ("decides at", "or at", "FMR")
    assert [" ".join(line.split()) for line in lines if line.startswith(begin)] == [
        "decides at score 0.7500: FMR 1 %",
        "or at score -0.1000: balanced",
        "or at score 0.9000: FMR 0.5 %",
        "FMR 0.1 % too few pairs",
        "FMR 0.01 % no threshold",
    ]


def test_enrolment_without_names_and_under_new_ones(few_faces: Path, tmp_path: Path) -> None:
    people, known = tmp_path / "people", tmp_path / "known.gallery"
    for number, folder in enumerate(sorted(few_faces.iterdir())[:3]):
        (people / f"person_{number:04}").mkdir(parents=True)
        shutil.copy(min(folder.iterdir()), people / f"person_{number:04}" / f"{number}.jpg")
    (people / "person_0000").rename(people / "Ann")
    words = ("gallery", "add", known, people, "--any-quality")
    assert in_process(*words, check=0).stdout.splitlines() == [
        "enrolled       1 photo",
        "already there  0",
        "not enrolled   0",
        "gallery        1 person, 1 photo",
        "left out       2 people without a name; rename their folders, or give --unnamed",
    ]
    in_process(*words, "--unnamed", check=0)
    (people / "person_0001").rename(people / "Bea")
    assert in_process(*words, check=0).stdout.splitlines() == [
        "enrolled       0 photos",
        "already there  2",
        "not enrolled   0",
        "gallery        3 people, 3 photos",
        "left out       1 person without a name; rename their folders, or give --unnamed",
        "renamed        person_0001: Bea",
    ]


@pytest.mark.usefixtures("few_validation_pairs")
def test_a_training_that_is_stopped_says_how_to_go_on(
    faces: Path, difference_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    words = ("train", faces, "--out", out, "--align", "none", "--config", difference_settings)
    press_after(monkeypatch, 1)
    done = in_process(*words, check=130)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert any(line.startswith("stopping after this epoch") for line in lines)
    assert not any(line.startswith("done") for line in lines)
    resume = f"facepairs train {faces} --out {out} --resume"
    assert lines[-1] == f"stopped after 1 epoch; continue with: {resume}"


@pytest.mark.parametrize(("value", "told"), [("", "hello\n"), ("0", "hello\n"), ("1", "")])
def test_a_variable_of_0_hides_nothing(
    value: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FACEPAIRS_QUIET", value)
    log("hello")
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("people", "told"),
    [
        (["Dan"], []),
        (["Ann", "Dan"], ["Ann"]),
        (["Bé", "Ann"], ["Ann and Bé"]),
        (["Ann", "Bé", "Cyd", "Dan"], ["3 of these people"]),
    ],
)
def test_people_whom_the_model_knows_are_named_while_they_are_few(
    people: list[str], told: list[str], cosine_bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = [Path(person, "1.jpg") for person in people]
    warn_of_known(Verifier.load(cosine_bundle), "mine", photos)
    lines = capsys.readouterr().err.splitlines()
    begin = "warning: mine was trained or calibrated on "
    assert [line.removeprefix(begin).partition(";")[0] for line in lines] == told


def test_a_photo_cache_that_cannot_be_written_is_told_once(noise: Path, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n2.png,3.png\n")
    words = ("score", tmp_path / "pairs.csv", "--out", tmp_path / "s.csv", "--root", noise)
    for number in range(2):  # each time once
        place = tmp_path / "a file" / f"{number}.sqlite"
        done = in_process(*words, "--photo-cache", place)
        (line,) = [line for line in done.stderr.splitlines() if "not remembered" in line]
        assert line.startswith(f"warning: {place}: ")
