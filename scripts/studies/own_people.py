"""What fine-tuning and calibrating on 20, 50 and 100 of one's own people bring.

    python scripts/studies/own_people.py DATA --lists LISTS --view2 RUN --fold 1 --out study

RUN is a folder of `facepairs crossval`. The network of a fold was not trained on the people of its
set. Of these, 100 with two photos or more are drawn as the user's own people (the groups of 50 and
20 are the first of them); all others are the test people, the same in every row. The commands that
a user would type do the work. The study can be interrupted; the same command goes on.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.cli.shared.output import ERROR, log, print_error, progress_display
from facepairs.config import read_table
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, FacepairsError, NotEnough
from facepairs.evaluation.metrics.summary import summarise
from facepairs.support.atomic import atomic_file
from facepairs.support.random_streams import Stream, raw_words
from facepairs.training.view2.folds import check_unknown, read_view2
from facepairs.verification.verifier import Verifier

TEST_PAIRS = 6_000
FIGURES = (
    *("accuracy", "accuracy_interval", "auc", "auc_interval", "ece", "threshold", "fmr", "fnmr"),
    *("genuine_pairs", "impostor_pairs"),
)


@dataclass(frozen=True)
class Study:
    """What all rows of the study share."""

    index: FaceIndex
    start: Bundle
    own: list[int]  # the largest group, in the order drawn
    pairs: PairList  # of the test people
    out: Path
    settings: dict[str, Any]  # of both trainings
    minutes: float  # for the training from scratch


def draw(index: FaceIndex, people: np.ndarray, count: int, seed: int) -> list[int]:
    """Draw people with two photos or more, all equally likely; raises NotEnough."""
    several = people[index.image_counts[people] >= 2]
    if len(several) < count:
        raise NotEnough(
            f"{count} people with 2 photos or more are needed, the set has {len(several)}; ask for "
            "fewer with --people"
        )
    order = np.argsort(raw_words(seed, Stream.OWN_PEOPLE_STUDY, 0, 0, len(several)), kind="stable")
    return several[order[:count]].tolist()


def balanced(pairs: PairList) -> PairList:
    """Keep as many pairs of one kind as there are of the rarer, the first drawn."""
    genuine, impostor = np.flatnonzero(pairs.genuine), np.flatnonzero(~pairs.genuine)
    count = min(len(genuine), len(impostor))
    return pairs.where(np.concatenate([genuine[:count], impostor[:count]]))


def folder_of(study: Study, count: int) -> Path:
    """Make a folder of links to the first of the own people."""
    folder = study.out / f"people-{count:03}"
    folder.mkdir(parents=True, exist_ok=True)
    for person in study.own[:count]:
        link = folder / study.index.people[person]
        if not link.is_symlink():
            link.symlink_to((study.index.root / link.name).resolve())
    return folder


def facepairs(*words: object) -> dict[str, Any]:
    """Run a command; return its JSON, also that of a refusal, and the minutes it took."""
    command = ["facepairs", *map(str, words), "--json"]
    log("$ " + " ".join(command))
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        sys.exit(done.returncode or ERROR)
    if done.returncode and result.get("error", {}).get("kind") != "not_enough":
        log(result.get("error", {}).get("message", f"exit code {done.returncode}"))
        sys.exit(done.returncode)
    return {**result, "minutes": (time.monotonic() - started) / 60}


def _train(study: Study, name: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    import tomli_w

    run, file = study.out / name, study.out / f"{name}.toml"
    if (run / "config.toml").exists():
        return facepairs("train", folder, "--out", run, "--resume")
    with atomic_file(file) as handle:
        handle.write(tomli_w.dumps({"test_share": 0.0, **settings, **study.settings}))
    return facepairs("train", folder, "--out", run, "--config", file)


def make(study: Study, method: str, count: int) -> tuple[dict[str, Any], Path]:
    """Make a row's bundle; return the command's JSON and the bundle's folder."""
    name = f"{method}-{count:03}"
    start, folder = study.start, folder_of(study, count)
    if method == "calibrated":
        bundle = study.out / name / "bundle"
        return facepairs("calibrate", start.folder, folder, "--out", bundle), bundle
    if method == "fine-tuned":
        result = _train(study, name, folder, {"init": str(start.folder)})
    else:
        fixed = {
            "model": start.model,
            "align": "landmarks" if start.aligned else "none",
            "image_size": start.network.image_px,
            "minutes": study.minutes,
        }
        result = _train(study, name, folder, fixed)
    return result, study.out / name / "bundle"


def measure(study: Study, folder: Path) -> dict[str, Any]:
    """Return a bundle's figures on the test pairs, at its own threshold."""
    bundle, pairs = Bundle.open(folder), study.pairs
    paths = [study.index.path(i) for i in range(len(study.index))]
    score = Verifier(bundle).score_images(
        paths, pairs.left, pairs.right, progress_display()("scoring")
    )
    summary = summarise(pairs.genuine, score, bundle.threshold, calibration=bundle.calibration)
    return {name: getattr(summary, name) for name in FIGURES}


def row(study: Study, method: str, count: int) -> dict[str, Any]:
    """Return a row; if an earlier run has made it, from its file."""
    path = study.out / "rows" / f"{method}-{count:03}.json"
    if path.exists():
        earlier: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return earlier
    result: dict[str, Any] = {"method": method, "people": count}
    made, bundle = ({}, study.start.folder) if not count else make(study, method, count)
    if "error" in made:
        result["refused"] = made["error"]["message"]
    else:
        result |= {"minutes": made.get("minutes"), **measure(study, bundle)}
    with atomic_file(path) as handle:
        handle.write(json.dumps(result, indent=1))
    return result


def line(row: dict[str, Any]) -> str:
    """Return a row of the Markdown table."""
    who = f"{row['method']} | {row['people'] or ''}"
    if "refused" in row:
        return f"| {who} | refused: {row['refused']} | | | |"
    low, high = row["accuracy_interval"]
    minutes = "" if row["minutes"] is None else f"{row['minutes']:.1f}"
    return (
        f"| {who} | {row['accuracy']:.3f} ({low:.3f} to {high:.3f}) | {row['auc']:.3f} | "
        f"{row['ece']:.3f} | {minutes} |"
    )


def check_same_study(path: Path, about: dict[str, Any]) -> None:
    """Write what the study is about; raise BadConfig if its folder holds another study."""
    if not path.exists():
        with atomic_file(path) as handle:
            handle.write(json.dumps(about, indent=1) + "\n")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    changed = [name for name, value in about.items() if before.get(name) != value]
    if changed:
        raise BadConfig(
            f"{path}: the study there has another {', '.join(changed)}; choose another --out"
        )


def run(options: argparse.Namespace) -> None:
    sizes = sorted({int(size) for size in options.people.split(",")})
    index = FaceIndex.scan(options.data)
    view = read_view2(index, options.lists)
    if not 1 <= options.fold <= len(view.sets):
        raise BadConfig(f"--fold is {options.fold}; the lists have folds 1 to {len(view.sets)}")
    everyone = view.sets[options.fold - 1]
    start = Bundle.open(options.view2 / "siamese" / f"fold-{options.fold:02}" / "bundle")
    check_unknown(start, index, everyone, options.fold)
    own = draw(index, everyone, sizes[-1], options.seed)
    test = np.setdiff1d(everyone, own)
    pairs = balanced(distinct_pairs(index.first, test, TEST_PAIRS, options.seed))
    settings = read_table(options.config) if options.config else {}
    study = Study(index, start, own, pairs, options.out, settings, options.minutes)
    about = {
        "schema": 1,
        "fold": options.fold,
        "seed": options.seed,
        "own_people": sizes,
        "start_network_sha256": start.files[start.network.file].sha256,
        "test_people": len(test),
        "test_pairs": len(pairs),
        "minutes_from_scratch": options.minutes,
        "settings": settings,
    }
    check_same_study(options.out / "study.json", about)
    rows = [row(study, "as it is", 0)]
    for method in ("calibrated", "fine-tuned", "from scratch"):
        rows += [row(study, method, size) for size in sizes]
    with atomic_file(options.out / "result.json") as handle:
        handle.write(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    print(f"{len(pairs):,} pairs of {len(test):,} test people (fold {options.fold})\n")
    print("| | own people | accuracy (95 %) | AUC | ECE | minutes |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(map(line, rows)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of the official lists")
    parser.add_argument("--view2", type=Path, required=True, help="folder of facepairs crossval")
    parser.add_argument("--fold", type=int, default=1)
    parser.add_argument("--people", default="20,50,100")
    parser.add_argument("--minutes", type=float, default=10.0, help="of training from scratch")
    parser.add_argument("--config", type=Path, help="TOML settings for both kinds of training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/own-people"))
    try:
        run(parser.parse_args(arguments))
    except FacepairsError as error:
        print_error(error.kind, str(error), False)
        return ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
