"""`facepairs cache build | check`, and opening a cache for training."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from processes.command_line import facepairs

from facepairs.cli.main import main
from facepairs.config import TrainConfig, load_config
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.errors import BadConfig, BadData
from facepairs.support.lock import held, lock_beside
from facepairs.support.progress import ignore_message
from facepairs.training.inputs.pair_cache import cached_batches, open_training_cache
from facepairs.training.inputs.people import prepare

FILES = {"manifest.json", "pairs-00000-of-00002.tfrecord", "pairs-00001-of-00002.tfrecord"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen people with three photos each, in a folder whose name has a space."""
    root = tmp_path_factory.mktemp("cache") / "my photos"
    write_synthetic_faces(root, people=16, images=3, seed=5)
    return root


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text('model = "difference"\ntest_share = 0.2\n')
    return path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def built(photos: object, out: object) -> tuple[object, ...]:
    return ("cache", "build", photos, "--out", out, "--pair-count", 40, "--shards", 2)


def build(photos: Path, out: object, *words: object) -> int:
    return run(*built(photos, out), *words)


def test_build_then_check(photos, tmp_path, capsys):
    out = tmp_path / "cache"
    assert build(photos, out) == 0
    printed = capsys.readouterr()
    assert f"written  {out}\npairs    40 in 2 shards, jpeg\nsize     0.6 MB\n" == printed.out
    assert printed.err == ""
    assert {path.name for path in out.iterdir()} == FILES
    assert run("cache", "check", out) == 0
    assert capsys.readouterr().out == "ok\n"


def test_json(photos, tmp_path, settings, capsys):
    out = tmp_path / "cache"
    assert build(photos, out, "--encoding", "raw", "--config", settings, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == 1
    assert made["out"] == str(out)
    assert made["bytes"] == sum(path.stat().st_size for path in out.glob("*.tfrecord"))
    assert made["manifest"] == json.loads((out / "manifest.json").read_text())
    assert made["manifest"]["crop_px"] == 128
    assert run("cache", "check", out, "--json") == 0
    report = {"out": str(out), "ok": True, "problems": [], "schema": 1}
    assert json.loads(capsys.readouterr().out) == report


def test_check_prints_a_line_a_problem_and_exits_1(photos, tmp_path, capsys):
    out = tmp_path / "cache"
    build(photos, out)
    cut, lost = out / "pairs-00000-of-00002.tfrecord", out / "pairs-00001-of-00002.tfrecord"
    size = cut.stat().st_size
    cut.write_bytes(cut.read_bytes()[:-1])
    lost.unlink()
    capsys.readouterr()
    assert run("cache", "check", out) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{cut}: ")
    assert lines[0].endswith(f"{size - 1:,} bytes, not {size:,}")
    assert lines[1] == f"{lost}: missing"
    assert run("cache", "check", out, "--json") == 1
    assert json.loads(capsys.readouterr().out)["problems"] == lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pair-count", 0), "the number of pairs is 0"),
        (("--shards", 41), "shards (files) is 41"),
        (("--seed", -1), "seed is -1"),
        (("--config", "absent.toml"), "absent.toml: No such file"),
        (("--model", "siamese"), "'siamese' is not one of 'difference', 'siamese-conv'"),
        (("--encoding", "webp"), "'webp' is not one of"),
        (("--lists", "absent"), "absent"),
        (("--pair-count", 10**12), "GB are free there"),
    ],
)
def test_bad_requests_are_one_line(photos, tmp_path, capsys, words, message):
    assert build(photos, tmp_path / "cache", *words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("facepairs: error: ")
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_pairs_of_images_is_refused(photos, tmp_path, capsys):
    (tmp_path / "siamese.toml").write_text('model = "siamese"\n')
    assert build(photos, tmp_path / "cache", "--config", tmp_path / "siamese.toml") == 2
    assert "cache of pairs" in capsys.readouterr().err


def test_the_photos_are_safe(photos, capsys):
    before = sorted(photos.rglob("*"))
    for place in (photos, photos / "Person_00", photos / "cache"):
        assert build(photos, place) == 2
    assert build(photos / "Person_00", photos) == 2
    assert sorted(photos.rglob("*")) == before
    assert run("cache", "check", photos / "nowhere") == 2
    assert "no such folder" in capsys.readouterr().err


def test_check_of_what_is_no_cache_is_an_error(photos, tmp_path, capsys):
    (tmp_path / "manifest.json").write_text('{"schema": 4}')
    (tmp_path / "file").touch()
    for place in (tmp_path, photos, tmp_path / "file"):
        assert run("cache", "check", place) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"facepairs: error: {place}")
        assert printed.err.count("\n") == 1
    build(photos, tmp_path / "cache")
    (tmp_path / "cache" / "manifest.json").write_text("{")
    assert run("cache", "check", tmp_path / "cache") == 2


def test_check_does_without_tensorflow(photos, tmp_path):
    build(photos, tmp_path / "cache")
    code = (
        "import sys\nfrom facepairs.cli.main import main\n"
        "try: main(sys.argv[1:])\nfinally: assert 'tensorflow' not in sys.modules\n"
    )
    words = [sys.executable, "-c", code, "cache", "check", str(tmp_path / "cache")]
    assert subprocess.run(words, check=True, capture_output=True).stdout == b"ok\n"


def opened(photos: Path, out: Path, config: TrainConfig):
    index, plan, split = prepare(photos, config, ignore_message)
    return open_training_cache(out, index, plan, split, config)


def test_a_cache_opens_for_the_training_that_it_was_built_for(photos, tmp_path, settings):
    out = tmp_path / "cache"
    build(photos, out, "--config", settings, "--seed", 4)
    config = load_config(settings).replace(seed=4)
    assert opened(photos, out, config).pairs == 40


def test_train_refuses_a_cache_of_other_pairs_and_takes_one_of_its_settings(
    photos, tmp_path, settings, capsys
):
    out = tmp_path / "cache"
    build(photos, out)
    options = ("--config", settings, "--seed", 5)
    train = ("train", photos, "--out", tmp_path / "run", *options)
    assert run(*train, "--cache", out) == 2
    refused = capsys.readouterr().err
    assert "other people; seed is 0, not 5" in refused
    assert "build the cache again with the training's own settings" in refused
    assert not (tmp_path / "run" / "config.toml").exists()
    assert build(photos, out, *options) == 0
    assert opened(photos, out, load_config(settings).replace(seed=5)).pairs == 40


def test_a_cache_fits_landmarks_that_another_cpu_finds(photos, tmp_path):
    out, config = tmp_path / "cache", TrainConfig().replace(model="difference")
    build(photos, out)
    index, plan, split = prepare(photos, config, ignore_message)
    assert plan.to_crop is not None
    nearly = replace(plan, to_crop=plan.to_crop + 1e-5)
    assert nearly.digest != plan.digest
    assert open_training_cache(out, index, nearly, split, config).pairs == 40
    newer = replace(plan, detector="eyes-2")
    with pytest.raises(BadData, match="its faces were found by another detector"):
        open_training_cache(out, index, newer, split, config)


def test_settings_that_differ_from_those_of_the_cache_are_named(photos, tmp_path):
    out = tmp_path / "cache"
    build(photos, out)
    config = TrainConfig(model="siamese-conv", seed=3)
    with pytest.raises(BadData, match=r"seed is 0, not 3; crop_px is 128, not 112"):
        opened(photos, out, config)


def test_batches_go_on_at_a_step_and_name_damage(photos, tmp_path, settings):
    out = tmp_path / "cache"
    build(photos, out, "--config", settings)
    store = opened(photos, out, load_config(settings))
    whole = [b["images"].numpy() for b in islice(cached_batches(store, 8, 1), 8)]
    assert whole[0].shape == (16, 128, 128, 3)
    rest = [b["images"].numpy() for b in islice(cached_batches(store, 8, 1, 6), 2)]
    assert np.array_equal(whole[6:], rest)
    with pytest.raises(BadConfig, match="too few for a batch of 64"):
        next(cached_batches(store, 64, 1))
    shard = out / "pairs-00001-of-00002.tfrecord"
    data = shard.read_bytes()
    shard.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
    with pytest.raises(BadData, match=f"damaged .*; see: facepairs cache check {out}"):
        list(islice(cached_batches(store, 8, 1), 8))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("encoding", ["jpeg", "raw"])
def test_beam_writes_the_same_bytes_anywhere(photos, settings, tmp_path, encoding):
    pytest.importorskip("apache_beam")
    from storage.memory_files import FILES

    FILES.clear()
    for path in photos.rglob("*.jpg"):
        FILES[f"mem://bucket/photos/{path.relative_to(photos)}"] = path.read_bytes()
    FILES["memdir://cluster/cache/pairs-00001-of-00009.tfrecord"] = b"left by another build"
    words = ("--encoding", encoding, "--config", settings)
    beam = (*words, "--runner", "DirectRunner")
    assert build(photos, tmp_path / "here", *words) == 0
    assert build(photos, tmp_path / "beam", *beam) == 0
    assert bytes_of(tmp_path / "beam") == bytes_of(tmp_path / "here")
    for out, more in (("mem://bucket/cache", words), ("memdir://cluster/cache", beam)):
        assert run(*built("mem://bucket/photos", out), *more) == 0
        there = {n.rpartition("/")[2]: b for n, b in FILES.items() if n.startswith(f"{out}/")}
        assert there == bytes_of(tmp_path / "here")
    FILES["mem://bucket/notes.txt"] = b""
    assert run(*built("mem://bucket/photos", "mem://bucket"), *words) == 2
    FILES.clear()


def test_two_builds_of_one_cache_do_not_meet(photos, settings, tmp_path, capsys):
    out = tmp_path / "cache"
    with held(lock_beside(out), out):
        assert build(photos, out, "--config", settings) == 2
    assert f"{out} is in use by process {os.getpid()}; wait" in capsys.readouterr().err
    assert build(photos, out, "--config", settings) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "small.toml"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["jpeg", "raw"])
def test_processes_write_the_same_bytes(photos, settings, tmp_path, encoding):
    pytest.importorskip("apache_beam")
    words = (*built(photos, tmp_path / "here"), "--config", settings, "--encoding", encoding)
    facepairs(*words, check=0)
    for mode in ("multi_processing", "multi_threading"):
        there = tmp_path / mode
        facepairs(
            *built(photos, there), *words[-4:], "--runner", "DirectRunner",
            "--", "--direct_running_mode", mode, "--direct_num_workers", 2, check=0,
        )  # fmt: skip
        assert bytes_of(there) == bytes_of(tmp_path / "here")
