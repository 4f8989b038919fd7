"""`facepairs cache build`, and opening a cache for training."""

import json
import os
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
from facepairs.training.inputs.pair_cache import cached_batches, open_training_cache
from facepairs.training.inputs.people import prepare

FILES = {"manifest.json", "pairs-00000-of-00001.tfrecord"}


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
    return ("cache", "build", photos, "--out", out, "--pair-count", 40)


def build(photos: Path, out: object, *words: object) -> int:
    return run(*built(photos, out), *words)


def test_build(photos, tmp_path, capsys):
    out = tmp_path / "cache"
    assert build(photos, out) == 0
    printed = capsys.readouterr()
    assert f"written  {out}\npairs    40 in 1 shard\nsize     0.6 MB\n" == printed.out
    assert printed.err == ""
    assert {path.name for path in out.iterdir()} == FILES


def test_json(photos, tmp_path, settings, capsys):
    out = tmp_path / "cache"
    assert build(photos, out, "--config", settings, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == 1
    assert made["out"] == str(out)
    assert made["bytes"] == sum(path.stat().st_size for path in out.glob("*.tfrecord"))
    assert made["manifest"] == json.loads((out / "manifest.json").read_text())
    assert made["manifest"]["crop_px"] == 128


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pair-count", 0), "the number of pairs is 0"),
        (("--config", "absent.toml"), "absent.toml: No such file"),
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


def opened(photos: Path, out: Path, config: TrainConfig):
    index, plan, split = prepare(photos, config)
    return open_training_cache(out, index, plan, split, config)


def test_a_cache_opens_for_the_training_that_it_was_built_for(photos, tmp_path, settings):
    out = tmp_path / "cache"
    settings.write_text(settings.read_text() + "seed = 4\n")
    build(photos, out, "--config", settings)
    config = load_config(settings)
    assert opened(photos, out, config).pairs == 40


def test_train_refuses_a_cache_of_other_pairs_and_takes_one_of_its_settings(
    photos, tmp_path, settings, capsys
):
    out = tmp_path / "cache"
    build(photos, out)
    settings.write_text(settings.read_text() + "seed = 5\n")
    options = ("--config", settings)
    train = ("train", photos, "--out", tmp_path / "run", *options)
    assert run(*train, "--pair-cache", out) == 2
    refused = capsys.readouterr().err
    assert "other people; seed is 0, not 5" in refused
    assert "build the cache again with the training's own settings" in refused
    assert not (tmp_path / "run" / "config.toml").exists()
    assert build(photos, out, *options) == 0
    assert opened(photos, out, load_config(settings)).pairs == 40


def test_a_cache_fits_landmarks_that_another_cpu_finds(photos, tmp_path):
    out, config = tmp_path / "cache", TrainConfig().replace(model="difference")
    build(photos, out)
    index, plan, split = prepare(photos, config)
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
    shard = out / "pairs-00000-of-00001.tfrecord"
    data = shard.read_bytes()
    shard.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
    with pytest.raises(BadData, match="damaged"):
        list(islice(cached_batches(store, 8, 1), 8))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_beam_writes_the_same_bytes_anywhere(photos, settings, tmp_path):
    pytest.importorskip("apache_beam")
    from storage.memory_files import FILES

    FILES.clear()
    for path in photos.rglob("*.jpg"):
        FILES[f"mem://bucket/photos/{path.relative_to(photos)}"] = path.read_bytes()
    FILES["memdir://cluster/cache/pairs-00001-of-00009.tfrecord"] = b"left by another build"
    words = ("--config", settings)
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
def test_processes_write_the_same_bytes(photos, settings, tmp_path):
    pytest.importorskip("apache_beam")
    words = (*built(photos, tmp_path / "here"), "--config", settings)
    facepairs(*words, check=0)
    for mode in ("multi_processing", "multi_threading"):
        there = tmp_path / mode
        facepairs(
            *built(photos, there), *words[-2:], "--runner", "DirectRunner",
            "--", "--direct_running_mode", mode, "--direct_num_workers", 2, check=0,
        )  # fmt: skip
        assert bytes_of(there) == bytes_of(tmp_path / "here")
