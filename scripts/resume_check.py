"""Stop trainings at chosen places, go on with --resume, and compare every weight bit for bit.

    python scripts/resume_check.py --out resume [--models difference siamese] [--stops 6]

A place is a call within the command, such as the 4th step or the network's export: there the
process sends itself SIGKILL or Ctrl-C. Every second trial is stopped twice. What is compared with a
run that was never stopped is the SHA-256 over the arrays of the checkpoint (weights, optimizer) and
of both networks of the bundle, its threshold and calibration, and for `crossval` the scores. Rows
go to OUT/resume.jsonl, trials that stand there are not run again; `--json` prints a summary. Exit
code 1 where anything differs.
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
from faults_process import Work, command_line, run, warm_up

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

STEPS, EPOCHS = 6, 2
TOML = f"""epochs = {EPOCHS}
crop_px = 96
calibration_pairs = 200
calibration_share = 0.25
"""
FAMILIES = {  # family → pairs a batch, its settings, and the stores it reads from
    "difference": (12, "erase = 0.2\n", ("files", "memory", "tfrecord")),
    # Enough to learn a little: a network that tells nobody apart is not exported.
    "siamese-conv": (36, "learning_rate = 1e-2\n", ("files", "memory", "tfrecord")),
    "siamese": (12, "image_size = 96\n", ("files", "memory")),
}
CROSSVAL = f"""folds = "1-2"
methods = ["difference", "eigenfaces"]
[difference]
epochs = {EPOCHS}
pairs_per_epoch = {STEPS * 12}
batch_size = 12
crop_px = 96
calibration_pairs = 200
calibration_share = 0.4
[eigenfaces]
calibration_pairs = 200
calibration_share = 0.4
"""
SIGNALS = {"kill": signal.SIGKILL, "ctrl-c": signal.SIGINT}
ENDED = {"kill": {-9}, "ctrl-c": {0, 130}}  # 0: asked while only the bundle was left to do


@dataclass(frozen=True)
class Place:
    """Before or after the `number`-th call of what `name` (module:attribute) stands for."""

    told: str
    name: str
    number: int = 1
    after: bool = False

    def arm(self, act: Callable[[], None]) -> None:
        """Have `act` called there, in this process."""
        module, path = self.name.split(":")
        owner: Any = importlib.import_module(module)
        *owners, attribute = path.split(".")
        for part in owners:
            owner = getattr(owner, part)
        function, calls = getattr(owner, attribute), 0

        def called(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == self.number and not self.after:
                act()
            result = function(*given, **named)
            if calls == self.number and self.after:
                act()
            return result

        setattr(owner, attribute, called)


def _step(number: int, told: str) -> Place:
    call = "facepairs.training.callbacks:ProgressReport.on_train_batch_end"
    return Place(f"step {number}, {told}", call, number, after=True)


LOOP = (
    _step(1, "the first"),
    _step(STEPS - 2, "in mid-epoch"),
    _step(STEPS, "an epoch's last"),
    Place("validating", "facepairs.training.job:auc"),
    Place("writing a checkpoint", "numpy:savez", after=True),
    Place("a checkpoint is written", "facepairs.training.job:save_checkpoint", after=True),
    _step(STEPS + 3, "in mid-epoch"),
    _step(STEPS * EPOCHS, "the last of all"),
    Place("writing the last checkpoint", "numpy:savez", EPOCHS + 1, after=True),
    Place("exporting", "facepairs.training.finish:export_onnx"),
    Place("calibrating", "facepairs.training.finish:calibrate"),
    Place("writing the bundle", "facepairs.training.finish:write_bundle", 2),
    Place("the bundle is written", "facepairs.training.job:finish_bundle", after=True),
)
FITTING = (
    Place("fitting descriptors", "facepairs.training.job:fit_mixture"),
    Place("describing images", "facepairs.training.job:describe_images"),
    Place("images are described", "facepairs.training.job:describe_images", after=True),
    Place("starting the projection", "facepairs.training.job:start_projection", after=True),
)
FOLDS = (
    LOOP[1],
    LOOP[5],
    LOOP[9],
    Place("recording fold 1", "facepairs.training.view2.crossval:write_fold"),
    Place("between folds", "facepairs.training.view2.crossval:write_fold", after=True),
    _step(STEPS * EPOCHS + 3, "in fold 2"),
    Place("exporting fold 2", "facepairs.training.finish:export_onnx", 2),
    Place("after fold 2", "facepairs.training.view2.crossval:write_fold", 2, after=True),
    Place("fitting eigenfaces", "facepairs.training.job:fit_eigenfaces", 2),
    Place("summing up", "facepairs.training.view2.crossval:write_results"),
)


@dataclass(frozen=True)
class Task:
    """What is stopped: `start` and `again` give the work, `content` what must be the same."""

    name: str
    places: tuple[Place, ...]
    start: Callable[[Path], Work]
    again: Callable[[Path], Work]
    content: Callable[[Path], dict[str, str]]


def stopping(work: Work, place: Place, how: str) -> Work:
    """Give work that sends this process a signal at a place."""

    def stopped() -> None:
        place.arm(lambda: os.kill(os.getpid(), SIGNALS[how]))
        work()

    return stopped


def _digest(arrays: list[np.ndarray]) -> str:
    """Hash arrays in any order: exporters name them as they like."""
    parts = [hashlib.sha256(f"{a.dtype} {a.shape}".encode() + a.tobytes()) for a in arrays]
    return hashlib.sha256(b"".join(sorted(part.digest() for part in parts))).hexdigest()[:16]


def run_content(folder: Path) -> dict[str, str]:
    """Give digests of all that a training has learnt, from its run folder."""
    import h5py
    import onnx
    from onnx import numpy_helper

    with np.load(folder / "checkpoint.npz", allow_pickle=False) as archive:
        kept = [archive[name] for name in sorted(archive.files) if name != "state"]
    checkpoint = hashlib.sha256(b"".join(array.tobytes() for array in kept)).hexdigest()[:16]
    found: list[np.ndarray] = []
    with zipfile.ZipFile(folder / "bundle/model.keras") as archive:
        stored = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(stored) as weights:
        weights.visititems(
            lambda _, item: found.append(item[()]) if isinstance(item, h5py.Dataset) else None
        )
    graph = onnx.load(folder / "bundle/network.onnx").graph
    manifest = json.loads((folder / "bundle/manifest.json").read_text())
    promises = [manifest[name] for name in ("threshold", "calibration", "identities")]
    return {
        "checkpoint": checkpoint,
        "keras": _digest(found),
        "onnx": _digest([numpy_helper.to_array(tensor) for tensor in graph.initializer]),
        "promises": hashlib.sha256(json.dumps(promises).encode()).hexdigest()[:16],
    }


def crossval_content(folder: Path) -> dict[str, str]:
    """Give digests of every fold of a cross-validation."""
    found = {}
    for fold in sorted(folder.glob("*/fold-*")):
        name = f"{fold.parent.name}/{fold.name}"
        found |= {f"{name} {key}": value for key, value in run_content(fold).items()}
        scores = (fold / "scores.csv").read_bytes()
        found[f"{name} scores"] = hashlib.sha256(scores).hexdigest()[:16]
    return found


def train_task(base: Path, family: str, store: str) -> Task:
    """Describe one training; its cache is built here where it needs one."""
    file, cache = base / f"{family}.toml", base / f"cache-{family}"
    batch, settings, _ = FAMILIES[family]
    sizes = f"batch_size = {batch}\npairs_per_epoch = {STEPS * batch}\n"
    file.write_text(f'model = "{family}"\n{sizes}{TOML}{settings}')
    words: tuple[object, ...] = ("train", base / "faces", "--config", file, "--store", store)
    if store == "tfrecord":
        words += ("--cache", cache)
        build = (
            "cache", "build", base / "faces", cache, "--pairs", STEPS * batch, "--config", file,
        )  # fmt: skip
        if not cache.exists() and (ended := run(command_line(*build), base / "tmp")).code:
            raise SystemExit(f"cache build: {ended.stderr}")

    def again(out: Path) -> Work:
        if not (out / "config.toml").exists():
            return command_line(*words, "--out", out)
        return command_line("train", base / "faces", "--out", out, "--resume")

    places = (*FITTING, *LOOP) if family == "siamese" else LOOP
    start = lambda out: command_line(*words, "--out", out)  # noqa: E731
    return Task(f"{family} {store}", places, start, again, run_content)


def crossval_task(base: Path) -> Task:
    """Describe a cross-validation of two methods on two folds."""
    file = base / "crossval.toml"
    file.write_text(CROSSVAL)
    words = ("crossval", base / "many", "--lists", base / "lists", "--config", file)

    def again(out: Path) -> Work:
        resume = ("--resume",) if out.is_dir() and any(out.iterdir()) else ()
        return command_line(*words, "--out", out, *resume)

    return Task("crossval", FOLDS, again, again, crossval_content)


def prepare(base: Path) -> None:
    """Draw the faces, and write lists of folds."""
    from invented_view2 import write_lists

    from facepairs.data.synth.generate import synth_faces

    if not (base / "faces").exists():
        synth_faces(base / "faces", 24, 4, seed=5)
    if not (base / "lists").exists():
        synth_faces(base / "many", 48, 3, seed=8, size_px=125)
        write_lists(base / "many", base / "lists")


def trials(task: Task, count: int) -> Iterator[list[tuple[Place, str]]]:
    """Yield `count` lists of stops, one or two each, over places and signals; 0: every one."""
    single = [(place, how) for place in task.places for how in SIGNALS]
    mixed = [single[(7 * k) % len(single)] for k in range(len(single))]
    assert len(set(mixed)) == len(single)
    for number, stop in enumerate(mixed[: count or None]):
        # The second stop counts its calls anew, from where the run goes on.
        yield [stop] if number % 2 == 0 else [stop, mixed[(number + 5) % len(mixed)]]


def one_trial(
    task: Task, out: Path, scratch: Path, stops: list[tuple[Place, str]], wanted: dict[str, str]
) -> dict[str, Any]:
    """Stop a run, go on with it to its end, and compare."""
    shutil.rmtree(out, ignore_errors=True)
    row: dict[str, Any] = {
        "task": task.name,
        "stops": [f"{how}: {place.told}" for place, how in stops],
        "codes": [],
        "seconds": 0.0,
    }
    for number, (place, how) in enumerate(stops):
        work = (task.again if number else task.start)(out)
        ended = run(stopping(work, place, how), scratch)
        row["codes"].append(ended.code)
        row["seconds"] += ended.seconds
        # The second place may lie behind the run, which then ends.
        if ended.code not in ENDED[how] | ({0} if number else set()):
            return row | {"same": False, "problem": ended.stderr[-800:]}
    ended = run(task.again(out), scratch)
    row["seconds"] = round(row["seconds"] + ended.seconds, 1)
    if ended.code:
        return row | {"same": False, "problem": ended.stderr[-800:]}
    got = task.content(out)
    differs = sorted(name for name in wanted if got.get(name) != wanted[name])
    return row | {"same": not differs} | ({"differs": differs} if differs else {})


def check(task: Task, base: Path, count: int, results: Path) -> None:
    """Run the trials of one task that are not done yet."""
    done = {json.dumps(row["stops"]) for row in read(results) if row["task"] == task.name}
    place = base / task.name.replace(" ", "-")
    wanted: dict[str, str] = {}
    for stops in trials(task, count):
        if json.dumps([f"{how}: {where.told}" for where, how in stops]) in done:
            continue
        if not wanted:
            shutil.rmtree(place / "whole", ignore_errors=True)
            place.mkdir(exist_ok=True)
            ended = run(task.start(place / "whole"), place / "tmp")
            if ended.code:
                raise SystemExit(f"{task.name}: failed undisturbed: {ended.stderr[-800:]}")
            wanted = task.content(place / "whole")
            print(f"{task.name}: {ended.seconds:.1f} s undisturbed", file=sys.stderr, flush=True)
        row = one_trial(task, place / "run", place / "tmp", stops, wanted)
        with open(results, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")
        told = "same" if row["same"] else json.dumps(row)
        print(f"{task.name}: {' + '.join(row['stops'])}: {told}", file=sys.stderr, flush=True)


def read(results: Path) -> list[dict[str, Any]]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines() if line.endswith("}")]


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a row a task: trials, stops, those that ended at the same weights."""
    return [
        {
            "task": name,
            "trials": len(mine),
            "stops": sum(len(row["codes"]) for row in mine),
            "same": sum(row["same"] for row in mine),
            "seconds": round(sum(row["seconds"] for row in mine), 1),
        }
        for name in dict.fromkeys(row["task"] for row in rows)
        for mine in [[row for row in rows if row["task"] == name]]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = (*FAMILIES, "crossval")
    stores = ("files", "memory", "tfrecord")
    parser.add_argument("--out", type=Path, default=Path("resume"))
    parser.add_argument("--models", nargs="+", choices=every, default=every)
    parser.add_argument("--stores", nargs="+", choices=stores, default=stores)
    parser.add_argument("--stops", type=int, default=6, help="trials a task; 0: at every place")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    base = given.out.resolve()
    base.mkdir(parents=True, exist_ok=True)
    results = base / "resume.jsonl"
    prepare(base)
    warm_up()
    for model in given.models:
        if model == "crossval":
            check(crossval_task(base), base, given.stops, results)
            continue
        for store in FAMILIES[model][2]:
            if store in given.stores:
                check(train_task(base, model, store), base, given.stops, results)
    rows = read(results)
    if given.json:
        print(json.dumps({"tasks": summary(rows), "same": all(row["same"] for row in rows)}))
    else:
        print("| run | trials | stops | same weights |\n| --- | --- | --- | --- |")
        for row in summary(rows):
            print(f"| {row['task']} | {row['trials']} | {row['stops']} | {row['same']} |")
    return int(not all(row["same"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
