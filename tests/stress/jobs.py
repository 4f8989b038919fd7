"""The commands that are killed or squeezed: how each starts or goes on, what it must leave."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawn.view2 import write_lists
from PIL import Image
from processes.checkpoints import saved_digest

from facepairs.data.synth.folder import write_synthetic_faces
from stress.processes import Work, command_line

PEOPLE, PHOTOS, COPIES, DRAWN = 24, 4, 3, 60
TRAIN_TOML = """epochs = 2
pairs_per_epoch = 96
batch_size = 16
"""
VIEW2_TOML = f'model = "difference"\n{TRAIN_TOML}calibration_share = 0.4\n'
PROMISES = ("measured.json", "identities.json")
FOLD_KEYS = ("calibration", "scores_sha256")


class Broken(Exception):
    """An output is neither complete nor absent."""


@dataclass(frozen=True)
class Job:
    """A command that runs in a folder.

    Attributes:
        name: Its name.
        outputs: Patterns of what it writes there.
        words: Returns its words, from the beginning or, in a folder where it was stopped, to go on.
        is_complete: Whether the output is complete; False if it is absent. Raises otherwise.
        content: Returns what must equal that of an undisturbed run.
        replaces: Whether an old output may be there.
    """

    name: str
    outputs: tuple[str, ...]
    words: Callable[[Path], tuple[object, ...]]
    is_complete: Callable[[Path], bool]
    content: Callable[[Path], object]
    replaces: bool = False

    def work(self, place: Path) -> Work:
        return command_line(*self.words(place))

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
    shutil.rmtree(faces, ignore_errors=True)
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
    for model in ("difference", "fisher"):
        settings = f'model = "{model}"\n{TRAIN_TOML}'
        (base / f"{model}.toml").write_text(settings)
    (base / "view2.toml").write_text(VIEW2_TOML)
    shutil.rmtree(base / "sets", ignore_errors=True)
    write_synthetic_faces(base / "sets", 48, 3, seed=8, size_px=125)
    write_lists(base / "sets", base / "lists")
    part.rename(many)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def bundle_is_complete(folder: Path) -> bool:
    from facepairs.bundles.bundle import Bundle

    if folder.exists():
        Bundle.open(folder).check_all()
    return folder.exists()


def promises(folder: Path) -> object:
    """Return what a bundle promises; its network's bytes hold generated node names and times."""
    return [read_json(folder / name) for name in PROMISES]


def train_job(base: Path, name: str, model: str, store: str) -> Job:
    def words(place: Path) -> tuple[object, ...]:
        out = ("train", base / "sets", "--out", place / "run")
        if (place / "run/config.toml").exists():
            return (*out, "--resume")
        return (*out, "--config", base / f"{model}.toml", "--store", store)

    def is_complete(place: Path) -> bool:
        run = place / "run"
        if any(run.glob("checkpoints/epoch-*")):
            saved_digest(run)
        if (run / "config.toml").exists() and "model" not in (run / "config.toml").read_text():
            raise Broken("config.toml is cut")
        return bundle_is_complete(run / "bundle")

    def content(place: Path) -> object:
        return saved_digest(place / "run"), promises(place / "run/bundle")

    return Job(name, ("run",), words, is_complete, content)


def cache_job(base: Path) -> Job:
    from facepairs.pipeline.records.store import RecordStore

    def is_complete(place: Path) -> bool:
        if exists := (place / "cache").exists():
            RecordStore.open(place / "cache")
        return exists

    return Job(
        "cache",
        ("cache",),
        lambda place: (
            *("cache", "build", base / "faces", "--out", place / "cache", "--pair-count", 3000),
        ),
        is_complete,
        lambda place: {path.name: sha256(path) for path in sorted((place / "cache").iterdir())},
        replaces=True,
    )


def calibrate_job(base: Path) -> Job:
    return Job(
        "calibrate",
        ("mine",),
        lambda place: ("calibrate", "default", base / "faces", "--out", place / "mine"),
        lambda place: bundle_is_complete(place / "mine"),
        lambda place: promises(place / "mine"),
        replaces=True,
    )


def crossval_job(base: Path) -> Job:
    """Two folds; their scores and thresholds must be the same."""
    same = ("crossval", base / "sets", "--lists", base / "lists", "--fold", "1", "--fold", "2",
            "--config", base / "view2.toml")  # fmt: skip

    def words(place: Path) -> tuple[object, ...]:
        started = (place / "view2/config.toml").exists()
        return (*same, "--out", place / "view2", *(["--resume"] if started else []))

    def is_complete(place: Path) -> bool:
        from facepairs.training.view2.crossval import read_fold

        for scores in place.glob("view2/fold-*/scores.csv.json"):
            if read_fold(scores.parent, int(scores.parent.name[-2:])) is None:
                raise Broken(f"{scores} does not fit its scores")
        for bundle in place.glob("view2/fold-*/bundle"):
            bundle_is_complete(bundle)
        result = place / "view2/result.json"
        return result.exists() and len(read_json(result)["folds"]) == 2

    def content(place: Path) -> object:
        records = map(read_json, sorted(place.rglob("fold-*/*.csv.json")))
        return [[record[name] for name in FOLD_KEYS] for record in records]

    return Job("crossval", ("view2",), words, is_complete, content)


def score_job(base: Path) -> Job:
    def words(place: Path) -> tuple[object, ...]:
        files = ("--out", place / "scores.csv", "--photo-cache", place / "photos.sqlite")
        return ("score", base / "pairs.csv", "--root", base / "many", *files)

    def is_complete(place: Path) -> bool:
        from facepairs.evaluation.scores import read_scores

        path = place / "scores.csv"
        if path.exists() and len(read_scores(path)) != PEOPLE * PHOTOS * COPIES:
            raise Broken(f"{path}: {len(read_scores(path))} scores")
        return path.exists()

    def content(place: Path) -> object:
        return sha256(place / "scores.csv")

    outputs = ("scores.csv", "photos.sqlite*")
    return Job("score", outputs, words, is_complete, content, replaces=True)


def gallery_job(base: Path) -> Job:
    """Enrol a folder; the photos that were enrolled before a kill are still there."""

    def people(place: Path) -> object:
        from facepairs.gallery.stores.sqlite import SqliteStore

        store = SqliteStore(place / "known.gallery", write=True)
        try:
            if problems := store.problems():
                raise Broken(problems[0])
            return [(one.name, one.photos) for one in store.people()]
        finally:
            store.close()

    def is_complete(place: Path) -> bool:
        everybody = [(path.name, PHOTOS) for path in sorted((base / "faces").iterdir())]
        return (place / "known.gallery").exists() and people(place) == everybody

    return Job(
        "gallery",
        ("known.gallery*",),
        lambda place: (
            *("gallery", "add", place / "known.gallery", base / "faces", "--any-quality"),
        ),
        is_complete,
        people,
    )


def evaluate_job(base: Path) -> Job:
    def words(place: Path) -> tuple[object, ...]:
        out = place / "out"
        files = ("--out", out / "scores.csv", "--report", out / "report.html")
        return ("evaluate", "default", base / "faces", *files)

    def check(out: Path) -> None:
        from facepairs.evaluation.scores import read_scores

        if (out / "scores.csv").exists():
            read_scores(out / "scores.csv")
        report = out / "report.html"
        if report.exists() and not report.read_text().rstrip().endswith("</html>"):
            raise Broken(f"{report} is cut")

    return _quick_job("evaluate", words, check)


def export_job(base: Path) -> Job:
    def check(out: Path) -> None:
        import onnx

        read_json(out / "export.json")
        onnx.load(out / "network.onnx")

    return _quick_job("export", lambda place: ("export", "default", "--out", place / "out"), check)


def synth_job(base: Path) -> Job:
    def check(out: Path) -> None:
        if len(paths := list(out.glob("*/*.jpg"))) != DRAWN:
            raise Broken(f"{out}: {len(paths)} photos")
        for path in paths:
            with Image.open(path) as photo:
                photo.load()

    def words(place: Path) -> tuple[object, ...]:
        return ("data", "synth", "--out", place / "out", "--people", DRAWN // 3, "--photos", 3)

    return _quick_job("synth", words, check)


def check_job(base: Path) -> Job:
    """`data check`, which writes nothing."""
    return _quick_job("check", lambda _: ("data", "check", base / "faces"), lambda _: None)


def _quick_job(
    name: str, words: Callable[[Path], tuple[object, ...]], check: Callable[[Path], object]
) -> Job:
    """Return a job that writes `out`; `check` raises if that is not complete."""

    def is_complete(place: Path) -> bool:
        if (place / "out").exists():
            check(place / "out")
        return (place / "out").exists()

    return Job(name, ("out",), words, is_complete, is_complete)


KILLED: dict[str, Callable[[Path], Job]] = {
    "train": lambda base: train_job(base, "train", "difference", "files"),
    "fisher": lambda base: train_job(base, "fisher", "fisher", "memory"),
    "cache": cache_job,
    "calibrate": calibrate_job,
    "score": score_job,
    "crossval": crossval_job,
    "gallery": gallery_job,
}
SQUEEZED = {  # the others write something in a second or two
    **KILLED,
    "evaluate": evaluate_job,
    "export": export_job,
    "synth": synth_job,
    "check": check_job,
}
