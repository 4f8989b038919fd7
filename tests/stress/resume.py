"""Stop trainings at chosen points, resume them, and compare every weight bit for bit.

    make resume STOPS=6
    PYTHONPATH=tests:tests/helpers python -m stress.resume [--models difference siamese] [--stops 6]

A stop point is a call within the command, such as the 4th step or the export of the network: there
the process sends itself SIGKILL or Ctrl-C. Every second trial is stopped twice. The result must be
that of a run that was never stopped: the SHA-256 over the arrays of the checkpoint (weights,
optimizer) and of both networks of the bundle, its threshold and calibration, and for `crossval` the
scores. Rows go to OUT/resume.jsonl; trials that are there are not run again. Exit code 1 if
anything differs.
"""

import argparse
import hashlib
import importlib
import io
import json
import os
import shutil
import signal
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from processes.checkpoints import saved_digest

from stress.jobs import prepare
from stress.processes import Work, append_row, command_line, read_rows, run, warm_up

STEPS, EPOCHS = 6, 2
TOML = f"""epochs = {EPOCHS}
calibration_share = 0.25
validation_share = 0.3
"""
MODELS = {  # model → pairs per batch, further settings, and the stores that it can read
    "difference": (12, "", ("files", "memory", "tfrecord")),
    # More pairs, so that it learns a little: a network that has learnt nothing is not exported.
    "siamese-conv": (36, "learning_rate = 1e-2\n", ("files", "memory", "tfrecord")),
    "siamese": (12, "image_size = 96\n", ("files", "memory")),
    "siamese-small": (12, "image_size = 96\n", ("memory",)),
    "resnet": (6, "", ("files", "memory")),
    "difference-article": (12, "", ("memory",)),
}
CROSSVAL = f"""\
[difference]
epochs = {EPOCHS}
pairs_per_epoch = {STEPS * 12}
batch_size = 12
calibration_share = 0.4
"""
SIGNALS = {"kill": signal.SIGKILL, "ctrl-c": signal.SIGINT}
EXIT_CODES = {"kill": {-9}, "ctrl-c": {0, 130}}  # 0: only the bundle was left to write


@dataclass(frozen=True)
class StopPoint:
    """Before or after the `number`-th call of the function `name` (module:attribute)."""

    label: str
    name: str
    number: int = 1
    after: bool = False

    def find(self) -> tuple[Any, str]:
        """Return the object that holds the function, and the function's name there."""
        module, path = self.name.split(":")
        owner: Any = importlib.import_module(module)
        *owners, attribute = path.split(".")
        for part in owners:
            owner = getattr(owner, part)
        return owner, attribute

    def arm(self, act: Callable[[], None]) -> None:
        """Have `act` called at this point, in this process."""
        owner, attribute = self.find()
        function, calls = getattr(owner, attribute), 0

        def called(*arguments: Any, **keywords: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == self.number and not self.after:
                act()
            result = function(*arguments, **keywords)
            if calls == self.number and self.after:
                act()
            return result

        setattr(owner, attribute, called)


def _step(number: int, label: str) -> StopPoint:
    call = "facepairs.training.callbacks:ProgressReport.on_train_batch_end"
    return StopPoint(f"step {number}, {label}", call, number, after=True)


LOOP = (
    _step(1, "the first"),
    _step(STEPS - 2, "in mid-epoch"),
    _step(STEPS, "an epoch's last"),
    StopPoint("validating", "facepairs.training.loop:auc"),
    StopPoint("writing a checkpoint", "facepairs.training.training:Training.save"),
    StopPoint("a checkpoint is written", "facepairs.training.training:Training.save", after=True),
    _step(STEPS + 3, "in mid-epoch"),
    _step(STEPS * EPOCHS, "the last of all"),
    StopPoint("writing the last checkpoint", "facepairs.training.training:Training.save", EPOCHS),
    StopPoint("exporting", "facepairs.training.trained_bundle:export_onnx"),
    StopPoint("calibrating", "facepairs.training.trained_bundle:score_pairs"),
    StopPoint("writing the bundle", "facepairs.training.trained_bundle:write_bundle", 2),
    StopPoint(
        "the bundle is written", "facepairs.training.train_people:write_trained_bundle", after=True
    ),
)
FITTING = (
    StopPoint("fitting descriptors", "facepairs.training.fisher:fit_mixture"),
    StopPoint("describing images", "facepairs.training.fisher:precompute"),
    StopPoint("images are described", "facepairs.training.fisher:precompute", after=True),
    StopPoint("starting the projection", "facepairs.training.fisher:start_projection", after=True),
)
FOLDS = (
    LOOP[1],
    LOOP[5],
    LOOP[9],
    StopPoint("recording fold 1", "facepairs.training.view2.crossval:write_scores"),
    StopPoint("between folds", "facepairs.training.view2.crossval:write_scores", after=True),
    _step(STEPS * EPOCHS + 3, "in fold 2"),
    StopPoint("exporting fold 2", "facepairs.training.trained_bundle:export_onnx", 2),
    StopPoint("after fold 2", "facepairs.training.view2.crossval:write_scores", 2, after=True),
    StopPoint("summing up", "facepairs.training.view2.crossval:measure_scores"),
)


@dataclass(frozen=True)
class Task:
    """A command that is stopped: its work from the start and resumed, and what must be the same."""

    name: str
    points: tuple[StopPoint, ...]
    start: Callable[[Path], Work]
    resume: Callable[[Path], Work]
    content: Callable[[Path], dict[str, str]]


def stopping(work: Work, point: StopPoint, how: str) -> Work:
    """Return work that sends its process a signal at a stop point."""

    def stopped() -> None:
        point.arm(lambda: os.kill(os.getpid(), SIGNALS[how]))
        work()

    return stopped


def _digest(arrays: list[np.ndarray]) -> str:
    """Hash arrays in any order, because exporters name them differently each time."""
    parts = [hashlib.sha256(f"{a.dtype} {a.shape}".encode() + a.tobytes()) for a in arrays]
    return hashlib.sha256(b"".join(sorted(part.digest() for part in parts))).hexdigest()[:16]


def run_content(folder: Path) -> dict[str, str]:
    """Return digests of everything that a training has learnt, from its run folder."""
    import h5py
    import onnx
    from onnx import numpy_helper

    arrays: list[np.ndarray] = []
    with zipfile.ZipFile(folder / "bundle/model.keras") as archive:
        stored = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(stored) as weights:
        weights.visititems(
            lambda _, item: arrays.append(item[()]) if isinstance(item, h5py.Dataset) else None
        )
    graph = onnx.load(folder / "bundle/network.onnx").graph
    names = ("measured.json", "identities.json")
    promises = [json.loads((folder / "bundle" / name).read_text()) for name in names]
    return {
        "checkpoint": saved_digest(folder)[:16],
        "keras": _digest(arrays),
        "onnx": _digest([numpy_helper.to_array(tensor) for tensor in graph.initializer]),
        "promises": hashlib.sha256(json.dumps(promises).encode()).hexdigest()[:16],
    }


def crossval_content(folder: Path) -> dict[str, str]:
    """Return digests of every fold of a cross-validation."""
    digests = {}
    for fold in sorted(folder.glob("*/fold-*")):
        name = f"{fold.parent.name}/{fold.name}"
        digests |= {f"{name} {key}": value for key, value in run_content(fold).items()}
        scores = (fold / "scores.csv").read_bytes()
        digests[f"{name} scores"] = hashlib.sha256(scores).hexdigest()[:16]
    return digests


def train_task(base: Path, model: str, store: str) -> Task:
    """Describe one training; if it reads a cache, that is built here."""
    file, cache = base / f"{model}.toml", base / f"cache-{model}"
    batch, settings, _ = MODELS[model]
    sizes = f"batch_size = {batch}\npairs_per_epoch = {STEPS * batch}\n"
    file.write_text(f'model = "{model}"\n{sizes}{TOML}{settings}')
    words: tuple[object, ...] = ("train", base / "sets", "--config", file)
    words += ("--pair-cache", cache) if store == "tfrecord" else ("--store", store)
    if store == "tfrecord":
        build = (
            "cache", "build", base / "sets", "--out", cache, "--pair-count", STEPS * batch,
            "--config", file,
        )  # fmt: skip
        if not cache.exists() and (ended := run(command_line(*build), base / "tmp")).code:
            raise SystemExit(f"cache build: {ended.stderr}")

    def start(out: Path) -> Work:
        return command_line(*words, "--out", out)

    def resume(out: Path) -> Work:
        if not (out / "config.toml").exists():
            return start(out)
        return command_line("train", base / "sets", "--out", out, "--resume")

    points = (*FITTING, *LOOP) if model in ("siamese", "siamese-small") else LOOP
    return Task(f"{model} {store}", points, start, resume, run_content)


def crossval_task(base: Path) -> Task:
    """Describe a cross-validation of two methods on two folds."""
    file = base / "crossval.toml"
    file.write_text(CROSSVAL)
    words = (
        "crossval",
        base / "sets",
        "--lists",
        base / "lists",
        "--config",
        file,
        "--folds",
        "1-2",
    )

    def start(out: Path) -> Work:
        resume = ("--resume",) if out.is_dir() and any(out.iterdir()) else ()
        return command_line(*words, "--out", out, *resume)

    return Task("crossval", FOLDS, start, start, crossval_content)


def trials(task: Task, count: int) -> Iterator[list[tuple[StopPoint, str]]]:
    """Yield `count` lists of one or two stops, over points and signals; all of them for 0."""
    single = [(point, how) for point in task.points for how in SIGNALS]
    mixed = [single[(7 * k) % len(single)] for k in range(len(single))]
    assert len(set(mixed)) == len(single)
    for number, stop in enumerate(mixed[: count or None]):
        # The second stop counts its calls from where the run resumes.
        yield [stop] if number % 2 == 0 else [stop, mixed[(number + 5) % len(mixed)]]


def one_trial(
    task: Task,
    out: Path,
    scratch: Path,
    stops: list[tuple[StopPoint, str]],
    expected: dict[str, str],
) -> dict[str, Any]:
    """Stop a run, resume it to its end, and compare."""
    shutil.rmtree(out, ignore_errors=True)
    row: dict[str, Any] = {
        "task": task.name,
        "stops": _labels(stops),
        "codes": [],
        "seconds": 0.0,
    }
    for number, (point, how) in enumerate(stops):
        work = (task.resume if number else task.start)(out)
        ended = run(stopping(work, point, how), scratch)
        row["codes"].append(ended.code)
        row["seconds"] += ended.seconds
        # The run may end before it reaches the second point.
        if ended.code not in EXIT_CODES[how] | ({0} if number else set()):
            return row | {"same": False, "problem": ended.stderr[-800:]}
    ended = run(task.resume(out), scratch)
    row["seconds"] = round(row["seconds"] + ended.seconds, 1)
    if ended.code:
        return row | {"same": False, "problem": ended.stderr[-800:]}
    content = task.content(out)
    differs = sorted(name for name in expected if content.get(name) != expected[name])
    return row | {"same": not differs} | ({"differs": differs} if differs else {})


def _labels(stops: list[tuple[StopPoint, str]]) -> list[str]:
    return [f"{how}: {point.label}" for point, how in stops]


def check(task: Task, base: Path, count: int, results: Path) -> None:
    """Run the trials of one task that are not done yet."""
    done = [row["stops"] for row in read_rows(results) if row["task"] == task.name]
    todo = [stops for stops in trials(task, count) if _labels(stops) not in done]
    if not todo:
        return
    folder = base / task.name.replace(" ", "-")
    shutil.rmtree(folder / "undisturbed", ignore_errors=True)
    folder.mkdir(exist_ok=True)
    ended = run(task.start(folder / "undisturbed"), folder / "tmp")
    if ended.code:
        raise SystemExit(f"{task.name}: failed undisturbed: {ended.stderr[-800:]}")
    expected = task.content(folder / "undisturbed")
    print(f"{task.name}: {ended.seconds:.1f} s undisturbed", file=sys.stderr, flush=True)
    for stops in todo:
        row = one_trial(task, folder / "stopped", folder / "tmp", stops, expected)
        append_row(results, row)
        outcome = "same" if row["same"] else json.dumps(row)
        print(f"{task.name}: {' + '.join(row['stops'])}: {outcome}", file=sys.stderr, flush=True)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per task: trials, stops, and how many ended at the same weights."""
    return [
        {
            "task": name,
            "trials": len(trials),
            "stops": sum(len(row["codes"]) for row in trials),
            "same": sum(row["same"] for row in trials),
            "seconds": round(sum(row["seconds"] for row in trials), 1),
        }
        for name in dict.fromkeys(row["task"] for row in rows)
        for trials in [[row for row in rows if row["task"] == name]]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = (*MODELS, "crossval")
    stores = ("files", "memory", "tfrecord")
    parser.add_argument("--out", type=Path, default=Path("resume"))
    parser.add_argument("--models", nargs="+", choices=every, default=every)
    parser.add_argument("--stores", nargs="+", choices=stores, default=stores)
    parser.add_argument("--stops", type=int, default=6, help="trials per task; 0: at every point")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    base = options.out.resolve()
    base.mkdir(parents=True, exist_ok=True)
    results = base / "resume.jsonl"
    prepare(base)
    warm_up()
    for model in options.models:
        if model == "crossval":
            check(crossval_task(base), base, options.stops, results)
            continue
        for store in MODELS[model][2]:
            if store in options.stores:
                check(train_task(base, model, store), base, options.stops, results)
    rows = read_rows(results)
    if options.json:
        print(json.dumps({"tasks": summary(rows), "same": all(row["same"] for row in rows)}))
    else:
        print("| run | trials | stops | same weights |\n| --- | --- | --- | --- |")
        for row in summary(rows):
            print(f"| {row['task']} | {row['trials']} | {row['stops']} | {row['same']} |")
    return int(not all(row["same"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
