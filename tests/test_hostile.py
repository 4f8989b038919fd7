"""Hostile files give a verdict or a one-line error everywhere, quickly and in bounded memory.

A sample; `make hostile` uses the whole corpus.
"""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from drawn.photos import encoded, put
from hostile import images as hostile
from hostile import run as hostile_run
from processes.command_line import facepairs, in_process

SAMPLE = 20


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photo") / "photo.jpg"
    path.write_bytes(encoded(hostile.face(1), "JPEG"))
    return path


@pytest.fixture(scope="module")
def files() -> list[hostile.Hostile]:
    return list(hostile.hostile_files(0, mutants=7, bombs=False, size=(90, 70)))


@pytest.fixture
def odd(tmp_path: Path, photo: Path) -> list[tuple[str, Path]]:
    return list(hostile.odd_places(tmp_path / "faces" / "Ann", photo.read_bytes()))


def test_the_corpus_is_the_same_each_time(files: list[hostile.Hostile]) -> None:
    assert files == list(hostile.hostile_files(0, mutants=7, bombs=False, size=(90, 70)))
    assert len({file.name + file.kind for file in files}) == len(files) > 400


def test_a_sample_and_special_files_end_in_verdicts_and_one_line_errors(
    files: list[hostile.Hostile], photo: Path, odd: list[tuple[str, Path]], tmp_path: Path
) -> None:
    chosen = np.random.Generator(np.random.Philox(5)).permutation(len(files))[:SAMPLE]
    paths = [put(tmp_path, f"{number}.jpg", files[number].data) for number in chosen.tolist()]
    outcomes = list(hostile_run.run([*paths, *(path for _, path in odd)], photo))
    assert len(outcomes) == (SAMPLE + len(odd)) * len(hostile_run.WAYS)
    for outcome in outcomes:
        assert outcome.result in ("verdict", "error"), outcome
        assert outcome.seconds <= 5, outcome
        assert outcome.megabytes <= 1024, outcome
    end = SAMPLE * len(hostile_run.WAYS)
    results = [outcome.result for outcome in outcomes[:end]]
    assert results.count("verdict") > SAMPLE
    assert results.count("error") > 10
    verified = [outcome for outcome in outcomes[end:] if outcome.way == "verify"]
    for (what, _), outcome in zip(odd, verified, strict=True):
        assert (outcome.result == "verdict") == (what == "name"), outcome


@pytest.mark.usefixtures("odd")
def test_the_commands_handle_names_that_are_not_unicode(tmp_path: Path, photo: Path) -> None:
    faces = tmp_path / "faces"
    strict = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = facepairs("data", "check", faces, check=1, env=strict)
    assert "\x1b" not in done.stdout
    assert r"dew\nline.jpg" in done.stdout
    report = json.loads(facepairs("data", "check", faces, "--json", check=1, env=strict).stdout)
    named = {os.fsencode(path) for finding in report["findings"] for path in finding["paths"]}
    assert b"Ann/dot-utf8-\xff\xfe.jpg" in named
    done = facepairs("search", photo, faces, check=1, env=strict)
    assert "\x1b" not in done.stdout + done.stderr
    assert r"new\nline.jpg" in done.stdout
    found = json.loads(facepairs("search", photo, faces, "--json", check=1, env=strict).stdout)
    # One name begins with a dot and is hidden; four links and a pipe are not photos.
    assert len(found["photos"]) == len(hostile.NAMES) - 1
    assert len(found["photos"] + found["failed"]) == 2 * len(hostile.NAMES) - 1 + 5


@pytest.mark.usefixtures("odd")
def test_paths_in_a_list_of_pairs_may_point_anywhere(tmp_path: Path, photo: Path) -> None:
    pairs, out = tmp_path / "faces" / "pairs.csv", tmp_path / "out.csv"
    names = ["../faces/Ann/tab\tx", "Ann/device.jpg", "Ann/fifo.jpg", "Ann", "..", "/dev/zero"]
    names += ["Ann/looping.jpg", "a" * 4000, "nul\0", str(photo)]
    pairs.write_text("\n".join(["left,right", *(f"{photo},{name}" for name in names)]))
    in_process("score", pairs, "--out", out, check=1)
    with open(out, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [not row["error"] for row in rows] == [False] * 9 + [True]
