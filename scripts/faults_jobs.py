"""The jobs that are disturbed: how each starts and goes on, and what must be true afterwards."""

import hashlib
import json
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults_process import Work, command_line

from facepairs.data.synth import synth_faces

PEOPLE, PHOTOS, COPIES = 24, 4, 3
TOML = """model = "difference"
epochs = 3
pairs_per_epoch = 96
batch_size = 16
crop_px = 64
image_size = 64
"""


class Broken(Exception):
    """Something stands there that is neither whole nor absent."""


@dataclass(frozen=True)
class Job:
    """`start` and `again` give the work in a folder; `outputs` are patterns of what it writes.

    `state` is False while the output is absent and True where it is whole, or raises. `content`
    gives what must be the same as after an undisturbed run. Where `replaces`, an old output may be
    there.
    """

    name: str
    start: Callable[[Path], Work]
    again: Callable[[Path], Work]
    outputs: tuple[str, ...]
    state: Callable[[Path], bool]
    content: Callable[[Path], object]
    replaces: bool = False


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bundle_state(folder: Path) -> bool:
    from facepairs.verification.bundle import Bundle

    if not folder.exists():
        return False
    Bundle.open(folder).check_all()
    return True


def bundle_content(folder: Path) -> object:
    """What it promises; the network's bytes have made-up names of nodes in them, and times."""
    raw = json.loads((folder / "manifest.json").read_text())
    return [raw[name] for name in ("threshold", "calibration", "identities", "thresholds")]


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
            return command_line("train", base / "faces", "--out", place / "run", "--resume",
                                "--no-tensorboard-images")  # fmt: skip
        return command_line(*words, "--out", place / "run")

    def state(place: Path) -> bool:
        run = place / "run"
        if (run / "checkpoint.npz").exists():
            weights(run)
        if (run / "history.json").exists():
            json.loads((run / "history.json").read_text())
        if (run / "config.toml").exists() and "model" not in (run / "config.toml").read_text():
            raise Broken("config.toml is cut")
        return bundle_state(run / "bundle")

    return Job(
        "train",
        lambda place: command_line(*words, "--out", place / "run"),
        again,
        ("run",),
        state,
        lambda place: (weights(place / "run"), bundle_content(place / "run/bundle")),
    )


def weights(run: Path) -> str:
    digest = hashlib.sha256()
    with np.load(run / "checkpoint.npz", allow_pickle=False) as archive:
        for name in archive.files:
            if name != "state":  # it holds times
                digest.update(archive[name].tobytes())
    return digest.hexdigest()


def store_job(base: Path) -> Job:
    from facepairs.pipeline.kept import damage

    def work(place: Path) -> Work:
        resume = ("--resume",) if (place / "run/config.toml").exists() else ()
        options = ("--model", "pixels", "--store", "memory") if not resume else ()
        return command_line("train", base / "faces", "--out", place / "run", *options, *resume,
                            "--no-tensorboard-images")  # fmt: skip

    def state(place: Path) -> bool:
        bundle_state(place / "run/bundle")
        for path in place.glob("store-*.npy"):
            stored = np.load(path, mmap_mode="r")
            if problem := damage(path, stored.shape, np.uint8):
                raise Broken(f"{path}: {problem}")
            return True
        return False

    def content(place: Path) -> object:
        (store,) = place.glob("store-*.npy")
        return sha256(store), bundle_content(place / "run/bundle")

    return Job("store", work, work, ("run", "store-*.npy"), state, content)


def cache_job(base: Path) -> Job:
    from facepairs.pipeline.record_check import check_cache

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


def bundle_job(base: Path) -> Job:
    def work(place: Path) -> Work:
        return command_line("calibrate", "default", base / "faces", "--out", place / "mine")

    return Job(
        "bundle",
        work,
        work,
        ("mine",),
        lambda place: bundle_state(place / "mine"),
        lambda place: bundle_content(place / "mine"),
        replaces=True,
    )


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
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/data"))
    from faults_server import serving_slowly

    from facepairs.data.fetch import Archive, Source, content_sha256, fetch_lfw

    archive = base / "faces.zip"
    lists = base / "pairs.csv"
    wanted = content_sha256(base / "many")
    with serving_slowly({"pairs.txt": lists, "faces.zip": archive}) as url:
        mirror = Archive("faces.zip", f"{url}/faces.zip", sha256(archive), "faces", wanted)
        words = (Source("pairs.txt", f"{url}/pairs.txt", sha256(lists)),)

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
    "verify": verify_job,
}
JOBS = (*PLAIN, "fetch")


@contextmanager
def job_of(name: str, base: Path) -> Iterator[Job]:
    if name == "fetch":
        with fetch_job(base) as job:
            yield job
    else:
        yield PLAIN[name](base)
