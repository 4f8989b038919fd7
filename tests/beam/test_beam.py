"""A pass on Beam gives what it gives in threads, and says in one line what went wrong."""

import hashlib
import sys
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("apache_beam")

from command_line import facepairs
from memory_files import FILES
from PIL import Image
from tiny_bundles import FRAME_PX, tiny_bundle

from facepairs.beam import runner as runner_module
from facepairs.beam.places import place
from facepairs.beam.runner import choose_run
from facepairs.beam.verify import verify_pairs_anywhere
from facepairs.bundles.thresholds import operating_point
from facepairs.cli.main import main
from facepairs.data.doctor import check_dataset
from facepairs.errors import BadConfig, BadImage, BadRun
from facepairs.support.parallel import in_order
from facepairs.verification.verifier import Verifier

DIRECT = "DirectRunner"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Four people with three photos each; one photo is cut, one is another's, one is no photo."""
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
def elsewhere(photos):
    """The same photos in a store of objects."""
    FILES.clear()
    for path in photos.rglob("*.*"):
        FILES[f"mem://bucket/photos/{path.relative_to(photos)}"] = path.read_bytes()
    yield place("mem://bucket/photos")
    FILES.clear()


def squared(number: int) -> int:
    if number == 77:
        raise BadImage("77.jpg: damaged; replace the file")
    return number * number


def divided(number: int) -> float:
    return 1 / number


@pytest.mark.parametrize("elements", [1, 7, 4096])
def test_results_come_in_the_order_of_the_items(monkeypatch, elements):
    monkeypatch.setattr(runner_module, "MOST_ELEMENTS", elements)
    assert list(choose_run(DIRECT, ())(squared, range(50))) == [n * n for n in range(50)]


def test_nothing_to_do_is_no_pipeline():
    assert list(choose_run(DIRECT, ())(squared, [])) == []


def test_what_the_work_raises_is_raised_here():
    with pytest.raises(BadImage, match=r"^77\.jpg: damaged; replace the file$"):
        list(choose_run(DIRECT, ())(squared, range(60, 90)))
    with pytest.raises(BadRun, match=r"the pipeline failed: .*division by zero"):
        list(choose_run(DIRECT, ())(divided, [0]))


def test_scratch_files_lie_where_they_are_told_and_go():
    FILES.clear()
    run = choose_run(DIRECT, ["--temp_location", "mem://bucket/tmp"])
    results = run(squared, range(5))
    assert next(results) == 0
    assert {name.rpartition("/")[2] for name in FILES} >= {"work", "items", "results-00000"}
    assert all(name.startswith("mem://bucket/tmp/facepairs-") for name in FILES)
    assert list(results) == [1, 4, 9, 16]
    assert dict(FILES) == {}


@pytest.mark.parametrize(
    ("runner", "options", "message"),
    [
        ("Nope", [], "--runner is 'Nope'; Beam knows .*DirectRunner"),
        ("no.such.Runner", [], "--runner no.such.Runner"),
        (DIRECT, ["--direct_num_worker=2"], "--direct_num_worker.*: Beam knows no such option"),
        (DIRECT, ["--direct_num_workers", "x"], "direct_num_workers: invalid int value: 'x'"),
        (DIRECT, ["--help"], "--help"),
        (DIRECT, ["photos"], "photos: Beam knows no such option"),
        ("FlinkRunner", [], "need a folder that this machine sees, too.*--temp_location"),
        (None, ["--direct_num_workers", "2"], "unexpected, unless --runner names"),
    ],
)
def test_a_wrong_runner_or_option_is_told(runner, options, message):
    with pytest.raises(BadConfig, match=message):
        choose_run(runner, options)


def test_without_beam_the_command_that_installs_it_is_told(monkeypatch, photos, capsys):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(SystemExit) as caught:
        main(["data", "check", str(photos), "--runner", DIRECT])
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert (
        told == "facepairs: error: --runner DirectRunner needs Apache Beam: "
        "pip install 'facepairs[beam]'\n"
    )


def test_no_runner_is_threads():
    assert choose_run(None, ()) is in_order


def test_the_same_report(photos, elsewhere):
    here = check_dataset(photos).to_json()
    assert not here["ok"]
    assert {finding["kind"] for finding in here["findings"]} >= {"same_photo_two_people"}
    assert check_dataset(photos, run=choose_run(DIRECT, ())).to_json() == here
    for run in (in_order, choose_run(DIRECT, ())):
        there = check_dataset(elsewhere, run=run).to_json()
        assert {**there, "root": here["root"]} == here


@pytest.mark.parametrize("kind", ["embedding", "pair"])
def test_the_same_scores(photos, elsewhere, tmp_path, kind):
    verifier = Verifier.load(tiny_bundle(tmp_path / "bundle", kind).folder, threads=1)
    names = [str(path.relative_to(photos)) for path in sorted(photos.rglob("*.*"))]
    pairs = tmp_path / "pairs.csv"
    rows = [f"{a},{b}\n" for a in names for b in (*names[::3], "none.png")]
    pairs.write_text("left,right\n" + "".join(rows) + "malformed\n")
    FILES["mem://bucket/pairs.csv"] = pairs.read_bytes()
    point = operating_point(verifier.bundle)
    outs = tmp_path / "a.csv", tmp_path / "b.csv", place("mem://bucket/scores.csv")
    runs = in_order, choose_run(DIRECT, ()), choose_run(DIRECT, ())
    froms = pairs, pairs, place("mem://bucket/pairs.csv")
    roots = photos, photos, elsewhere
    reports = [
        verify_pairs_anywhere(verifier, listed, out, point, root, run=run, framing=False)
        for listed, out, root, run in zip(froms, outs, roots, runs, strict=True)
    ]
    wanted = outs[0].read_bytes()
    assert outs[1].read_bytes() == wanted
    assert outs[2].read_bytes() == wanted.replace(str(photos).encode(), b"mem://bucket/photos")
    for report in reports:
        assert (report.pairs, report.images) == (len(rows) + 1, len(names) + 1)
        assert report.failed == reports[0].failed > 0
        assert report.images_failed == 3
    assert not list(tmp_path.glob("*.partial"))
    summed = FILES["mem://bucket/scores.csv.sha256"].decode()
    assert summed == f"{hashlib.sha256(outs[2].read_bytes()).hexdigest()}  scores.csv\n"


def test_interrupted_work_elsewhere_is_not_kept(photos, tmp_path):
    verifier = Verifier.load(tiny_bundle(tmp_path / "bundle", "embedding").folder, threads=1)
    with pytest.raises(BadConfig, match="--resume needs an --out on this machine"):
        verify_pairs_anywhere(
            verifier,
            tmp_path / "pairs.csv",
            place("mem://bucket/scores.csv"),
            operating_point(verifier.bundle),
            resume=True,
        )


@pytest.mark.slow
def test_processes_give_the_same_report_and_scores(faces, tmp_path):
    names = sorted(str(path.relative_to(faces)) for path in faces.rglob("*.jpg"))
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right\n" + "".join(f"{a},{b}\n" for a, b in pairwise(names)))
    processes = ("--", "--direct_running_mode", "multi_processing", "--direct_num_workers", 2)
    here = facepairs("data", "check", faces, "--json", check=0)
    there = facepairs("data", "check", faces, "--json", "--runner", DIRECT, *processes, check=0)
    assert there.stdout == here.stdout
    score = ("verify", "--pairs", pairs, "--root", faces, "--out")
    facepairs(*score, tmp_path / "a.csv", check=0)
    facepairs(*score, tmp_path / "b.csv", "--runner", DIRECT, *processes, check=0)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
