"""How memory grows with the number of images: invented names, and hard links to drawn faces.

    PYTHONPATH=tests/helpers python scripts/benchmarks/many_images.py --place many
    ... --parts "score, few images" --rows 10000 1000000 --json

Every part runs in a process of its own at each of its sizes. Its peak memory is measured in all
(RSS) and without files (sampled). The cost of one more image is the slope between the two largest
sizes. Results go to PLACE/results.jsonl; parts that are there are not run again. Needs Linux.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {
    "names": [100_000, 1_000_000, 10_000_000],
    "files": [20_000, 200_000],
    "missing": [100_000, 1_000_000],
    "rows": [10_000, 100_000, 1_000_000],
}
SAMPLE_S = 0.05
BLOCK_PAIRS, BATCH_PAIRS = 1024, 256
CACHE_PAIRS = 2_000
# A training of some seconds: everything around it is measured.
SETTINGS = """model = "difference"
epochs = 1
pairs_per_epoch = 640
batch_size = 32
"""
Row = dict[str, Any]


def listing(images: int) -> Iterator[str]:
    """Yield sorted names like those of LFW; a person has 1 to 5 photos."""
    person = image = 0
    while image < images:
        count = min(1 + person * 7 % 5, images - image)
        for number in range(1, count + 1):
            yield f"Person_{person:07d}/Person_{person:07d}_{number:04d}.jpg"
        image += count
        person += 1


def status_mb(field: str, pid: int | str = "self") -> float:
    """Return a line of a process's status in MB (10^6 bytes): VmHWM, VmRSS or RssAnon."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) * 1024 / 1e6


class Stages:
    """Prints a JSON line per stage: seconds, peak memory, and how much more is held at its end."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        self._held, self._started = status_mb("RssAnon"), time.perf_counter()

    def end(self, stage: str, calls: int = 1) -> None:
        """End a stage, which did something `calls` times."""
        seconds = round(time.perf_counter() - self._started, 3)
        peak_mb = round(status_mb("VmHWM"), 1)
        held_mb = round(status_mb("RssAnon") - self._held, 1)
        row = {"seconds": seconds, "calls": calls, "peak_mb": peak_mb, "memory_mb": held_mb}
        print(json.dumps({"stage": stage, **row}), flush=True)
        self._begin()


def index_names(images: int, place: Path) -> None:
    """Index a listing, split its people, draw pairs, look up names; no file exists."""
    from facepairs.data.index import FaceIndex
    from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
    from facepairs.data.split import split_people

    stages = Stages()
    index = FaceIndex.from_listing(listing(images))
    stages.end("index")
    assert len(index.fingerprint) == 64
    stages.end("fingerprint")
    split = split_people(index, np.arange(len(index.people)), 0, 0.15, 0.15)
    stages.end("split")
    pairs = PairSampler(index.first, split.training, 0)
    distinct = DistinctPeopleSampler(index.first, split.training, 0, BATCH_PAIRS, 0.75)
    distinct.block(0, 0, BLOCK_PAIRS)
    stages.end("samplers, and the first pass of people")
    for block in range(200):
        pairs.block(0, block, BLOCK_PAIRS)
    stages.end("sampler, a block of pairs", 200)
    for block in range(50):
        distinct.block(0, block % 10, BLOCK_PAIRS)
    stages.end("sampler, a block of distinct people", 50)
    images_drawn = np.random.default_rng(0).integers(0, len(index), 10_000).tolist()
    assert all(index.find(index.name(image)) == image for image in images_drawn)
    stages.end("finding a name", 10_000)


def scan_folder(images: int, place: Path) -> None:
    """Index a folder of real files."""
    from facepairs.data.index import FaceIndex

    photos = photo_folder(images, place)
    stages = Stages()
    index = FaceIndex.scan(photos)
    stages.end("index of a folder")
    assert len(index) == images


def drawn_faces(place: Path) -> Path:
    """Return the folder of the photos that all others are links to."""
    from facepairs.data.synth.folder import write_synthetic_faces

    if not (place / "drawn").exists():
        write_synthetic_faces(place / "drawn", 16, 4, seed=0)
    return place / "drawn"


def photo_folder(images: int, place: Path) -> Path:
    """Return a folder of this many photos, which is made unless it exists."""
    photos = place / f"photos-{images}"
    if photos.exists():
        return photos
    drawn = sorted(drawn_faces(place).glob("*/*.jpg"))
    part = place / f"part-{images}"
    for number, name in enumerate(listing(images)):
        path = part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.link(drawn[number % len(drawn)], path)  # a file can have 65,000 links
    return part.rename(photos)


def bundle(place: Path) -> Path:
    """Return a bundle whose network takes no time: everything around it is measured."""
    from tiny.bundles import tiny_bundle

    if not (place / "bundle").exists():
        tiny_bundle(place / "bundle", "embedding", alignment="landmarks-5")
    return place / "bundle"


def write_csv(out: Path, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> Path:
    """Write a CSV file unless it exists."""
    if not out.exists():
        part = out.with_suffix(".part")
        with open(part, "w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(header)
            writer.writerows(rows)
        part.rename(out)
    return out


def pairs_of_all(images: int, place: Path) -> tuple[Path, Path]:
    """Return a list of pairs that names every photo of a folder once, and that folder."""
    return _pairs_once(images, place / f"all-{images}.csv"), photo_folder(images, place)


def pairs_of_missing(images: int, place: Path) -> tuple[Path, Path]:
    """Return a list of pairs that names this many photos, and a folder that has none of them."""
    return _pairs_once(images, place / f"missing-{images}.csv"), place


def _pairs_once(images: int, out: Path) -> Path:
    names = listing(images)
    return write_csv(out, ("left", "right"), zip(names, names, strict=False))


def pairs_of_few(rows: int, place: Path) -> tuple[Path, Path]:
    """Return a list of this many pairs of the drawn photos, and their folder."""
    photos = drawn_faces(place)
    names = sorted(path.relative_to(photos).as_posix() for path in photos.glob("*/*.jpg"))
    pairs = ((names[row % len(names)], names[row * 7 % len(names)]) for row in range(rows))
    labelled = ((a, b, int(a.split("/")[0] == b.split("/")[0])) for a, b in pairs)
    return write_csv(place / f"few-{rows}.csv", ("left", "right", "genuine"), labelled), photos


def scores(rows: int, place: Path, seed: int = 0) -> Path:
    """Return a scores file of this many pairs with names as long as those of LFW."""
    draw = np.random.default_rng(seed)

    def row(number: int) -> tuple[object, ...]:
        genuine = number % 2
        left, right = (
            f"Person_{person:07d}/Person_{person:07d}_000{image}.jpg"
            for person, image in ((number, 1), (number + 1 - genuine, 2))
        )
        return left, right, genuine, number % 10 + 1, draw.normal() + 2 * genuine

    header = ("left", "right", "genuine", "fold", "score")
    return write_csv(place / f"scores-{rows}-{seed}.csv", header, map(row, range(rows)))


Words = tuple[object, ...]


def train(store: str) -> Callable[[int, Path], Words]:
    """Return a function that gives the words of `train` with a store."""

    def words(images: int, place: Path) -> Words:
        cache = ("--pair-cache", place / f"cache-{images}")
        source = cache if store == "tfrecord" else ("--store", store)
        return ("train", photo_folder(images, place), "--out", place / "out", "--config",
                place / "short.toml", *source)  # fmt: skip

    return words


def build_cache(images: int, place: Path) -> Words:
    """Return the words of `cache build`."""
    return ("cache", "build", photo_folder(images, place), "--out", place / f"cache-{images}",
            "--pair-count", CACHE_PAIRS, "--config", place / "short.toml")  # fmt: skip


def evaluate_folder(images: int, place: Path) -> Words:
    """Return the words of `evaluate` for a folder."""
    return ("evaluate", bundle(place), photo_folder(images, place))


def score(make: Callable[[int, Path], tuple[Path, Path]]) -> Callable[[int, Path], Words]:
    """Return a function that gives the words of `score` for lists of `make`."""

    def words(size: int, place: Path) -> Words:
        pairs, root = make(size, place)
        return ("score", pairs, "--root", root, "--out", place / "out.csv",
                "--bundle", bundle(place))  # fmt: skip

    return words


LIBRARY: dict[str, tuple[str, Callable[[int, Path], None]]] = {  # part → what sizes count, function
    "names": ("names", index_names),
    "scan": ("files", scan_folder),
}
COMMANDS: dict[str, tuple[str, Callable[[int, Path], Words]]] = {  # likewise, the command's words
    "train, store files": ("files", train("files")),
    "cache build": ("files", build_cache),
    "train, --pair-cache": ("files", train("tfrecord")),
    "evaluate a folder": ("files", evaluate_folder),
    "score, all images": ("files", score(pairs_of_all)),
    "score, all missing": ("missing", score(pairs_of_missing)),
    "score, few images": ("rows", score(pairs_of_few)),
    "evaluate a scores file": ("rows", lambda n, place: ("evaluate", scores(n, place))),
    "evaluate two scores files": (
        "rows",
        lambda n, place: ("evaluate", scores(n, place), scores(n, place, seed=1)),
    ),
}
PARTS = {**LIBRARY, **COMMANDS}


def run_measured(words: list[str], log: Path) -> tuple[Row, list[Row]]:
    """Run a process; return its costs, and the stages that it prints."""
    started, peak, output = time.monotonic(), 0.0, b""
    with open(log, "wb") as errors:
        known = {**os.environ, "FACEPAIRS_PHOTO_CACHE": os.fspath(log.parent / "photos.sqlite")}
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, env=known)
        assert child.stdout
        os.set_blocking(child.stdout.fileno(), False)
        while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
            try:
                peak = max(peak, status_mb("RssAnon", child.pid))
            except (OSError, IndexError):
                continue  # it has just ended
            output += child.stdout.read() or b""
            time.sleep(SAMPLE_S)
        output += child.stdout.read() or b""
    child.returncode = os.waitstatus_to_exitcode(ended[1])
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: exit {child.returncode}\n{log.read_text()[-2000:]}")
    stages = [json.loads(line) for line in output.splitlines() if line.startswith(b'{"stage"')]
    # a stage resets the peak that the system reports, too
    rss_mb = max([ended[2].ru_maxrss * 1024 / 1e6, *(stage["peak_mb"] for stage in stages)])
    seconds = round(time.monotonic() - started, 1)
    costs = {"seconds": seconds, "peak_mb": round(rss_mb, 1), "memory_mb": round(peak, 1)}
    return costs, stages


def measure(part: str, size: int, place: Path) -> list[Row]:
    """Measure a part at one size: a row for the whole, and one per stage."""
    if part in LIBRARY:
        words = [sys.executable, __file__, "--place", str(place), "--inside", part, str(size)]
    else:
        words = [sys.executable, "-m", "facepairs", *map(str, COMMANDS[part][1](size, place))]
        shutil.rmtree(place / "out", ignore_errors=True)
        (place / "out.csv").unlink(missing_ok=True)
    costs, stages = run_measured(words, place / "log.txt")
    rows = [{"part": f"{part}: {stage.pop('stage')}", "size": size, **stage} for stage in stages]
    return [{"part": part, "size": size, **costs}, *rows]


def growth(rows: list[Row]) -> dict[str, float]:
    """Return by part the bytes that one more of what its sizes count costs."""
    slopes = {}
    for part in dict.fromkeys(row["part"] for row in rows):
        points = sorted((row["size"], row["memory_mb"]) for row in rows if row["part"] == part)
        if len(points) > 1:
            (few, small), (many, large) = points[-2:]
            slopes[part] = (large - small) * 1e6 / (many - few)
    return slopes


def table(rows: list[Row]) -> str:
    """Return a Markdown table with a line per part and size."""
    lines = [
        "| part | size | seconds | peak MB | without files, or held MB | bytes per one more |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    slopes = growth(rows)
    largest = {row["part"]: row["size"] for row in sorted(rows, key=lambda row: row["size"])}
    for row in rows:
        part, size, calls = row["part"], row["size"], row.get("calls", 1)
        slope = f"{slopes[part]:,.1f}" if part in slopes and largest[part] == size else ""
        seconds = f"{row['seconds']:,.1f}"
        if calls > 1:
            seconds += f" ({1000 * row['seconds'] / calls:.3f} ms each)"
        memory = f"{row['peak_mb']:,.0f} | {row['memory_mb']:,.0f}"
        lines.append(f"| {part} | {size:,} | {seconds} | {memory} | {slope} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", type=Path, default=Path("many"), help="folder for everything")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART",
                        help=f"of: {'; '.join(PARTS)}")  # fmt: skip
    for name, sizes in SIZES.items():
        parser.add_argument(f"--{name}", nargs="+", type=int, default=sizes, metavar="N",
                            help=f"sizes [default: {' '.join(map(str, sizes))}]")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    place = options.place.resolve()
    if options.inside:
        part, size = options.inside
        LIBRARY[part][1](int(size), place)
        return
    place.mkdir(parents=True, exist_ok=True)
    (place / "short.toml").write_text(SETTINGS)
    results = place / "results.jsonl"
    rows = [json.loads(line) for line in results.open()] if results.exists() else []
    done = {(row["part"], row["size"]) for row in rows}
    for part in options.parts:
        for size in getattr(options, PARTS[part][0]):
            if (part, size) in done:
                continue
            print(f"{part}, {size:,}", file=sys.stderr, flush=True)
            new = measure(part, size, place)
            with open(results, "a", encoding="utf-8") as handle:
                handle.writelines(json.dumps(row) + "\n" for row in new)
            rows += new
    if options.json:
        print(json.dumps({"rows": rows, "bytes_per_one_more": growth(rows)}, indent=1))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
