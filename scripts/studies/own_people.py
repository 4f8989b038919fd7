"""What the included model, calibration and training bring on 20, 50 and 140 of one's own people.

    python scripts/studies/own_people.py PHOTOS --out study [--grey]

PHOTOS holds a folder for each person. Of the people with two photos or more some are drawn as the
user's own (smaller groups are the first of them); of the others up to 200 test, the same in every
row. Folders get new names, so that no model knows the people. The commands that a user would type
do the work. The study can be interrupted; the same command goes on.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from facepairs.cli.shared.output import ERROR, log, print_error
from facepairs.data.index import FaceIndex
from facepairs.errors import FacepairsError, NotEnough
from facepairs.photos.crop import CropSpec
from facepairs.photos.reader import PhotoReader
from facepairs.support.atomic import atomic_file
from facepairs.support.random_streams import Stream, raw_words

TEST_PEOPLE = 200
MOST_PHOTOS = 20  # of a person
TIGHT = CropSpec(250, 130)  # from the brows to the chin, and a little more
GREY_PX = 96
METHODS = ("calibrated", "fine-tuned", "fisher")


def draw(index: FaceIndex, count: int, seed: int) -> list[int]:
    """Draw people with two photos or more, all equally likely; raises NotEnough."""
    several = np.flatnonzero(index.image_counts >= 2)
    if len(several) < count + 20:
        raise NotEnough(
            f"{count + 20} people with 2 photos or more are needed, there are {len(several)}; ask "
            "for fewer with --people"
        )
    order = np.argsort(raw_words(seed, Stream.OWN_PEOPLE_STUDY, 0, 0, len(several)), kind="stable")
    drawn: list[int] = several[order].tolist()
    return drawn


def write_folder(index: FaceIndex, people: list[int], folder: Path, grey: bool) -> Path:
    """Write the photos of people under new names, as links or as tight grey crops."""
    if folder.exists():
        return folder
    reader = PhotoReader(aligned=True, framing=TIGHT)
    partial = folder.with_name(f"{folder.name}.partial")
    for person in people:
        own = partial / f"Person_{person:05}"
        own.mkdir(parents=True, exist_ok=True)
        for image in list(index.images_of(person))[:MOST_PHOTOS]:
            path = index.path(image).resolve()
            if grey:
                crop = Image.fromarray(reader.detect(str(path), path, every=False)[0].crop)
                crop = ImageOps.grayscale(crop).resize((GREY_PX, GREY_PX))
                crop.save(own / f"{path.stem}.png")
            elif not (own / path.name).is_symlink():
                (own / path.name).symlink_to(path)
    partial.rename(folder)
    return folder


def facepairs(*words: object) -> dict[str, Any]:
    """Run a command; return its JSON and the minutes it took."""
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
        sys.exit(done.returncode)
    return {**result, "minutes": (time.monotonic() - started) / 60}


def make(method: str, photos: Path, out: Path, minutes: float) -> tuple[dict[str, Any], Path]:
    """Make a row's bundle; return the command's JSON and the bundle's folder."""
    if method == "calibrated":
        return facepairs("calibrate", "default", photos, "--out", out), out
    if (out / "config.toml").exists():
        return facepairs("train", photos, "--out", out, "--resume"), out / "bundle"
    settings = {"fine-tuned": (), "fisher": ("--model", "fisher", "--minutes", minutes)}[method]
    return facepairs("train", photos, "--out", out, *settings), out / "bundle"


def row(method: str, count: int, options: argparse.Namespace, index: FaceIndex) -> dict[str, Any]:
    """Return a row; if an earlier run has made it, from its file."""
    path = options.out / "rows" / f"{method}-{count:03}.json"
    if path.exists():
        earlier: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return earlier
    order = draw(index, options.sizes[-1], options.seed)
    result: dict[str, Any] = {"method": method, "people": count}
    made, bundle = {}, "default"
    if count:
        photos = write_folder(index, order[:count], options.out / f"own-{count:03}", options.grey)
        out = options.out / f"{method}-{count:03}"
        made, bundle = make(method, photos, out, options.minutes)
    if "error" in made:
        result["refused"] = made["error"]["message"]
    else:
        test = order[options.sizes[-1] :][:TEST_PEOPLE]
        folder = write_folder(index, test, options.out / "test", options.grey)
        measured = facepairs("evaluate", bundle, folder)
        result |= {"minutes": made.get("minutes"), "figures": measured}
    with atomic_file(path) as handle:
        handle.write(json.dumps(result, indent=1) + "\n")
    return result


def run(options: argparse.Namespace) -> None:
    options.sizes = sorted({int(size) for size in options.people.split(",")})
    index = FaceIndex.scan(options.photos)
    rows = [row("included", 0, options, index)]
    for method in options.methods.split(","):
        rows += [row(method, size, options, index) for size in options.sizes]
    with atomic_file(options.out / "result.json") as handle:
        handle.write(json.dumps(rows, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="Person_Name/photo.jpg")
    parser.add_argument("--people", default="20,50,140")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--grey", action="store_true", help="tight grey crops of the photos")
    parser.add_argument("--minutes", type=float, default=4.0, help="of training from scratch")
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
