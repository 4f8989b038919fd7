import colorsys
import io
import itertools
import json
import multiprocessing
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import numpy as np
import psutil
import pytest
from PIL import Image
from processes.command_line import in_process

from facepairs.bench import job as bench_job
from facepairs.bench import stores, usual, worker
from facepairs.bench.job import SEED, Batch, Job
from facepairs.bench.report import BAR_COLUMNS, bars, conclusion, to_json, to_text
from facepairs.bench.rows import ROWS, Measurement, Row, Settings, Spec, select_rows
from facepairs.bench.run import Line, Results, run_bench
from facepairs.bench.worker import (
    MIN_BATCHES,
    WARM_UP_BATCHES,
    measure,
    row_function,
    run_worker,
)
from facepairs.choices import BenchRow
from facepairs.data.sampler import PairSampler
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.errors import BadConfig, BadData
from facepairs.support import console

PEOPLE, PHOTOS, BATCH, CROP_PX = 10, 4, 8, 48


def colour(image: int) -> tuple[int, ...]:
    """One of 40 colours that are easy to distinguish."""
    turn, light = divmod(image, 2)
    return tuple(round(255 * c) for c in colorsys.hls_to_rgb(turn / 20, 0.3 + 0.3 * light, 1.0))


COLOURS = np.array([colour(image) for image in range(PEOPLE * PHOTOS)], float)


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench") / "faces"
    for image in range(PEOPLE * PHOTOS):
        path = root / f"Person_{image // PHOTOS}" / f"photo_{image % PHOTOS}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (250, 250), colour(image)).save(path, quality=95)
    return root


@pytest.fixture
def spec(faces: Path, tmp_path: Path) -> Spec:
    """A run whose crops are planned; the colours show no face."""
    settings = Settings(
        str(faces), ROWS, batch_size=BATCH, crop_px=CROP_PX, seconds=0.01, align="none"
    )
    spec = Spec(settings, str(tmp_path), "pil")
    Job(spec).prepare()
    return spec


def changed(spec: Spec, **settings: Any) -> Spec:
    return replace(spec, settings=replace(spec.settings, **settings))


def images_in(batch: Batch) -> tuple[list[int], list[int]]:
    """Return which images a batch shows, recognised by their colours."""
    images = batch.images
    if isinstance(images, tuple):
        images = np.concatenate([np.asarray(side) for side in images])
    pixels = np.asarray(images)
    assert pixels.shape == (2 * batch.pairs, CROP_PX, CROP_PX, 3)
    middle = pixels[:, CROP_PX // 2, CROP_PX // 2]
    centre = middle.astype(float) * (1 if pixels.dtype == np.uint8 else 255)
    distance = np.abs(centre[:, None] - COLOURS).sum(axis=2)
    assert distance.min(axis=1).max() < 12
    numbers = distance.argmin(axis=1).tolist()
    return numbers[: batch.pairs], numbers[batch.pairs :]


@pytest.mark.parametrize("name", [name for name in ROWS if name != "limit"])
def test_all_rows_yield_the_same_pairs_in_the_same_order(
    name: str, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_job, "BLOCKS", 1)  # of pairs in a cache
    if name == "files-unaligned":  # is skipped where nothing is aligned
        monkeypatch.setattr(stores, "UNALIGNED", "")
    job = Job(replace(spec, name=name))
    if ROWS[name].has_cache:
        built = stores.build(job)
        assert built.disk_mb == sum(file.stat().st_size for file in job.cache.iterdir()) / 1e6
        assert 0 < built.build_s < 60
        pixels_mb = 2 * len(job.pairs) * 3 * CROP_PX**2 / 1e6
        assert (built.disk_mb > pixels_mb) == (name == "tfrecord-raw")
    batches = row_function(ROWS[name])(job)
    done = 0
    for batch in (next(batches), next(batches)):
        assert batch.pairs == (10 if name == "article" else BATCH)
        pairs = job.pairs.where(slice(done, done + batch.pairs))
        left, right = images_in(batch)
        assert left == pairs.left.tolist()
        assert right == pairs.right.tolist()
        assert np.asarray(batch.genuine).astype(bool).tolist() == pairs.genuine.tolist()
        done += batch.pairs


def test_stores_cut_aligned_faces_unless_told_otherwise(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    root = tmp_path_factory.mktemp("drawn") / "faces"
    write_synthetic_faces(root, people=3, photos=3, seed=5)
    crops = {}
    for name, align in (
        ("files", "landmarks"),
        ("memory", "landmarks"),
        ("files-unaligned", "landmarks"),
        ("files", "none"),
    ):
        job = Job(Spec(Settings(str(root), ROWS, align=align), str(tmp_path), name))
        job.prepare()
        crops[name, align] = np.asarray(next(row_function(ROWS[name])(job)).images)
    aligned = crops["files", "landmarks"]
    assert np.array_equal(crops["memory", "landmarks"], aligned)
    assert np.array_equal(crops["files-unaligned", "landmarks"], crops["files", "none"])
    assert not np.array_equal(aligned, crops["files", "none"])


def test_photos_that_cannot_be_used_are_left_out(faces: Path, tmp_path: Path) -> None:
    root = tmp_path / "faces"
    shutil.copytree(faces, root)
    damaged = root / "Person_1" / "photo_0.jpg"
    damaged.write_bytes(b"no photo")
    job = Job(Spec(Settings(str(root), ROWS, crop_px=CROP_PX, align="none"), str(tmp_path), "pil"))
    lines: list[str] = []
    with console.showing(log=lines.append):
        job.prepare()
    assert len(job.index) == len(job.plan) == PEOPLE * PHOTOS - 1
    assert str(damaged) not in job.paths
    assert [line.partition(",")[0] for line in lines] == ["1 photo left out"]
    assert next(row_function(ROWS["pil"])(job)).pairs == job.batch_size
    for path in root.rglob("*.jpg"):
        path.write_bytes(b"no photo")
    with pytest.raises(BadData, match=r"Person_0.photo_0\.jpg"):
        job.prepare()


def test_rows_that_a_folder_does_not_suit_are_skipped(tmp_path: Path) -> None:
    for person in range(2):
        for photo in range(2):
            path = tmp_path / "faces" / f"Person_{person}" / f"{photo}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (60, 60)).save(path)
    settings = Settings(str(tmp_path / "faces"), ROWS, crop_px=CROP_PX, align="none")
    for name, reason in (("limit", "plain JPEGs"), ("files-unaligned", "unaligned")):
        job = Job(Spec(settings, str(tmp_path), name))
        job.prepare()
        with pytest.raises(bench_job.Skip, match=reason):
            next(row_function(ROWS[name])(job))


def test_rows_take_turns_and_ctrl_c_keeps_what_was_measured(
    faces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"pil": ROWS["pil"], "torch": Row("no_such_package:batches", "")}
    settings = Settings(
        str(faces), rows, repeats=3, batch_size=BATCH, crop_px=CROP_PX, seconds=0.01, align="none"
    )
    lines: list[str] = []
    steps: list[tuple[int, int]] = []

    def phase(name: str) -> console.Progress:
        def step(done: int, total: int) -> None:
            steps.append((done, total))
            if done == 3:
                raise KeyboardInterrupt

        return step if name == "measuring" else lambda done, total: None

    monkeypatch.setattr(psutil, "getloadavg", lambda: (1.239, 2.0, 3.0))
    with console.showing(log=lines.append, progress=phase):
        found = run_bench(settings)
    assert steps == [(1, 6), (2, 6), (3, 6)]
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "1 of 6, pil", "2 of 6, torch", "3 of 6, pil"
    ]  # fmt: skip
    assert lines[1].endswith(" pairs/s")
    assert lines[2].startswith("2 of 6, torch: skipped: ")
    assert (found.interrupted, found.failed) == (True, False)
    assert found.load_average_before == 1.24
    assert [len(row.runs) for row in found.rows] == [2, 1]
    assert (found.images, found.people, found.pairs) == (40, PEOPLE, 8192)
    assert not found.training


def test_what_a_run_gave_in_words() -> None:
    told = {
        Measurement(pairs_per_s=1234.5): "1,234 pairs/s",
        Measurement(build_s=2.04, disk_mb=3.0): "2.0 s",
        Measurement(steps_per_s=2.046): "2.05 steps/s",
        Measurement(skipped="no torch"): "skipped: no torch",
        Measurement(failed="ValueError: no"): "failed: ValueError: no",
    }
    assert {one: str(one) for one in told} == told


def test_limit_decodes_the_same_images(spec: Spec) -> None:
    job = Job(spec)
    batch = next(row_function(ROWS["limit"])(job))
    assert batch.pairs == 32
    calls = -(-job.image_order.size // 64)  # they run side by side, so any may be the first
    expected = COLOURS[np.resize(job.image_order, (calls, 64)), 0]
    off = np.abs(np.asarray(batch.images).astype(int) - expected).max(axis=1)
    assert off.min() < 5


@pytest.fixture
def black_and_white(tmp_path: Path) -> Job:
    """A run on two black photos and six large white ones, which are shrunk."""
    for photo, side in enumerate((60, 1000, 1000, 1000) * 2):
        path = tmp_path / "faces" / f"Person_{photo // 4}" / f"{photo}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (side, side), 255 if side > 60 else 0).convert("RGB").save(path)
    root = str(tmp_path / "faces")
    settings = Settings(root, ROWS, batch_size=2, crop_px=CROP_PX, align="none")
    job = Job(Spec(settings, str(tmp_path), "limit"))
    job.prepare()
    return job


def test_limit_alternates_between_photos_of_all_sizes_by_their_number(
    black_and_white: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usual, "cores", lambda: 1)  # so that calls do not overtake each other
    monkeypatch.setattr(bench_job, "BLOCKS", 1)
    black = black_and_white.image_order.ravel() % 4 == 0
    calls = [-(-np.sum(part) // 64) for part in (black, ~black)]
    batches = row_function(ROWS["limit"])(black_and_white)
    are_black = [np.asarray(next(batches).images).mean() < 128 for _ in range(sum(calls))]
    assert sum(are_black) == calls[0]
    wanted = np.arange(1, sum(calls) + 1) * calls[0] / sum(calls)
    assert np.abs(np.cumsum(are_black) - wanted).max() < 0.6


@pytest.mark.parametrize("name", ["pil", "article"])
def test_whole_images_are_fed_in_0_to_1(black_and_white: Job, name: str) -> None:
    images = np.concatenate(next(row_function(ROWS[name])(black_and_white)).images)
    assert (images.min(), images.max()) == (0, 1)


@pytest.mark.parametrize("batch_size", [2, 64, 100, 1000, 4096])
def test_pairs_are_the_samplers_for_any_batch_size(spec: Spec, batch_size: int) -> None:
    job = Job(changed(spec, batch_size=batch_size))
    sampler = PairSampler(job.index.first, np.arange(PEOPLE), SEED)
    drawn = np.concatenate([sampler.block(0, number, 1024).left for number in range(8)])
    count = len(job.pairs)
    assert count % batch_size == 0
    assert 8192 - count < batch_size
    assert job.pairs.left.tolist() == drawn[:count].tolist()
    batches = job.batches()
    for number in (0, 1):
        pairs = next(batches)
        order = np.concatenate([pairs.left, pairs.right])
        assert order.tolist() == job.image_order[number % len(job.image_order)].tolist()


@pytest.mark.parametrize(
    ("most", "people"), [(None, 10), (40, 10), (39, 10), (36, 9), (9, 3), (8, 2)]
)
def test_as_many_people_are_drawn_as_have_about_so_many_images(
    faces: Path, tmp_path: Path, most: int | None, people: int
) -> None:
    settings = Settings(str(faces), ROWS, align="none", most_images=most)
    drawn = []
    for _ in range(2):
        job = Job(Spec(settings, str(tmp_path), "pil"))
        job.prepare()
        drawn.append(job.index.people)
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == people
    assert set(drawn[0]) <= {path.name for path in faces.iterdir()}


@pytest.mark.parametrize(("seconds", "measured"), [(0.01, MIN_BATCHES), (5.0, 10)])
def test_measurement_starts_after_the_warm_up(
    spec: Spec, monkeypatch: pytest.MonkeyPatch, seconds: float, measured: int
) -> None:
    now_s, taken = 3.0, 0
    clock = SimpleNamespace(perf_counter=lambda: now_s, process_time=lambda: now_s / 4)
    monkeypatch.setattr(worker, "time", clock)

    def row(job: Job) -> Any:
        nonlocal now_s, taken
        while True:
            now_s += 0.5
            taken += 1
            yield Batch(4, None, None)

    result = measure(row, Job(changed(spec, seconds=seconds)))
    assert taken == WARM_UP_BATCHES + measured
    assert (result.pairs_per_s, result.cpu_s_per_1k_pairs) == (8.0, 31.25)


def spin() -> None:
    while True:
        pass


def test_cpu_time_of_child_processes_counts(spec: Spec) -> None:
    child = multiprocessing.get_context("fork").Process(target=spin, daemon=True)
    child.start()

    def used_s() -> float:
        return sum(psutil.Process(child.pid).cpu_times()[:2])

    def row(job: Job) -> Any:
        while True:
            ends = used_s() + 0.02
            while used_s() < ends:
                time.sleep(0.002)
            yield Batch(1, None, None)

    try:
        result = measure(row, Job(spec))
    finally:
        child.kill()
        child.join()
    assert result.cpu_s_per_1k_pairs is not None
    assert result.cpu_s_per_1k_pairs > 15


def test_what_is_measured_by_default() -> None:
    assert Settings("x", {}) == Settings("x", {}, (), 2, 5.0, 64, 112, "landmarks", None)
    assert (WARM_UP_BATCHES, MIN_BATCHES, stores.STEPS) == (5, 8, 30)
    assert not Results(Settings("x", {}), 1, 1, 1, 0.0, [], []).interrupted


def test_select_rows() -> None:
    assert select_rows(None) == ROWS
    assert tuple(ROWS) == get_args(BenchRow)
    assert list(select_rows("files, pil,files")) == ["files", "pil"]
    for names in ("pil,tfrecrd", " ,"):
        with pytest.raises(BadConfig):
            select_rows(names)


def with_row(spec: Spec, function: str) -> Spec:
    return changed(replace(spec, name="own"), rows={"own": Row(function, "")})


def test_a_worker_reports_what_failed_is_missing_or_takes_too_long(spec: Spec) -> None:
    for broken, named in (
        (replace(spec, folder=spec.folder + "/none"), "No such file"),
        (with_row(spec, "facepairs.bench.job:zz"), "AttributeError"),
        (with_row(spec, "sys:exit"), "exit code 1: <facepairs.bench.job.Job object"),
    ):
        result = run_worker(broken)
        assert result == Measurement(failed=result.failed)
        assert named in result.failed
    result = run_worker(with_row(spec, "no_such_package:batches"))
    assert result == Measurement(skipped=result.skipped)
    assert "no_such_package" in result.skipped
    result = run_worker(changed(spec, seconds=1e4), timeout_s=2.0)
    assert result == Measurement(failed=result.failed)
    assert result.failed


def test_a_worker_reads_its_task_and_prints_the_result(
    spec: Spec, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_job, "BLOCKS", 1)
    task = msgspec.json.encode(replace(spec, name="tfrecord-jpeg", task="build"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(task)))
    worker.main()
    built = msgspec.json.decode(capsys.readouterr().out, type=Measurement)
    assert built.disk_mb > 0
    assert built == Measurement(build_s=built.build_s, disk_mb=built.disk_mb)


def run(rate: float) -> Measurement:
    return Measurement(pairs_per_s=rate, cpu_s_per_1k_pairs=0.5)


def results() -> Results:
    settings = Settings("x", {**ROWS, "torch-2": Row("torch_rows:two_workers", "PyTorch")})
    rows = [
        Line("pil", [run(100.0), run(90.0), run(120.0)]),
        Line("torch-2", [Measurement(skipped="no torch")]),
        Line("memory", [Measurement(build_s=2.0, disk_mb=40.0), run(20_000.0)]),
        Line("files", [run(1.0), Measurement(failed="ValueError: no")]),
        Line("article-parallel", [run(250.0), run(260.0)]),
        Line("article"),
        Line("limit", [run(1000.0)]),
    ]
    step = Measurement(
        steps_per_s=8.0,
        ceiling_steps_per_s=8.0,
        share_of_ceiling=1.0,
        input_wait_share=0.01,
        device="CPU",
    )
    slower = replace(step, steps_per_s=6.0, ceiling_steps_per_s=10.0, share_of_ceiling=0.6)
    training = [
        Line("files", [step, slower]),
        Line("memory", [Measurement(failed="ValueError: no")]),
    ]
    return Results(settings, 40, 10, 8192, 0.1, rows, training)


def test_tables_line_by_line() -> None:
    written = to_json(results(), "facepairs bench x")
    json.dumps(written, allow_nan=False)
    assert written["schema"] == 1
    settings = written["settings"]
    told = {"command": "facepairs bench x", "frame_px": 250, "seed": 0}
    assert settings | told == settings
    assert [settings[name] for name in ("images", "people", "pairs")] == [40, 10, 8192]
    assert not {"settings", "rows", "training"} & settings.keys()
    pil = written["rows"][0]
    assert (pil["pairs_per_s"], pil["pairs_per_s_min"], pil["pairs_per_s_max"]) == (100, 90, 120)
    assert (pil["x_pil"], pil["share_of_limit"], pil["disk_mb"]) == (1, 0.1, None)
    assert written["training"][0] == {
        "name": "files",
        "steps_per_s": 7.0,
        "steps_per_s_min": 6.0,
        "steps_per_s_max": 8.0,
        "input_wait_share": 0.01,
        "ceiling_steps_per_s": 9.0,
        "share_of_ceiling": 0.8,  # of 1 and .6, each of its process
        "share_of_ceiling_min": 0.6,
        "share_of_ceiling_max": 1.0,
        "device": "CPU",
        "skipped": None,
        "failed": None,
    }
    assert results().failed
    assert to_text(written) == [
        "pipeline                pairs/s  x pil  of limit  CPU s/1k  disk MB  build s",
        "pil                100 (90-120)    1.0       10%     0.500",
        "torch-2           skipped: no torch",
        "memory                   20,000  200.0    2,000%     0.500       40      2.0",
        "files             failed: ValueError: no",
        "article-parallel  255 (250-260)    2.5       26%     0.500",
        "article           not measured",
        "limit                     1,000   10.0      100%     0.500",
        "",
        "training from           steps/s  input wait  constant batch           of it",
        "files          7.00 (6.00-8.00)        1.0%            9.00  80% (60%-100%)",
        "memory         failed: ValueError: no",
    ]


def test_bars_are_as_long_as_the_speed_and_one_that_is_far_longer_is_cut() -> None:
    report = to_json(results(), "facepairs bench x")
    lines = bars(report)
    assert [line.split()[0] for line in lines[1:]] == ["pil", "memory", "article-parallel", "limit"]
    pil, memory, parallel, limit = lines[1:]
    assert limit.count("█") == BAR_COLUMNS
    assert pil.count("█") == int(0.1 * BAR_COLUMNS)
    assert "▋" in pil  # .1 x 36 columns are 3 and 5 eighths
    assert parallel.count("█") == int(0.255 * BAR_COLUMNS)
    assert memory.count("█") + len(" >>") == BAR_COLUMNS
    assert " >>" in memory
    assert " >>" not in limit
    assert memory.split()[-2:] == ["20,000", "200.0"]
    plain = "".join(bars(report, blocks=False))
    assert plain.isascii()
    assert plain.count("#") == 4 + 33 + 9 + 36
    for speed, cut in ((201.0, 1), (200.0, 0)):  # only what is over twice as fast
        few = [{**report["rows"][0], "pairs_per_s": one} for one in (100.0, speed, 0.01)]
        drawn = bars({**report, "rows": few})
        assert sum(" >>" in line for line in drawn) == cut
    assert drawn[3].split()[1] == "▏"  # at least an eighth
    alone = bars({**report, "rows": report["rows"][:1]})
    assert alone == [
        "                                           pairs/s  x pil",
        f"pil  {'█' * BAR_COLUMNS}      100    1.0",
    ]
    empty = {**report, "rows": [row for row in report["rows"] if not row["pairs_per_s"]]}
    assert len(bars(empty)) == 1


def test_the_command_prints_bars_tables_notes_and_the_conclusion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("facepairs.bench.run.run_bench", lambda _: results())
    printed = in_process("bench", "x", check=1).stdout
    report = to_json(results(), "")
    tables = "\n".join(["", *bars(report, False), "", *to_text(report), "", ""])
    machine, _, rest = printed.partition(tables)
    assert machine.splitlines()[1].split()[:3] == ["images", "40", "images,"]
    *notes, blank, first, second = rest.splitlines()
    listed = [line.split(maxsplit=1) for line in notes]
    assert listed == [[row["name"], row["note"]] for row in report["rows"]]
    assert (blank, [first, second]) == ("", conclusion(report))


def test_the_conclusion_compares_our_stores_and_says_what_a_step_takes() -> None:
    first, second = conclusion(to_json(results(), "facepairs bench x"))
    assert "100 pairs/s" in first
    assert "memory 200.0 times" in first
    assert "limit" not in first
    assert "takes 576 pairs/s (64 in 111 ms)" in second  # 9 steps of 64 pairs
    assert "80% from files" in second
    nothing = replace(results(), rows=[], training=[])
    assert conclusion(to_json(nothing, "")) == []


@pytest.mark.usefixtures("tiny_networks")
def test_training_steps_are_measured_by_fit(
    spec: Spec, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stores, "STEPS", 2)
    # Of each part an epoch to warm up and one that counts begin and end.
    marks = itertools.accumulate([7, 100, 9, 1, 30, 90, 8, 1e4, 20, 70, 5, 2])
    monkeypatch.setattr(stores, "time", SimpleNamespace(perf_counter=lambda: next(marks)))
    result = stores.measure_steps(Job(changed(replace(spec, name="files"), batch_size=2)))
    assert next(marks, None) is None
    assert (result.steps_per_s, result.ceiling_steps_per_s) == (2e-4, pytest.approx(4 / 3))
    assert result.share_of_ceiling == result.steps_per_s / result.ceiling_steps_per_s
    assert 0 < result.input_wait_share < 1e-3
    assert result.device
    assert capsys.readouterr().out == ""


def test_the_parent_needs_no_tensorflow() -> None:
    code = "import sys, facepairs.bench.run, facepairs.bench.report; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = out.stdout.split()
    assert "facepairs.bench.run" in modules
    assert not {"tensorflow", "keras", "torch"} & set(modules)
