"""What fine-tuning and calibrating on 20, 50 and 100 of one's own people bring.

    python scripts/own_people.py DATA --lists LISTS --view2 RUN --fold 1 --out study

RUN is a folder of `facepairs crossval`. One fold's network has not seen the people of its set: of
these, 100 with two photos or more are drawn as the user's own, 50 and 20 are the first of them, and
all others are the test people, the same for every row. Own people are split by the product itself,
through the commands that a user would type. Stop and repeat as you like: what is done stays done.
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
from facepairs.cli.output import ERROR, print_error, say, ticker
from facepairs.config import read_table
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, FacepairsError, NotEnough
from facepairs.evaluation.summary import summarise
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
    """Everything that all rows share."""

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
    """Make a folder with the first of the own people, as links."""
    folder = study.out / f"people-{count:03}"
    folder.mkdir(parents=True, exist_ok=True)
    for person in study.own[:count]:
        link = folder / study.index.people[person]
        if not link.is_symlink():
            link.symlink_to((study.index.root / link.name).resolve())
    return folder


def facepairs(*words: object) -> dict[str, Any]:
    """Run a command; give its JSON, also that of a refusal, with the minutes it took."""
    command = ["facepairs", *map(str, words), "--json"]
    say("$ " + " ".join(command))
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        sys.exit(done.returncode or ERROR)
    if done.returncode and result.get("error", {}).get("kind") != "not_enough":
        say(result.get("error", {}).get("message", f"exit code {done.returncode}"))
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
    """Make a row's bundle; give what the command said, and where the bundle is."""
    name = f"{method}-{count:03}"
    start, folder = study.start, folder_of(study, count)
    if method == "calibrated":
        bundle = study.out / name / "bundle"
        return facepairs("calibrate", start.folder, folder, "--out", bundle), bundle
    if method == "fine-tuned":
        told = _train(study, name, folder, {"init": str(start.folder)})
    else:
        fixed = {
            "model": start.model,
            "image_size": start.raw["network"]["image_px"],
            "frame_px": start.framing.frame_px,
            "crop_px": start.framing.crop_px,
            "minutes": study.minutes,
        }
        told = _train(study, name, folder, fixed)
    return told, study.out / name / "bundle"


def measure(study: Study, folder: Path) -> dict[str, Any]:
    """Give a bundle's figures on the test pairs, at its own threshold."""
    bundle, pairs = Bundle.open(folder), study.pairs
    paths = [study.index.path(i) for i in range(len(study.index))]
    score = Verifier(bundle).score_images(paths, pairs.left, pairs.right, ticker("scoring"))
    summary = summarise(pairs.genuine, score, bundle.threshold, calibration=bundle.calibration)
    return {name: summary[name] for name in FIGURES}


def row(study: Study, method: str, count: int) -> dict[str, Any]:
    """Give a row, from the file that an earlier call left where there is one."""
    path = study.out / "rows" / f"{method}-{count:03}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    result: dict[str, Any] = {"method": method, "people": count}
    told, bundle = ({}, study.start.folder) if not count else make(study, method, count)
    if "error" in told:
        result["refused"] = told["error"]["message"]
    else:
        result |= {"minutes": told.get("minutes"), **measure(study, bundle)}
    with atomic_file(path) as handle:
        handle.write(json.dumps(result, indent=1))
    return result


def line(found: dict[str, Any]) -> str:
    """Give a row of the Markdown table."""
    who = f"{found['method']} | {found['people'] or ''}"
    if "refused" in found:
        return f"| {who} | refused: {found['refused']} | | | |"
    low, high = found["accuracy_interval"]
    minutes = "" if found["minutes"] is None else f"{found['minutes']:.1f}"
    return (
        f"| {who} | {found['accuracy']:.3f} ({low:.3f} to {high:.3f}) | {found['auc']:.3f} | "
        f"{found['ece']:.3f} | {minutes} |"
    )


def keep(path: Path, about: dict[str, Any]) -> None:
    """Write what a study is about, or raise BadConfig where its folder holds another one."""
    if not path.exists():
        with atomic_file(path) as handle:
            handle.write(json.dumps(about, indent=1) + "\n")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    changed = [name for name, value in about.items() if before.get(name) != value]
    if changed:
        raise BadConfig(f"{path}: {', '.join(changed)} was another; choose another --out")


def run(given: argparse.Namespace) -> None:
    sizes = sorted({int(size) for size in given.people.split(",")})
    index = FaceIndex.scan(given.data)
    view = read_view2(index, given.lists)
    if not 1 <= given.fold <= len(view.sets):
        raise BadConfig(f"--fold is {given.fold}; the lists have folds 1 to {len(view.sets)}")
    everyone = view.sets[given.fold - 1]
    start = Bundle.open(given.view2 / "siamese" / f"fold-{given.fold:02}" / "bundle")
    check_unknown(start, index, everyone, given.fold)
    own = draw(index, everyone, sizes[-1], given.seed)
    test = np.setdiff1d(everyone, own)
    pairs = balanced(distinct_pairs(index.first, test, TEST_PAIRS, given.seed))
    settings = read_table(given.config) if given.config else {}
    study = Study(index, start, own, pairs, given.out, settings, given.minutes)
    about = {
        "schema": 1,
        "fold": given.fold,
        "seed": given.seed,
        "own_people": sizes,
        "start_network_sha256": start.raw["files"][start.network_file]["sha256"],
        "test_people": len(test),
        "test_pairs": len(pairs),
        "minutes_from_scratch": given.minutes,
        "settings": settings,
    }
    keep(given.out / "study.json", about)
    rows = [row(study, "as it is", 0)]
    for method in ("calibrated", "fine-tuned", "from scratch"):
        rows += [row(study, method, size) for size in sizes]
    with atomic_file(given.out / "result.json") as handle:
        handle.write(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    print(f"{len(pairs):,} pairs of {len(test):,} test people (fold {given.fold})\n")
    print("| | own people | accuracy (95 %) | AUC | ECE | minutes |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(map(line, rows)))


def main() -> int:
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
        run(parser.parse_args())
    except FacepairsError as error:
        print_error(error.kind, str(error), False)
        return ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
