"""What `many_images.py` measures, each part in a process of its own; see there.

A part of the library tells what it holds and needs stage by stage; a command is measured from
outside.
"""

import csv
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

DRAWN_PEOPLE, DRAWN_EACH = 16, 4
BLOCK_PAIRS, BATCH = 1024, 256
FEW_PAIRS = 2_000  # where images grow and pairs do not


def listing(images: int) -> Iterator[str]:
    """Yield sorted names as LFW has them; a person has 1 to 5 photos."""
    person = image = 0
    while image < images:
        count = min(1 + person * 7 % 5, images - image)
        for number in range(1, count + 1):
            yield f"Person_{person:07d}/Person_{person:07d}_{number:04d}.jpg"
        image += count
        person += 1


def _status(field: str) -> float:
    """Give a line of this process's status in MB (10^6 bytes): VmHWM, VmRSS, RssAnon."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit(f"/proc/self/status has no {field}: this script needs Linux")


class Stages:
    """Prints a JSON line a stage: seconds, MB it needed at most, and MB more that are held now."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far counts no more
        self._held, self._started = _status("RssAnon"), time.perf_counter()

    def tell(self, stage: str, calls: int = 1) -> None:
        """End a stage, which did something `calls` times."""
        took = time.perf_counter() - self._started
        row = {
            "stage": stage,
            "seconds": round(took, 3),
            "calls": calls,
            "peak_mb": round(_status("VmHWM"), 1),
            "held_mb": round(_status("RssAnon") - self._held, 1),
        }
        print(json.dumps(row), flush=True)
        self._begin()


def names(images: int, place: Path) -> None:
    """Index a listing, split its people, draw pairs, look names up: no file is there."""
    from facepairs.data.index import FaceIndex
    from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
    from facepairs.data.split import split_people

    stages = Stages()
    index = FaceIndex.from_listing(listing(images))
    stages.tell("index")
    assert len(index.fingerprint) == 64
    stages.tell("fingerprint")
    every = np.arange(len(index.people))
    split = split_people(index, every, 0, 0.15, 0.15)
    stages.tell("split")
    pairs = PairSampler(index.first, split.training, 0)
    distinct = DistinctPeopleSampler(index.first, split.training, 0, BATCH, 0.75)
    distinct.block(0, 0, BLOCK_PAIRS)
    stages.tell("samplers, and the first pass of people")
    for block in range(200):
        pairs.block(0, block, BLOCK_PAIRS)
    stages.tell("sampler, a block of pairs", 200)
    for block in range(50):
        distinct.block(0, block % 10, BLOCK_PAIRS)
    stages.tell("sampler, a block of distinct people", 50)
    draw = np.random.default_rng(0).integers(0, len(index), 10_000).tolist()
    assert all(index.find(index.name(image)) == image for image in draw)
    stages.tell("finding a name", 10_000)


def paths(images: int, place: Path) -> None:
    """Look paths of a listing up as the `files` store does, in its pipeline: no file is there."""
    import tensorflow as tf

    from facepairs.data.index import FaceIndex
    from facepairs.pipeline.dataset import make_dataset, people_numbers
    from facepairs.pipeline.files import file_paths

    index = FaceIndex.from_listing(listing(images))
    stages = Stages()
    people = np.arange(len(index.people))
    batches = _paths_alone(index, file_paths(index), make_dataset, people_numbers, people)
    for _, batch in zip(range(2_000), batches, strict=False):
        names, size = batch["images"]
        assert (names.dtype, size.dtype) == (tf.string, tf.int64)
    stages.tell("files store, a batch of paths", 2_000)


def _paths_alone(index, look_up, make_dataset, people_numbers, people):
    from facepairs.data.sampler import PairSampler

    class Paths:
        arrays = ()

        def loader(self, images: int) -> Callable:
            return look_up

    sampler = PairSampler(index.first, people, 0)
    blocks = lambda: (sampler.block(0, number, BLOCK_PAIRS) for number in itertools.count())  # noqa: E731
    return make_dataset(Paths(), blocks, 64, people_numbers(index.person_of, people))


def scan(images: int, place: Path) -> None:
    """Index a folder of real files."""
    from facepairs.data.index import FaceIndex

    stages = Stages()
    index = FaceIndex.scan(folder(place, images))
    stages.tell("index of a folder")
    assert len(index) == images


def folder(place: Path, images: int) -> Path:
    """Give the folder of so many photos, which are made where they are missing."""
    photos = place / f"photos-{images}"
    if photos.exists():
        return photos
    drawn = sorted(draw(place).glob("*/*.jpg"))
    making = place / f"making-{images}"
    for number, name in enumerate(listing(images)):
        path = making / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.link(drawn[number % len(drawn)], path)  # 65,000 links a file: see DRAWN_PEOPLE
    return making.rename(photos)


def draw(place: Path) -> Path:
    """Give the folder of the photos that all others are links to, or copies of the names of."""
    from facepairs.data.synth.folder import write_synthetic_faces

    if not (place / "drawn").exists():
        write_synthetic_faces(place / "drawn", DRAWN_PEOPLE, DRAWN_EACH, seed=0)
    return place / "drawn"


def bundle(place: Path) -> Path:
    """Give a bundle whose network takes no time: what is measured is everything around it."""
    from tiny_bundles import tiny_bundle

    if not (place / "bundle").exists():
        tiny_bundle(place / "bundle", "embedding")
    return place / "bundle"


def pairs_of_all(images: int, place: Path) -> tuple[Path, Path]:
    """Give a list of pairs that names every photo of a folder once, and that folder."""
    photos, out = folder(place, images), place / f"all-{images}.csv"
    _write_pairs(out, listing(images))
    return out, photos


def pairs_of_nothing(images: int, place: Path) -> tuple[Path, Path]:
    """Give a list of pairs that names so many photos, and a folder that has none of them."""
    out = place / f"none-{images}.csv"
    _write_pairs(out, listing(images))
    return out, place


def _write_pairs(out: Path, images: Iterator[str]) -> None:
    if out.exists():
        return
    with open(out.with_suffix(".new"), "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("left", "right"))
        writer.writerows(zip(images, images, strict=False))
    out.with_suffix(".new").rename(out)


def pairs_of_few(rows: int, place: Path) -> tuple[Path, Path]:
    """Give a list of so many pairs of the drawn photos, and their folder."""
    photos = draw(place)
    few = sorted(path.relative_to(photos).as_posix() for path in photos.glob("*/*.jpg"))
    out = place / f"few-{rows}.csv"
    with open(out, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("left", "right", "genuine"))
        for row in range(rows):
            left, right = few[row % len(few)], few[row * 7 % len(few)]
            writer.writerow((left, right, int(left.split("/")[0] == right.split("/")[0])))
    return out, photos


def scores(rows: int, place: Path, seed: int = 0) -> Path:
    """Give a scores file of so many pairs with names as long as LFW's."""
    out = place / f"scores-{rows}-{seed}.csv"
    if out.exists():
        return out
    with open(out.with_suffix(".new"), "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("left", "right", "genuine", "fold", "score"))
        draw = np.random.default_rng(seed)
        for row in range(rows):
            genuine = row % 2
            other = row + 1 - genuine
            left = f"Person_{row:07d}/Person_{row:07d}_0001.jpg"
            right = f"Person_{other:07d}/Person_{other:07d}_0002.jpg"
            score = draw.normal() + 2 * genuine
            writer.writerow((left, right, genuine, row % 10 + 1, score))
    out.with_suffix(".new").rename(out)
    return out


class Command(NamedTuple):
    """A command line by size: the words, and what must not be there when it starts."""

    words: Callable[[int, Path], tuple[object, ...]]
    clear: str = ""


def settings(place: Path) -> Path:
    """Give a configuration that trains for some seconds: everything around that is measured."""
    path = place / "short.toml"
    path.write_text(
        'model = "difference"\nepochs = 1\npairs_per_epoch = 640\nbatch_size = 32\n'
        "crop_px = 32\ncalibration_pairs = 400\n"
    )
    return path


def _train(store: str) -> Callable[[int, Path], tuple[object, ...]]:
    def words(images: int, place: Path) -> tuple[object, ...]:
        cache = ("--cache", place / f"cache-{images}") if store == "tfrecord" else ()
        photos, run = folder(place, images), place / "out"
        return (
            "train",
            photos,
            "--out",
            run,
            "--config",
            settings(place),
            "--store",
            store,
            *cache,
        )

    return words


def _cache(images: int, place: Path) -> tuple[object, ...]:
    cache = place / f"cache-{images}"
    return (
        "cache", "build", folder(place, images), "--out", cache, "--pair-count", FEW_PAIRS,
        "--config", settings(place),
    )  # fmt: skip


def _verify(make: Callable[[int, Path], tuple[Path, Path]]) -> Callable[[int, Path], tuple]:
    def words(size: int, place: Path) -> tuple[object, ...]:
        pairs, root = make(size, place)
        return ("verify", "--pairs", pairs, "--root", root, "--out", place / "out.csv",
                "--bundle", bundle(place), "--no-framing")  # fmt: skip

    return words


PARTS: dict[str, Callable[[int, Path], None]] = {"names": names, "paths": paths, "scan": scan}
COMMANDS = {
    "train, store files": Command(_train("files"), "out"),
    "cache build": Command(_cache),
    "train, store tfrecord": Command(_train("tfrecord"), "out"),
    "evaluate a folder": Command(
        lambda images, place: ("evaluate", bundle(place), folder(place, images))
    ),
    "verify --pairs, all images": Command(_verify(pairs_of_all), "out.csv"),
    "verify --pairs, all missing": Command(_verify(pairs_of_nothing), "out.csv"),
    "verify --pairs, few images": Command(_verify(pairs_of_few), "out.csv"),
    "evaluate a scores file": Command(lambda rows, place: ("evaluate", scores(rows, place))),
    "evaluate two scores files": Command(
        lambda rows, place: ("evaluate", scores(rows, place), scores(rows, place, 1))
    ),
}
BY = {  # what the sizes of a part count
    **dict.fromkeys(("names", "paths"), "names"),
    **dict.fromkeys(("scan", *list(COMMANDS)[:5]), "files"),
    "verify --pairs, all missing": "missing",
    **dict.fromkeys(list(COMMANDS)[6:], "rows"),
}


if __name__ == "__main__":
    PARTS[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]))
