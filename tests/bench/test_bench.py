import colorsys
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from facepairs.bench import job as bench_job
from facepairs.bench import steps
from facepairs.bench.job import SEED, Batch, BenchSettings, Job, Skip, Spec, pair_count, save_plan
from facepairs.bench.measurements import RowMeasurement, StepMeasurement, WorkerResult
from facepairs.bench.meter import MIN_BATCHES, WARM_UP_BATCHES, measure
from facepairs.bench.processes import run_worker
from facepairs.bench.report import (
    row_table,
    summarize_rows,
    summarize_steps,
    to_json,
    training_table,
)
from facepairs.bench.rows import ROWS, Row, select_rows
from facepairs.bench.run import START_S, BenchResults, Line, Options
from facepairs.choices import BenchRow
from facepairs.data.sampler import PairSampler
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.errors import BadConfig

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
    settings = BenchSettings(str(faces), BATCH, CROP_PX, align="none")  # the colours show no face
    cache = str(tmp_path / "store")
    return Spec(settings, "row", "pil", ROWS["pil"].function, cache=cache)


def changed(spec: Spec, **settings: Any) -> Spec:
    return replace(spec, settings=replace(spec.settings, **settings))


def function_of(row: Row) -> Callable[[Job], Iterator[Batch]]:
    module, _, name = row.function.partition(":")
    function: Callable[[Job], Iterator[Batch]] = getattr(importlib.import_module(module), name)
    return function


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


def test_colours_differ_clearly() -> None:
    apart = np.abs(COLOURS[:, None] - COLOURS).sum(axis=2) + 1000 * np.eye(len(COLOURS))
    assert apart.min() > 24


@pytest.mark.parametrize("name", [name for name in ROWS if name != "limit"])
def test_all_rows_yield_the_same_pairs_in_the_same_order(
    name: str, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_job, "BLOCKS", 1)  # of pairs in a cache
    row = ROWS[name]
    job = Job(replace(spec, name=name))
    if row.has_cache:
        from facepairs.bench.store_rows import build

        build(job)
    batches = function_of(row)(job)
    done = 0
    for batch in (next(batches), next(batches)):
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
    write_synthetic_faces(root, people=3, images=3, seed=5)
    plan, crops = tmp_path / "plan.npz", {}
    for name, align in (
        ("files", "landmarks"),
        ("memory", "landmarks"),
        ("files-unaligned", "landmarks"),
        ("files", "none"),
    ):
        settings = BenchSettings(str(root), BATCH, align=align)
        save_plan(plan, Job(Spec(settings)).plan)
        job = Job(Spec(settings, name=name, cache=str(tmp_path / "store"), plan=str(plan)))
        batch = next(function_of(ROWS[name])(job))
        crops[name, align] = np.asarray(batch.images)
    aligned = crops["files", "landmarks"]
    assert np.array_equal(crops["memory", "landmarks"], aligned)
    assert np.array_equal(crops["files-unaligned", "landmarks"], crops["files", "none"])
    assert not np.array_equal(aligned, crops["files", "none"])


def test_limit_decodes_the_same_images(spec: Spec) -> None:
    job = Job(spec)
    batch = next(function_of(ROWS["limit"])(job))
    assert batch.pairs == 32
    calls = -(-job.image_order.size // 64)  # they run side by side, so any may be the first
    expected = COLOURS[np.resize(job.image_order, (calls, 64)), 0]
    off = np.abs(np.asarray(batch.images).astype(int) - expected).max(axis=1)
    assert off.min() < 5


def test_limit_is_skipped_for_images_that_are_not_jpegs(spec: Spec, tmp_path: Path) -> None:
    for image in range(4):
        folder = tmp_path / "png" / f"P{image // 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (50, 50)).save(folder / f"{image}.png")
    with pytest.raises(Skip, match="JPEG"):
        next(function_of(ROWS["limit"])(Job(changed(spec, data=str(tmp_path / "png")))))


@pytest.mark.parametrize("batch_size", [2, 64, 100, 1000, 4096])
def test_pairs_are_the_samplers_for_any_batch_size(spec: Spec, batch_size: int) -> None:
    job = Job(changed(spec, batch_size=batch_size))
    sampler = PairSampler(job.index.first, job.people, SEED)
    drawn = np.concatenate([sampler.block(0, number, 1024).left for number in range(8)])
    count = pair_count(batch_size)
    assert len(job.pairs) == count
    assert count % batch_size == 0
    assert 8192 - count < batch_size
    assert job.pairs.left.tolist() == drawn[:count].tolist()
    batches = job.batches()
    for number in (0, 1):
        pairs = next(batches)
        order = np.concatenate([pairs.left, pairs.right])
        assert order.tolist() == job.image_order[number % len(job.image_order)].tolist()


def test_measurement_starts_after_the_warm_up(spec: Spec) -> None:
    taken: list[int] = []

    def row(job: Job) -> Any:
        with job.setup():
            time.sleep(0.2)
        while True:
            time.sleep(0.002)
            taken.append(4)
            yield Batch(4, None, None)

    result = measure(row, Job(spec), min_seconds=0.01)
    assert len(taken) == 1 + WARM_UP_BATCHES + MIN_BATCHES
    assert 0 < result.pairs_per_s <= 4 / 0.002
    assert 0 < result.first_batch_s < 0.2
    assert 0 <= result.cpu_s_per_1k_pairs < 100
    assert 0 <= result.peak_rss_mb < 200


def test_a_row_is_missing_without_its_package() -> None:
    assert Row("x:y", "", needs="no_such_package").missing() == "no_such_package is not installed"
    assert Row("x:y", "", needs="no_such.package").missing() == "no_such.package is not installed"
    assert not Row("x:y", "", needs="PIL.Image").missing()
    assert not any(row.missing() for row in ROWS.values())


def test_fewer_images_are_those_of_whole_people_and_always_the_same(spec: Spec) -> None:
    indexes = [Job(changed(spec, most_images=most)).index for most in (11, 11, 8, 40, None)]
    assert [len(index) for index in indexes] == [12, 12, 8, 40, 40]  # four photos a person
    assert indexes[0].fingerprint == indexes[1].fingerprint
    assert set(indexes[2].people) < set(indexes[0].people)


def test_the_expected_time_grows_with_rows_rounds_and_training() -> None:
    options = Options(BenchSettings("x", seconds=2.0), select_rows("pil,files"), repeats=2)
    assert options.seconds() == pytest.approx(2 * 2 * (START_S + 2))
    assert replace(options, repeats=4).seconds() == 2 * options.seconds()
    assert replace(options, training=["files"]).seconds() > options.seconds() + 10
    absent = {**select_rows("pil,files"), "torch": Row("x:y", "", needs="no_such_package")}
    assert replace(options, rows=absent).seconds() == options.seconds()


def test_select_rows() -> None:
    assert select_rows(None) == ROWS
    assert tuple(ROWS) == get_args(BenchRow)
    assert list(select_rows("files, pil,files")) == ["files", "pil"]
    with pytest.raises(BadConfig, match=r"unknown row 'tfrecrd-raw'; did you mean 'tfrecord-raw'"):
        select_rows("pil,tfrecrd-raw")
    with pytest.raises(BadConfig, match="known: pil"):
        select_rows("zzz")
    with pytest.raises(BadConfig, match="names no row"):
        select_rows(" ,")


def test_a_worker_reports_what_failed(spec: Spec) -> None:
    missing = run_worker(changed(spec, data=spec.settings.data + "/none"), 60)
    assert missing == WorkerResult(failed=missing.failed)
    assert "No such file" in missing.failed
    broken = run_worker(replace(spec, function="facepairs.bench.pillow_rows:zz"), 60)
    assert broken.failed.startswith("AttributeError: ")


def test_a_worker_that_runs_out_of_time_is_killed(spec: Spec) -> None:
    assert run_worker(changed(spec, seconds=60), 2.0).failed == "no result after 2 s"


def run(rate: float) -> RowMeasurement:
    return RowMeasurement(rate, cpu_s_per_1k_pairs=0.5, first_batch_s=0.1, peak_rss_mb=20.0)


def test_a_row_that_fails_once_has_failed() -> None:
    line: Line[RowMeasurement] = Line("files")
    assert line.add(WorkerResult(vars(run(10.0))), RowMeasurement) == "10.0 pairs/s"
    assert not line.ended
    assert line.add(WorkerResult(failed="broken"), RowMeasurement) == "failed: broken"
    assert (line.ended, len(line.measurements)) == (True, 1)
    line = Line("limit")
    assert line.add(WorkerResult(skipped="no JPEGs"), RowMeasurement) == "skipped: no JPEGs"
    assert (line.ended, line.failed) == (True, "")


def results() -> BenchResults:
    torch = Row("torch_rows:two_workers", "PyTorch", needs="torch", module_folder="/rivals")
    options = Options(BenchSettings("x"), {**ROWS, "torch-2": torch})
    rows = [
        Line("pil", measurements=[run(100.0), run(90.0), run(120.0)]),
        Line("torch-2", skipped="torch is not installed"),
        Line("memory", build_s=2.0, disk_mb=40.0, measurements=[run(20_000.0)]),
        Line("files", measurements=[run(1.0)], failed="ValueError: no"),
        Line("article-parallel", measurements=[run(250.0), run(260.0)]),
        Line("limit", measurements=[run(1000.0)]),
    ]
    step = StepMeasurement(8.0, ceiling_steps_per_s=8.0, input_wait_share=0.01, device="CPU")
    slower = replace(step, steps_per_s=6.0, ceiling_steps_per_s=10.0)
    training = [
        Line("files", measurements=[step, slower]),
        Line("memory", failed="ValueError: no"),
    ]
    return BenchResults(options, 40, 10, "warm", 0.1, rows, training)


def test_report_has_medians_ranges_and_ratios() -> None:
    written = to_json(results(), "facepairs bench x")
    rows = {row["name"]: row for row in written["rows"]}
    pil = rows["pil"]
    assert (pil["pairs_per_s"], pil["pairs_per_s_min"], pil["pairs_per_s_max"]) == (100, 90, 120)
    assert pil["x_pil"] == 1
    assert pil["share_of_limit"] == 0.1
    assert pil["disk_mb"] is None
    assert rows["memory"]["x_pil"] == 200
    assert (rows["memory"]["disk_mb"], rows["memory"]["build_s"]) == (40, 2)
    assert rows["torch-2"]["skipped"] == "torch is not installed"
    assert rows["files"]["failed"] == "ValueError: no"
    assert rows["files"]["pairs_per_s"] is None
    assert rows["article-parallel"]["pairs_per_s"] == 255
    assert "AUTOTUNE" in rows["article-parallel"]["note"]
    (files, memory) = written["training"]
    assert (files["steps_per_s"], files["ceiling_steps_per_s"]) == (7, 9)
    assert files["share_of_ceiling"] == 0.8  # of 1 and .6, each that of its process
    assert (files["share_of_ceiling_min"], files["share_of_ceiling_max"]) == (0.6, 1)
    assert memory["share_of_ceiling"] is None
    json.dumps(written, allow_nan=False)


def test_tables_line_by_line() -> None:
    assert row_table(summarize_rows(results())) == [
        "pipeline          pairs/s        min-max  x pil  of limit  CPU s/1k  first s  RSS MB"
        "  disk MB  build s",
        "pil                   100         90-120    1.0       10%     0.500     0.10      20",
        "torch-2           skipped: torch is not installed",
        "memory             20,000  20,000-20,000  200.0    2,000%     0.500     0.10      20"
        "       40      2.0",
        "files             failed: ValueError: no",
        "article-parallel      255        250-260    2.5       26%     0.500     0.10      20",
        "limit               1,000    1,000-1,000   10.0      100%     0.500     0.10      20",
    ]
    assert training_table(summarize_steps(results())) == [
        "training from  steps/s    min-max  input wait  constant batch  of it   min-max",
        "files             7.00  6.00-8.00        1.0%            9.00    80%  60%-100%",
        "memory         failed: ValueError: no",
    ]


def test_training_steps_are_measured_by_the_loop(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "WARM_UP_STEPS", 1)
    monkeypatch.setattr(steps, "STEPS", 2)
    job = Job(changed(replace(spec, task="training", name="files"), batch_size=2))
    result = steps.measure_steps(job)
    assert result.steps_per_s > 0
    assert 0 <= result.input_wait_share < 1
    assert result.device


def test_the_parent_needs_no_tensorflow() -> None:
    code = "import sys, facepairs.bench.run, facepairs.bench.report; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = out.stdout.split()
    assert "facepairs.bench.run" in modules
    assert not {"tensorflow", "keras", "torch"} & set(modules)
