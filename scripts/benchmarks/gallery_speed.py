"""How fast a gallery enrols, opens and identifies, and what a million embeddings take.

python scripts/benchmarks/gallery_speed.py PHOTOS

PHOTOS is a folder of Person_Name/photo.jpg. The included model is used. Embeddings of 10,000 people
with three photos each are random; so are the million.
"""

import argparse
import hashlib
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from facepairs import Gallery, Verifier
from facepairs.gallery.identity import identify_model
from facepairs.gallery.stores.base import NewFace
from facepairs.gallery.stores.sqlite import SqliteStore
from facepairs.gallery.vectors import Vectors

PEOPLE, PHOTOS_EACH, MILLION = 10_000, 3, 1_000_000
WIDTH = 128  # of the included model
PART = 10_000
ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, metavar="PHOTOS", help="Folder of people to enrol.")
    folder = parser.parse_args().photos
    with tempfile.TemporaryDirectory() as work:
        enrol(Path(work) / "enrolled.gallery", folder)
        identify(Path(work) / "random.gallery", next(folder.glob("*/*.jpg")))
    process = multiprocessing.get_context("spawn").Process(target=search)
    process.start()
    process.join()


def enrol(place: Path, folder: Path) -> None:
    """Enrol a folder twice, the second time with nothing to do."""
    for what in ("enrolled", "enrolled already"):
        with Gallery(place, Verifier.load(threads=1), write=True) as gallery:
            begin, cpu = time.perf_counter(), time.process_time()
            done = gallery.add_folder(folder, any_quality=True)
            wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
            count = done.enrolled + done.known
            print(
                f"{what}: {count} photos, {count / wall:.0f}/s, {1e3 * cpu / count:.1f} ms CPU each"
            )


def identify(place: Path, photo: Path) -> None:
    """Identify among random embeddings, in this process and with the command."""
    verifier = Verifier.load()
    width = len(verifier.embed([photo])[0])
    store = SqliteStore(place, write=True)
    store.set_model(identify_model(verifier.model, width))
    for begin in range(0, PEOPLE * PHOTOS_EACH, PART):
        rows = enumerate(unit_rows(begin, PART, width), begin)
        store.put([NewFace(f"P{n // PHOTOS_EACH}", sha256(n), row) for n, row in rows], None)
    store.close()
    with Gallery(place, verifier) as gallery:
        begin = time.perf_counter()
        gallery.vectors()
        print(f"{PEOPLE * PHOTOS_EACH:,} photos: loaded in {time.perf_counter() - begin:.2f} s")
        report("identify as a call", lambda: gallery.identify(photo, threshold=0.5))
    words = ["gallery", "identify", place, photo, "--threshold", 0.5, "--json", "--quiet"]
    command = [sys.executable, "-m", "facepairs", *map(str, words)]
    report(
        "identify as a process", lambda: subprocess.run(command, capture_output=True, check=False)
    )


def search() -> None:
    """Search a million random embeddings."""
    vectors = Vectors(WIDTH, MILLION)
    for begin in range(0, MILLION, PART):
        rows = unit_rows(begin, PART, WIDTH)
        vectors.append([f"P{(begin + k) // 4}" for k in range(PART)], rows.astype(np.float16))
    probe = unit_rows(0, 1, WIDTH)[0]
    report(f"search of {MILLION:,} x {WIDTH}", lambda: vectors.best(probe))
    print(f"  memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def unit_rows(seed: int, count: int, width: int) -> np.ndarray:
    """Return random embeddings: float32[count, width] of length 1."""
    rows = np.random.default_rng(seed).standard_normal((count, width), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sha256(number: int) -> bytes:
    """Return the hash that stands for photo `number`."""
    return hashlib.sha256(str(number).encode()).digest()


def report(what: str, run: Callable[[], object]) -> None:
    """Print the median time of some calls, and the CPU time of this process and its children."""

    def cpu_s() -> float:
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)

    walls, cpus = [], []
    for _ in range(ROUNDS):
        begin, cpu = time.perf_counter(), cpu_s()
        run()
        walls.append(time.perf_counter() - begin)
        cpus.append(cpu_s() - cpu)
    figures = np.median(walls), min(walls), max(walls), np.median(cpus)
    median, least, most, cpu = (1e3 * float(figure) for figure in figures)
    print(f"{what}: {median:.0f} ms ({least:.0f} to {most:.0f}), {cpu:.0f} ms CPU")


if __name__ == "__main__":
    main()
