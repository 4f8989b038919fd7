"""`facepairs cache build`, and opening a cache for training."""

import json
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from processes.command_line import Result, in_process

from facepairs.config import TrainConfig, load_config
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.errors import BadConfig, BadData
from facepairs.support.results import SCHEMA
from facepairs.training.inputs.pair_cache import cache_named, open_training_cache
from facepairs.training.inputs.people import prepare

FILES = {"manifest.json", "pairs-00000-of-00001.tfrecord"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen people with three photos each, in a folder whose name has a space."""
    root = tmp_path_factory.mktemp("cache") / "my photos"
    write_synthetic_faces(root, people=16, photos=3, seed=5)
    return root


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text('model = "difference"\ntest_share = 0.2\n')
    return path


def build(photos: object, out: object, *words: object, check: int = 0) -> Result:
    return in_process(
        "cache", "build", photos, "--out", out, "--pair-count", 40, *words, check=check
    )


def test_a_cache_is_built_and_described(photos, tmp_path, settings):
    out = tmp_path / "cache"
    printed = build(photos, out)
    described = f"written  {out}\npairs    40 in 1 shard\ncrops    JPEG\n"
    assert printed.stdout.startswith(described)
    assert printed.stderr == ""
    assert {path.name for path in out.iterdir()} == FILES
    made = json.loads(build(photos, out, "--config", settings, "--json").stdout)
    assert made["schema"] == SCHEMA
    assert made["out"] == str(out)
    assert made["bytes"] == sum(path.stat().st_size for path in out.glob("*.tfrecord"))
    assert made["manifest"] == json.loads((out / "manifest.json").read_text())
    assert (made["manifest"]["crop_px"], made["manifest"]["encoding"]) == (128, "jpeg")
    raw = json.loads(build(photos, out, "--encoding", "raw", "--json").stdout)
    assert raw["manifest"]["encoding"] == "raw"
    assert 2 * 40 * 3 * 128**2 < raw["bytes"] < 2 * 40 * 3 * 128**2 + 40 * 200
    assert made["bytes"] < raw["bytes"] / 2


def test_wrong_input_is_refused_in_a_line(photos, tmp_path):
    (tmp_path / "empty" / "Ann").mkdir(parents=True)
    for data, words, named in (
        (photos, ("--encoding", "png"), "'png' is not one of 'jpeg', 'raw'"),
        (tmp_path / "none", (), "none"),
        (tmp_path / "empty", (), "empty"),
        (photos, ("--seed", -1), "seed is -1"),
        (photos, ("--align", "eyes"), "'eyes'"),
    ):
        done = build(data, tmp_path / "c", *words, check=2)
        assert named in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "c").exists()


def test_seed_alignment_and_bad_photos_are_those_of_train(photos, tmp_path, settings):
    faces = shutil.copytree(photos, tmp_path / "faces")
    bad = min(faces.glob("*/*.jpg"))
    bad.write_bytes(b"no photo")
    words = ("--config", settings, "--seed", 7, "--align", "none")
    assert bad.name in build(faces, tmp_path / "c", *words, check=2).stderr
    build(faces, tmp_path / "c", *words, "--skip-bad")
    config = load_config(settings).replace(seed=7, align="none", skip_bad=True)
    store = opened(faces, tmp_path / "c", config.resolve())
    assert (store.manifest.seed, store.manifest.alignment) == (7, "lfw-frame")


def test_lists_choose_the_people_of_view_1(photos, tmp_path):
    names = sorted(folder.name for folder in photos.iterdir())[:12]
    rows = ["12", *(f"{name}\t3" for name in names)]
    (tmp_path / "peopleDevTrain.txt").write_text("".join(f"{row}\n" for row in rows))
    build(photos, tmp_path / "c", "--lists", tmp_path)
    config = TrainConfig(model="difference", lists=str(tmp_path))
    index, _, split = prepare(photos, config.resolve())
    assert {index.people[person] for person in split.training} <= set(names)
    assert len(split.test) == 0  # View 1 has a list of its own
    assert sum(map(len, vars(split).values())) == 12
    assert opened(photos, tmp_path / "c", config.resolve()).pairs == 40
    with pytest.raises(BadData):
        opened(photos, tmp_path / "c", TrainConfig(model="difference").resolve())


def opened(photos: Path, out: Path, config: TrainConfig):
    index, plan, split = prepare(photos, config)
    return open_training_cache(out, index, plan, split, config)


def test_damage_is_named_while_training(photos, tmp_path, settings):
    out = tmp_path / "cache"
    build(photos, out, "--config", settings)
    store = opened(photos, out, load_config(settings).resolve())
    with pytest.raises(BadConfig):
        store.batches(64, 1)
    shard = out / "pairs-00000-of-00001.tfrecord"
    data = shard.read_bytes()
    shard.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
    with pytest.raises(BadData, match=str(shard)), cache_named(store):
        list(islice(store.batches(8, 1), 8))


def test_train_refuses_a_cache_of_other_pairs_and_takes_one_of_its_settings(
    photos, tmp_path, settings
):
    out = tmp_path / "cache"
    build(photos, out)
    settings.write_text(settings.read_text() + "seed = 5\n")
    options = ("--config", settings, "--pair-cache", out)
    done = in_process("train", photos, "--out", tmp_path / "run", *options, check=2)
    assert "seed is 0, not 5" in done.stderr
    assert not (tmp_path / "run" / "config.toml").exists()
    build(photos, out, *options[:2])
    assert opened(photos, out, load_config(settings).resolve()).pairs == 40


def test_a_cache_fits_landmarks_that_another_cpu_finds(photos, tmp_path):
    out, config = tmp_path / "cache", TrainConfig(model="difference").resolve()
    build(photos, out)
    index, plan, split = prepare(photos, config)
    assert plan.to_crop is not None
    nearly = replace(plan, to_crop=plan.to_crop + 1e-5)
    assert open_training_cache(out, index, nearly, split, config).pairs == 40
    newer = replace(plan, detector="eyes-2")
    with pytest.raises(BadData):
        open_training_cache(out, index, newer, split, config)


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
    build(photos, tmp_path / "here", *words)
    build(photos, tmp_path / "beam", *beam)
    assert bytes_of(tmp_path / "beam") == bytes_of(tmp_path / "here")
    for out, more in (("mem://bucket/cache", words), ("memdir://cluster/cache", beam)):
        build("mem://bucket/photos", out, *more)
        there = {n.rpartition("/")[2]: b for n, b in FILES.items() if n.startswith(f"{out}/")}
        assert there == bytes_of(tmp_path / "here")
    FILES["mem://bucket/notes.txt"] = b""
    build("mem://bucket/photos", "mem://bucket", *words, check=2)
    FILES.clear()
