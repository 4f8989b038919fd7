"""How far scores on another device are from the CPU's: pairs of View 1's test people.

    python scripts/studies/devices.py DATA --lists LISTS --device openvino

Face detector and included network run on the CPU and on the device, each in a process of its own.
The rows: the CPU, in 8 bits; the device, in float32, on faces that it found itself; then the
network alone, on the crops of the first row: in float32 on the CPU, and on the device.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.bundles.model import open_model
from facepairs.choices import DEVICE
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.photos.yunet import detector_device
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier

FARS = (0.01, 0.001, 0.0001)


def embed_all(paths: list[Path], crops_from: Path | None, out: Path) -> None:
    """Write crops, their embeddings, and where both networks ran; other crops' only in float32."""
    model = open_model(None)
    in_float = model.network.read_float32
    assert in_float is not None
    if crops_from:
        model = replace(model, network=replace(model.network, content=in_float()))
    verifier = Verifier(model)
    if crops_from:
        crops, detector = np.load(crops_from)["crops"], ""
    else:
        samples = [verifier.detect(path, every=False)[0] for path in paths]
        crops = np.stack([sample.crop for sample in samples])
        detector = f", detector on {detector_device()}"
    device = verifier.scorer.device
    where = f"{'8 bits' if device == 'cpu' and detector else 'float32'} on {device}{detector}"
    np.savez(out, crops=crops, rows=verifier.scorer.represent(crops), where=where)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--device", default="openvino")
    parser.add_argument("--people", type=int, help="Only so many of the people.")
    for name in ("--out", "--crops-from"):
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    index = FaceIndex.scan(options.data)
    (people,) = read_people(options.lists / "peopleDevTest.txt", index)
    images = np.flatnonzero(np.isin(index.person_of, people[: options.people]))
    if options.out:
        paths = [index.path(image) for image in images.tolist()]
        embed_all(paths, options.crops_from, options.out)
        return
    person = np.unique(index.person_of[images], return_inverse=True)[1]
    upper = np.triu_indices(len(person), 1)
    genuine = person[upper[0]] == person[upper[1]]
    count = np.bincount(person[upper[0]][genuine], minlength=person.max() + 1)
    weight = np.minimum(1, MAX_PAIRS_PER_PERSON / np.maximum(1, count))[person[upper[0]][genuine]]
    decided = Verifier.load().operating_point().threshold
    table, first = [], None
    with tempfile.TemporaryDirectory() as folder:
        devices = ("cpu", options.device)
        runs = [(device, False) for device in devices] + [(device, True) for device in devices]
        for number, (device, network_alone) in enumerate(runs):
            out = Path(folder, f"{number}.npz")
            words = [*sys.argv, "--out", out]
            if network_alone:
                words += ["--crops-from", Path(folder, "0.npz")]
            environment = {**os.environ, DEVICE: device}
            subprocess.run([sys.executable, *map(str, words)], env=environment, check=True)
            found = np.load(out)
            score = (found["rows"] @ found["rows"].T)[upper]
            first = score if first is None else first
            limits = [threshold_at_fmr(score[~genuine].astype(np.float64), far) for far in FARS]
            tars = [np.average(score[genuine] >= limit, weights=weight) for limit in limits]
            moved = np.abs(score - first)
            other = np.mean((score >= decided) != (first >= decided))
            figures = (*tars, moved.mean(), moved.max(), 100 * other)
            table.append([str(found["where"]), *(f"{figure:.5f}" for figure in figures)])
    fars = [f"TAR at {far:g}" for far in FARS]
    heads = ["network on", *fars, "scores differ by, mean", "at most", "other decisions, %"]
    print(f"{len(person):,} photos, {len(genuine):,} pairs")
    print("\n".join(align_columns([heads, *table])))


if __name__ == "__main__":
    main()
