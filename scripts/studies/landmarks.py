"""Compare ways to locate faces: CPU time a photo, and errors of the included model on View 1.

    python scripts/studies/landmarks.py DATA --lists LISTS [--people peopleDevTrain.txt]

All ways take turns on each photo, in one process. Errors are those of all pairs of the people of
one of View 1's lists; of each person at most ten genuine pairs count.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_curve

from facepairs.cli.shared.progress import showing_on_stderr
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.faces import detector
from facepairs.faces.frame import fit_crop
from facepairs.images.crop import Crop, warp_photo
from facepairs.images.decode import upright
from facepairs.images.photo import open_photo
from facepairs.support import console
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier

FARS = (0.01, 0.001, 0.0001)
BATCH = 64
STEPS = ("decode", "search", "locate", "crop")


class Way(NamedTuple):
    """Constants of `detector` that decide where landmarks are."""

    rounds: int = detector.MAX_ROUNDS
    settled_px: float = detector.SETTLED_PX

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the detector work this way."""
        before = detector.MAX_ROUNDS, detector.SETTLED_PX
        detector.MAX_ROUNDS, detector.SETTLED_PX = self
        yield
        detector.MAX_ROUNDS, detector.SETTLED_PX = before


WAYS = {
    "as shipped": Way(),
    "one round": Way(rounds=1),
    "settled at 2 px": Way(settled_px=2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--people", default="peopleDevTest.txt")
    parser.add_argument("--step", type=int, default=1, help="use every so many photos")
    options = parser.parse_args()
    index = FaceIndex.scan(options.data)
    (people,) = read_people(options.lists / options.people, index)
    images = np.flatnonzero(np.isin(index.person_of, people))[:: options.step]
    person = np.unique(index.person_of[images], return_inverse=True)[1]
    verifier = Verifier.load(threads=1)
    spec = verifier.bundle.framing
    crops: dict[str, list[Crop]] = defaultdict(list)
    spent: dict[tuple[str, str], float] = defaultdict(float)
    report = console.progress("finding faces")
    for done, image in enumerate(images.tolist(), 1):
        for name, way in WAYS.items():
            clock = [time.process_time()]
            photo = open_photo(index.path(image))
            with upright(photo) as (picture, _):
                clock.append(time.process_time())
                detector._candidates(picture, 0, False)  # again below; `locate` is the rest
            clock.append(time.process_time())
            with way.used():
                face = detector.search_photo(photo)[0]
            clock.append(time.process_time() - (clock[2] - clock[1]))
            crop = warp_photo(photo, fit_crop(face.landmarks, spec), spec.crop_px)
            clock.append(time.process_time() - (clock[2] - clock[1]))
            crops[name].append(crop)
            for step, seconds in zip(STEPS, np.diff(clock), strict=True):
                spent[name, step] += 1000 * seconds / len(images)
        report(done, len(images))
    costs = [f"{step}, ms" for step in STEPS]
    heads = ["way", *costs, "accuracy", *(f"TAR at {far:g}" for far in FARS)]
    rows = []
    for name in WAYS:
        parts = [np.stack(crops[name][at : at + BATCH]) for at in range(0, len(images), BATCH)]
        rates = measure(np.concatenate([verifier.scorer.embed(part) for part in parts]), person)
        costs = [f"{spent[name, step]:.2f}" for step in STEPS]
        rows.append([name, *costs, *(f"{rate:.4f}" for rate in rates)])
    print("\n".join(align_columns([heads, *rows])))


def measure(vectors: npt.NDArray[np.float32], person: npt.NDArray[np.int64]) -> list[float]:
    """Return the best accuracy with both classes alike frequent, and the TAR at each FAR."""
    left, right = np.triu_indices(len(person), 1)
    same = person[left] == person[right]
    pairs = np.bincount(person[left[same]], minlength=person.max() + 1)
    weight = np.where(same, np.minimum(1, MAX_PAIRS_PER_PERSON / pairs[person[left]].clip(1)), 1.0)
    far, tar, _ = roc_curve(same, (vectors @ vectors.T)[left, right], sample_weight=weight)
    best = (1 + (tar - far).max()) / 2
    return [float(best), *(float(tar[np.searchsorted(far, most, "right") - 1]) for most in FARS)]


if __name__ == "__main__":
    with showing_on_stderr():
        main()
