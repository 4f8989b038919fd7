"""The commands that are killed or squeezed: how each starts and resumes, what it must leave."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from drawn.view2 import write_lists
from PIL import Image
from processes.checkpoints import saved_digest

from facepairs.data.synth.folder import write_synthetic_faces
from stress.processes import Work, command_line, run

PEOPLE, PHOTOS, COPIES = 24, 4, 3
TRAIN_TOML = """model = "difference"
epochs = 2
pairs_per_epoch = 96
batch_size = 16
image_size = 64
"""
VIEW2_TOML = """\
[difference]
epochs = 1
pairs_per_epoch = 96
batch_size = 16
calibration_share = 0.4
"""
PROMISES = ("measured.json", "identities.json")
FOLD_KEYS = ("balanced_threshold", "calibration", "scores_sha256")


class Broken(Exception):
    """An output is neither complete nor absent."""


def _nothing(place: Path) -> None: ...


@dataclass(frozen=True)
class Job:
    """A command that runs in a folder.

    Attributes:
        name: Its name.
        outputs: Patterns of what it writes there.
        start: Returns the work from the beginning.
        is_complete: Whether the output is complete; False if it is absent. Raises otherwise.
        content: Returns what must equal that of an undisturbed run.
        resume: Returns the work that goes on after a kill; by default the same as `start`.
        replaces: Whether an old output may be there.
        set_up: Puts into the folder what the work starts from.
    """

    name: str
    outputs: tuple[str, ...]
    start: Callable[[Path], Work]
    is_complete: Callable[[Path], bool]
    content: Callable[[Path], object]
    resume: Callable[[Path], Work] | None = None
    replaces: bool = False
    set_up: Callable[[Path], object] = _nothing

    def again(self, place: Path) -> Work:
        """Return the work that goes on after a kill."""
        return (self.resume or self.start)(place)

    def clear(self, place: Path) -> None:
        """Remove the outputs, and nothing else."""
        for pattern in self.outputs:
            for path in place.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def prepare(base: Path) -> None:
    """Draw the faces and write the lists and settings that the jobs read."""
    faces, many = base / "faces", base / "many"
    if many.exists():
        return
    if not faces.exists():
        write_synthetic_faces(faces, PEOPLE, PHOTOS, seed=5)
    part = base / "many.part"
    for photo in sorted(faces.glob("*/*.jpg")):
        (part / photo.parent.name).mkdir(parents=True, exist_ok=True)
        for copy in range(COPIES):
            other = photo.read_bytes() + bytes([copy])  # of another content, but the same pixels
            (part / photo.parent.name / f"{photo.stem}_{copy}.jpg").write_bytes(other)
    names = [str(path.relative_to(part)) for path in sorted(part.glob("*/*.jpg"))]
    rows = [f"{one},{other},0" for one, other in zip(names, names[::-1], strict=True)]
    (base / "pairs.csv").write_text("\n".join(["left,right,genuine", *rows]) + "\n")
    (base / "train.toml").write_text(TRAIN_TOML)
    (base / "view2.toml").write_text(VIEW2_TOML)
    write_synthetic_faces(base / "sets", 48, 3, seed=8, size_px=125)
    write_lists(base / "sets", base / "lists")
    with zipfile.ZipFile(base / "faces.zip", "w") as archive:
        for name in names:
            archive.write(part / name, f"faces/{name}")
    part.rename(many)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bundle_is_complete(folder: Path) -> bool:
    from facepairs.bundles.bundle import Bundle

    if not folder.exists():
        return False
    Bundle.open(folder).check_all()
    return True


def bundle_content(folder: Path) -> object:
    """Return what a bundle promises; its network's bytes hold generated node names and times."""
    return [json.loads((folder / name).read_text()) for name in PROMISES]


def run_is_complete(place: Path) -> bool:
    """Check a run folder's files and its bundle."""
    folder = place / "run"
    if (folder / "checkpoints/checkpoint").exists():
        saved_digest(folder)
    if (folder / "history.json").exists():
        json.loads((folder / "history.json").read_text())
    if (folder / "config.toml").exists() and "model" not in (folder / "config.toml").read_text():
        raise Broken("config.toml is cut")
    return bundle_is_complete(folder / "bundle")


def run_content(place: Path) -> object:
    return saved_digest(place / "run"), bundle_content(place / "run/bundle")


def train_job(base: Path) -> Job:
    words = ("train", base / "faces", "--config", base / "train.toml", "--store", "files")

    def start(place: Path) -> Work:
        return command_line(*words, "--out", place / "run")

    def resume(place: Path) -> Work:
        started = (place / "run/config.toml").exists()
        return _resume_train(base, place) if started else start(place)

    return Job("train", ("run",), start, run_is_complete, run_content, resume)


def _resume_train(base: Path, place: Path) -> Work:
    return command_line("train", base / "faces", "--out", place / "run", "--resume")


def bundle_job(base: Path) -> Job:
    """Only the end of a training: its network is exported, calibrated and written."""
    trained = base / "trained"
    if not (trained / "run/bundle").exists():
        shutil.rmtree(trained, ignore_errors=True)
        ended = run(train_job(base).start(trained), base / "tmp")
        if ended.code:
            raise SystemExit(f"bundle: the training that it starts from failed: {ended.stderr}")

    def set_up(place: Path) -> None:
        shutil.copytree(trained / "run", place / "run", ignore=shutil.ignore_patterns("bundle"))

    def work(place: Path) -> Work:
        return _resume_train(base, place)

    return Job("bundle", ("run",), work, run_is_complete, run_content, set_up=set_up)


def store_job(base: Path) -> Job:
    from facepairs.pipeline.cached_array import find_damage

    def work(place: Path) -> Work:
        started = (place / "run/config.toml").exists()
        options = (
            ("--resume",) if started else ("--config", base / "train.toml", "--store", "memory")
        )
        return command_line("train", base / "faces", "--out", place / "run", *options)

    def is_complete(place: Path) -> bool:
        bundle_is_complete(place / "run/bundle")
        for path in place.glob("store-*.npy"):
            stored = np.load(path, mmap_mode="r")
            if problem := find_damage(path, stored.shape, np.uint8):
                raise Broken(f"{path}: {problem}")
            return True
        return False

    def content(place: Path) -> object:
        (store,) = place.glob("store-*.npy")
        return sha256(store), bundle_content(place / "run/bundle")

    return Job("store", ("run", "store-*.npy"), work, is_complete, content)


def cache_job(base: Path) -> Job:
    from facepairs.pipeline.records.store import RecordStore

    def work(place: Path) -> Work:
        return command_line("cache", "build", base / "faces", "--out", place / "cache",
                            "--pair-count", 3000)  # fmt: skip

    def is_complete(place: Path) -> bool:
        if not (place / "cache").exists():
            return False
        RecordStore.open(place / "cache")
        return True

    def content(place: Path) -> object:
        return {path.name: sha256(path) for path in sorted((place / "cache").iterdir())}

    return Job("cache", ("cache",), work, is_complete, content, replaces=True)


def calibrate_job(base: Path) -> Job:
    return Job(
        "calibrate",
        ("mine",),
        lambda place: command_line("calibrate", "default", base / "faces", "--out", place / "mine"),
        lambda place: bundle_is_complete(place / "mine"),
        lambda place: bundle_content(place / "mine"),
        replaces=True,
    )


def crossval_job(base: Path) -> Job:
    """Two folds; their scores and thresholds must be the same."""

    def work(place: Path) -> Work:
        started = (place / "view2").is_dir() and any((place / "view2").iterdir())
        return command_line("crossval", base / "sets", "--lists", base / "lists", "--config",
                            base / "view2.toml", "--out", place / "view2",
                            "--folds", "1-2", *(["--resume"] if started else []))  # fmt: skip

    def is_complete(place: Path) -> bool:
        from facepairs.training.view2.crossval import read_fold

        for scores in place.glob("view2/*/fold-*/scores.csv.json"):
            if read_fold(scores.parent, int(scores.parent.name[-2:])) is None:
                raise Broken(f"{scores} does not fit its scores")
        for bundle in place.glob("view2/*/fold-*/bundle"):
            bundle_is_complete(bundle)
        result = place / "view2/difference/result.json"
        return result.exists() and len(json.loads(result.read_text())["folds"]) == 2

    def content(place: Path) -> object:
        records = [
            json.loads(path.read_text()) for path in sorted(place.rglob("fold-*/*.csv.json"))
        ]
        return [[record[name] for name in FOLD_KEYS] for record in records]

    return Job("crossval", ("view2", "store-*.npy"), work, is_complete, content)


def verify_job(base: Path) -> Job:
    def work(place: Path) -> Work:
        return command_line("score", base / "pairs.csv", "--out", place / "scores.csv",
                            "--root", base / "many",
                            "--cache", place / "photos.sqlite")  # fmt: skip

    def is_complete(place: Path) -> bool:
        from facepairs.evaluation.scores import read_scores

        path = place / "scores.csv"
        if not path.exists():
            return False
        if len(read_scores(path)) != PEOPLE * PHOTOS * COPIES:
            raise Broken(f"{path}: {len(read_scores(path))} scores")
        return True

    return Job(
        "verify", ("scores.csv", "photos.sqlite*"), work, is_complete,
        lambda place: sha256(place / "scores.csv"), replaces=True,
    )  # fmt: skip


def evaluate_job(base: Path) -> Job:
    def work(place: Path) -> Work:
        out = place / "out"
        files = ("--out", out / "scores.csv", "--report", out / "report.html")
        return command_line("evaluate", "default", base / "faces", *files)

    def check(out: Path) -> None:
        from facepairs.evaluation.scores import read_scores

        if (out / "scores.csv").exists():
            read_scores(out / "scores.csv")
        report = out / "report.html"
        if report.exists() and not report.read_text().rstrip().endswith("</html>"):
            raise Broken(f"{report} is cut")

    return _quick_job("evaluate", work, check)


def export_job(base: Path) -> Job:
    def check(out: Path) -> None:
        import onnx

        json.loads((out / "export.json").read_text())
        onnx.load(out / "network.onnx")

    return _quick_job(
        "export", lambda place: command_line("export", "default", "--out", place / "out"), check
    )


def synth_job(base: Path) -> Job:
    words = ("--people", 20, "--photos", 3)
    return _quick_job(
        "synth",
        lambda place: command_line("data", "synth", "--out", place / "out", *words),
        lambda out: _check_photos(out, 60),
    )


def check_job(base: Path) -> Job:
    """`data check`, which writes nothing."""
    return _quick_job("check", lambda _: command_line("data", "check", base / "faces"), _nothing)


def _check_photos(folder: Path, expected: int) -> None:
    if len(paths := list(folder.glob("*/*.jpg"))) != expected:
        raise Broken(f"{folder}: {len(paths)} photos, not {expected}")
    for path in paths:
        with Image.open(path) as photo:
            photo.load()


def _quick_job(name: str, work: Callable[[Path], Work], check: Callable[[Path], object]) -> Job:
    """Return a job that writes `out`; `check` raises if that is not complete."""

    def is_complete(place: Path) -> bool:
        if written := (place / "out").exists():
            check(place / "out")
        return written

    return Job(name, ("out",), work, is_complete, is_complete)


_KILLED = {
    "train": train_job,
    "store": store_job,
    "cache": cache_job,
    "bundle": bundle_job,
    "calibrate": calibrate_job,
    "verify": verify_job,
    "crossval": crossval_job,
}
_QUICK = {  # they write something in a second or two
    "evaluate": evaluate_job,
    "export": export_job,
    "synth": synth_job,
    "check": check_job,
}
KILLED = (*_KILLED, "gallery", "fetch")
SQUEEZED = (*[name for name in KILLED if name != "bundle"], *_QUICK)  # `train` writes a bundle too


@contextmanager
def open_job(name: str, base: Path) -> Iterator[Job]:
    """Yield the job of a name, whose folders are below `base`."""
    if name == "fetch":
        from stress.fetch_job import fetch_job

        with fetch_job(base) as job:
            yield job
    elif name == "gallery":
        from stress.gallery_job import gallery_job

        yield gallery_job(base)
    else:
        yield {**_KILLED, **_QUICK}[name](base)
