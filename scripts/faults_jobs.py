"""The jobs that are killed: how each starts and goes on, and what must be true afterwards."""

import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from faults_job import Broken, Job, bundle_content, bundle_state, sha256, weights
from faults_outputs import PLAIN as OUTPUTS
from faults_process import Work, command_line, run

from facepairs.data.synth.generate import synth_faces

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

PEOPLE, PHOTOS, COPIES = 24, 4, 3
TOML = """model = "difference"
epochs = 2
pairs_per_epoch = 96
batch_size = 16
crop_px = 64
image_size = 64
"""
VIEW2 = """folds = "1-2"
methods = ["pixels"]
[pixels]
calibration_pairs = 100
calibration_share = 0.4
"""


def prepare(base: Path) -> None:
    """Draw the faces, and multiply them where a job needs more work than that."""
    faces, many = base / "faces", base / "many"
    if not faces.exists():
        synth_faces(faces, PEOPLE, PHOTOS, seed=5)
    if many.exists():
        return
    part = base / "many.part"
    for photo in sorted(faces.glob("*/*.jpg")):
        (part / photo.parent.name).mkdir(parents=True, exist_ok=True)
        for copy in range(COPIES):
            shutil.copy(photo, part / photo.parent.name / f"{photo.stem}_{copy}.jpg")
    names = [str(path.relative_to(part)) for path in sorted(part.glob("*/*.jpg"))]
    rows = [f"{one},{other},0" for one, other in zip(names, names[::-1], strict=True)]
    (base / "pairs.csv").write_text("\n".join(["left,right,genuine", *rows]) + "\n")
    (base / "tiny.toml").write_text(TOML)
    (base / "view2.toml").write_text(VIEW2)
    from invented_view2 import write_lists

    synth_faces(base / "sets", 48, 3, seed=8, size_px=125)
    write_lists(base / "sets", base / "lists")
    with zipfile.ZipFile(base / "faces.zip", "w") as archive:
        for name in names:
            archive.write(part / name, f"faces/{name}")
    part.rename(many)


def train_job(base: Path) -> Job:
    words = (
        "train", base / "faces", "--config", base / "tiny.toml", "--store", "files",
        "--no-tensorboard-images",
    )  # fmt: skip

    def again(place: Path) -> Work:
        if (place / "run/config.toml").exists():
            return _resume(base, place)
        return command_line(*words, "--out", place / "run")

    return Job(
        "train",
        lambda place: command_line(*words, "--out", place / "run"),
        again,
        ("run",),
        _run_state,
        lambda place: (weights(place / "run"), bundle_content(place / "run/bundle")),
    )


def _resume(base: Path, place: Path) -> Work:
    return command_line("train", base / "faces", "--out", place / "run", "--resume",
                        "--no-tensorboard-images")  # fmt: skip


def _run_state(place: Path) -> bool:
    run = place / "run"
    if (run / "checkpoint.npz").exists():
        weights(run)
    if (run / "history.json").exists():
        json.loads((run / "history.json").read_text())
    if (run / "config.toml").exists() and "model" not in (run / "config.toml").read_text():
        raise Broken("config.toml is cut")
    return bundle_state(run / "bundle")


def bundle_job(base: Path) -> Job:
    """The end of a training alone: its network is exported, calibrated and written."""
    trained = base / "trained"
    if not (trained / "run/bundle").exists():
        shutil.rmtree(trained, ignore_errors=True)
        ended = run(train_job(base).start(trained), base / "tmp")
        if ended.code:
            raise SystemExit(f"bundle: no training to go on from: {ended.stderr}")

    def set_up(place: Path) -> None:
        shutil.copytree(trained / "run", place / "run", ignore=shutil.ignore_patterns("bundle"))

    def work(place: Path) -> Work:
        return _resume(base, place)

    def content(place: Path) -> object:
        return weights(place / "run"), bundle_content(place / "run/bundle")

    return Job("bundle", work, work, ("run",), _run_state, content, set_up=set_up)


def store_job(base: Path) -> Job:
    from facepairs.pipeline.cached_array import find_damage

    def work(place: Path) -> Work:
        resume = ("--resume",) if (place / "run/config.toml").exists() else ()
        options = ("--model", "pixels", "--store", "memory") if not resume else ()
        return command_line("train", base / "faces", "--out", place / "run", *options, *resume,
                            "--no-tensorboard-images")  # fmt: skip

    def state(place: Path) -> bool:
        bundle_state(place / "run/bundle")
        for path in place.glob("store-*.npy"):
            stored = np.load(path, mmap_mode="r")
            if problem := find_damage(path, stored.shape, np.uint8):
                raise Broken(f"{path}: {problem}")
            return True
        return False

    def content(place: Path) -> object:
        (store,) = place.glob("store-*.npy")
        return sha256(store), bundle_content(place / "run/bundle")

    return Job("store", work, work, ("run", "store-*.npy"), state, content)


def cache_job(base: Path) -> Job:
    from facepairs.pipeline.records.manifest import check_cache

    def work(place: Path) -> Work:
        return command_line("cache", "build", base / "faces", place / "cache", "--pairs", 1000,
                            "--shards", 4)  # fmt: skip

    def state(place: Path) -> bool:
        if not (place / "cache").exists():
            return False
        if problems := check_cache(place / "cache"):
            raise Broken(problems[0])
        return True

    def content(place: Path) -> object:
        return {path.name: sha256(path) for path in sorted((place / "cache").iterdir())}

    return Job("cache", work, work, ("cache",), state, content, replaces=True)


def calibrate_job(base: Path) -> Job:
    def work(place: Path) -> Work:
        return command_line("calibrate", "default", base / "faces", "--out", place / "mine")

    return Job(
        "calibrate",
        work,
        work,
        ("mine",),
        lambda place: bundle_state(place / "mine"),
        lambda place: bundle_content(place / "mine"),
        replaces=True,
    )


def crossval_job(base: Path) -> Job:
    """Two folds; what they must come to are their scores and thresholds."""

    def work(place: Path) -> Work:
        begun = (place / "view2").is_dir() and any((place / "view2").iterdir())
        return command_line("crossval", base / "sets", "--lists", base / "lists", "--config",
                            base / "view2.toml", "--out", place / "view2",
                            *(["--resume"] if begun else []))  # fmt: skip

    def state(place: Path) -> bool:
        from facepairs.training.view2.fold_record import read_fold

        for record in place.glob("view2/*/fold-*/fold.json"):
            fold = record.parent
            if read_fold(fold, fold.parent.name, int(fold.name[-2:])) is None:
                raise Broken(f"{record} does not fit its scores")
        for bundle in place.glob("view2/*/fold-*/bundle"):
            bundle_state(bundle)
        result = place / "view2/result.json"
        told = json.loads(result.read_text())["methods"] if result.exists() else {}
        return bool(told) and told["pixels"]["folds_done"] == 2

    def content(place: Path) -> object:
        records = [json.loads(path.read_text()) for path in sorted(place.rglob("fold.json"))]
        kept = ("method", "fold", "threshold", "calibration", "accuracy", "scores_sha256")
        return [[record[name] for name in kept] for record in records]

    return Job("crossval", work, work, ("view2", "store-*.npy"), state, content)


def verify_job(base: Path) -> Job:
    def work(place: Path) -> Work:
        resume = ("--resume",) if (place / "scores.csv.partial/state.json").exists() else ()
        return command_line("verify", "--pairs", base / "pairs.csv", "--out", place / "scores.csv",
                            "--root", base / "many", *resume)  # fmt: skip

    def state(place: Path) -> bool:
        path = place / "scores.csv"
        if not path.exists():
            return False
        from facepairs.evaluation.scores import read_scores

        if len(read_scores(path)) != PEOPLE * PHOTOS * COPIES:
            raise Broken(f"{path}: {len(read_scores(path))} scores")
        return True

    return Job(
        "verify", work, work, ("scores.csv",), state,
        lambda place: sha256(place / "scores.csv"), replaces=True,
    )  # fmt: skip


@contextmanager
def fetch_job(base: Path) -> Iterator[Job]:
    """`data fetch`'s workflow with a mirror on this machine in the place of the published one."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/helpers"))
    from faults_server import serving_slowly

    from facepairs.data.lfw.fetch import Archive, RemoteFile, content_sha256, fetch_lfw

    archive = base / "faces.zip"
    lists = base / "pairs.csv"
    wanted = content_sha256(base / "many")
    with serving_slowly({"pairs.txt": lists, "faces.zip": archive}) as url:
        mirror = Archive("faces.zip", f"{url}/faces.zip", sha256(archive), "faces", wanted)
        words = (RemoteFile("pairs.txt", f"{url}/pairs.txt", sha256(lists)),)

        def work(place: Path) -> Work:
            def fetch() -> None:
                from facepairs.cli.output import print_error
                from facepairs.errors import FacepairsError

                try:
                    fetch_lfw(place / "lfw", lists=words, archives={"deepfunneled": mirror})
                except FacepairsError as error:
                    print_error(error.kind, str(error), False)
                    raise SystemExit(2) from None

            return fetch

        def state(place: Path) -> bool:
            told = place / "lfw/pairs.txt"
            if told.exists() and sha256(told) != words[0].sha256:
                raise Broken(f"{told} is not what was published")
            folder = place / "lfw/faces"
            if folder.exists() and content_sha256(folder) != wanted:
                raise Broken(f"{folder} is not what was published")
            return folder.exists()

        yield Job(
            "fetch", work, work, ("lfw",), state,
            lambda place: content_sha256(place / "lfw/faces"),
        )  # fmt: skip


PLAIN = {
    "train": train_job,
    "store": store_job,
    "cache": cache_job,
    "bundle": bundle_job,
    "calibrate": calibrate_job,
    "verify": verify_job,
    "crossval": crossval_job,
}
KILLED = (*PLAIN, "fetch")
SQUEEZED = (*[name for name in KILLED if name != "bundle"], *OUTPUTS)  # `train` writes one too


@contextmanager
def job_of(name: str, base: Path) -> Iterator[Job]:
    if name == "fetch":
        with fetch_job(base) as job:
            yield job
    else:
        yield {**PLAIN, **OUTPUTS}[name](base)
