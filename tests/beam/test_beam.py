"""Passes on Beam give the results of threads, and name in one line what went wrong."""

import errno
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("apache_beam")

from PIL import Image
from processes.command_line import facepairs
from storage.memory_files import FILES
from tiny.bundles import FRAME_PX, tiny_bundle

from facepairs.beam import runner as runner_module
from facepairs.beam.runner import make_ordered_map
from facepairs.beam.score_list import score_list_at
from facepairs.bundles.error_profile import operating_point
from facepairs.errors import BadConfig, BadData, BadImage, BadRun
from facepairs.support.console import showing
from facepairs.support.parallel import thread_map
from facepairs.verification.verifier import Verifier

DIRECT = "DirectRunner"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Four people with three photos each: one is truncated, one a copy of another person's."""
    root = tmp_path_factory.mktemp("beam") / "photos"
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 256, (FRAME_PX, FRAME_PX, 3), np.uint8)
        path = root / f"Pérson_{number // 3}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    cut, twin = root / "Pérson_0" / "1.png", root / "Pérson_3" / "10.png"
    cut.write_bytes(cut.read_bytes()[:200])
    twin.write_bytes((root / "Pérson_2" / "8.png").read_bytes())
    (root / "Pérson_1" / "notes.txt").write_text("x")
    return root


@pytest.fixture
def remote(photos):
    """The same photos in an object store."""
    FILES.clear()
    for path in photos.rglob("*.*"):
        FILES[f"mem://bucket/photos/{path.relative_to(photos)}"] = path.read_bytes()
    yield "mem://bucket/photos"
    FILES.clear()


def squared(number: int) -> int:
    if number == 77:
        raise BadImage("77.jpg: damaged; replace the file")
    return number * number


def divided(number: int) -> float:
    return 1 / number


@pytest.mark.parametrize("elements", [1, 7, 4096])
def test_results_are_in_the_order_of_the_items(monkeypatch, elements):
    monkeypatch.setattr(runner_module, "MAX_ELEMENTS", elements)
    run = make_ordered_map(DIRECT, ())
    assert list(run(squared, range(50))) == [n * n for n in range(50)]
    assert list(run(squared, [])) == []


def test_an_error_of_the_work_is_raised_to_the_caller():
    with pytest.raises(BadImage):
        list(make_ordered_map(DIRECT, ())(squared, range(60, 90)))
    with pytest.raises(BadRun, match="division by zero"):
        list(make_ordered_map(DIRECT, ())(divided, [0]))


def test_scratch_files_are_in_temp_location_and_are_removed():
    FILES.clear()
    run = make_ordered_map(DIRECT, ["--temp_location", "mem://bucket/tmp"])
    results = run(squared, range(5))
    assert next(results) == 0
    assert {name.rpartition("/")[2] for name in FILES} >= {"work", "items", "results-0"}
    assert all(name.startswith("mem://bucket/tmp/facepairs-") for name in FILES)
    assert list(results) == [1, 4, 9, 16]
    assert dict(FILES) == {}


@pytest.mark.parametrize(
    ("runner", "options", "message"),
    [
        ("Nope", [], "Nope.*DirectRunner"),
        ("no.such.Runner", [], "no.such.Runner"),
        (DIRECT, ["--direct_num_worker=2"], "direct_num_worker:"),
        (DIRECT, ["--direct_num_workers", "x"], "direct_num_workers"),
        (DIRECT, ["--help"], "--help"),
        (DIRECT, ["photos"], "photos:"),
        ("FlinkRunner", [], "temp_location"),
        (None, ["--direct_num_workers", "2"], "direct_num_workers"),
    ],
)
def test_a_wrong_runner_or_option_is_one_clear_error(runner, options, message):
    with pytest.raises(BadConfig, match=message):
        make_ordered_map(runner, options)


def test_without_a_runner_the_work_is_done_in_threads():
    assert make_ordered_map(None, ()) is thread_map


@pytest.mark.parametrize("kind", ["embedding", "pair"])
def test_the_scores_are_the_same_on_beam_and_for_remote_files(photos, remote, tmp_path, kind):
    verifier = Verifier.load(tiny_bundle(tmp_path / "bundle", kind).folder, threads=1)
    names = [str(path.relative_to(photos)) for path in sorted(photos.rglob("*.*"))]
    pairs = tmp_path / "pairs.csv"
    rows = [f"{a},{b}\n" for a in names for b in (*names[::3], "none.png")]
    pairs.write_text("left,right\n" + "".join(rows))
    point = operating_point(verifier.model.profile)
    outs = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv", "d.csv")]
    ways = ((photos, None), (photos, DIRECT), (remote, None), (remote, DIRECT))
    reports = [
        score_list_at(verifier, pairs, out, point, str(root), runner=runner)
        for out, (root, runner) in zip(outs, ways, strict=True)
    ]
    expected, remote_scores = outs[0].read_bytes(), outs[2].read_bytes()
    assert outs[1].read_bytes() == expected
    assert outs[3].read_bytes() == remote_scores
    hint = b" same-content"  # of remote photos it is known by their names alone
    expected = expected.replace(str(photos).encode(), remote.encode())
    assert remote_scores.replace(hint, b"") == expected.replace(hint, b"")
    for report in reports:
        assert (report.pairs, report.images) == (len(rows), len(names) + 1)
        assert report.failed == reports[0].failed > 0
        assert report.images_failed == 3


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (TimeoutError(errno.ETIMEDOUT, "late"), "^mem://bucket/photos: "),
        (OSError(errno.EIO, "no route", "mem://x"), "^mem://x: "),
    ],
)
def test_failures_with_remote_photos_name_a_place(remote, tmp_path, failure, message):
    verifier = Verifier.load(tiny_bundle(tmp_path / "bundle", "embedding").folder, threads=1)
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n")

    def fail(label):
        raise failure

    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    with pytest.raises(BadData, match=message), showing(progress=fail):
        score_list_at(verifier, pairs, out, operating_point(verifier.model.profile), remote)


@pytest.mark.slow
def test_processes_give_the_same_scores(faces, tmp_path):
    names = sorted(str(path.relative_to(faces)) for path in faces.rglob("*.jpg"))
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right\n" + "".join(f"{a},{b}\n" for a, b in pairwise(names)))
    processes = ("--", "--direct_running_mode", "multi_processing", "--direct_num_workers", 2)
    score = ("score", pairs, "--root", faces, "--out")
    facepairs(*score, tmp_path / "a.csv", check=0)
    facepairs(*score, tmp_path / "b.csv", "--runner", DIRECT, *processes, check=0)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
