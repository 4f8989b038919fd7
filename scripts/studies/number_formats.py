"""Which number format the included network ships in: all pairs of View 1's test people.

    python scripts/studies/number_formats.py DATA --lists LISTS

Float32, 8 bits, and 8 bits with weights of 7, computed by ONNX Runtime on this machine: genuine
pairs accepted where 1 in 100, 1,000 or 10,000 strangers is (a person's genuine pairs count ten
times at most), how far scores are from those of float32, and how many pairs the included model's
default threshold decides otherwise. Then the same for photos that were shrunk until the face has
36 pixels.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from facepairs.bundles.bundle import Bundle
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.models.export.convert import export_onnx
from facepairs.photos.reader import PhotoReader
from facepairs.recipes import RECIPES
from facepairs.support.words import align_columns
from facepairs.training.keras_models import read_keras
from facepairs.verification.verifier import Verifier

sys.path.insert(0, str(Path(__file__).parents[1] / "release"))
from default_model import calibration_crops, people_of, shrink
from eight_bits import to_eight_bits

BATCH = 16
FARS = (0.01, 0.001, 0.0001)
SMALL_PX = 36
Floats = npt.NDArray[np.float32]


def embed(network: bytes, crops: npt.NDArray[np.uint8]) -> Floats:
    session = ort.InferenceSession(network, providers=["CPUExecutionProvider"])
    starts = range(0, len(crops), BATCH)
    return np.concatenate([session.run(None, {"image": crops[a : a + BATCH]})[0] for a in starts])


def crops_of(index: FaceIndex, images: npt.NDArray[np.int64], side: int | None) -> Iterator[Any]:
    """Yield each photo's crop, the photo shrunk to a side of the face; None without a face."""
    reader = PhotoReader(aligned=True, framing=RECIPES["resnet"].crop_spec)
    for image in images.tolist():
        path = index.path(image)
        (face,) = reader.detect(str(path), path, every=False)
        if side is not None:
            found = reader.detect(str(path), shrink(path, face, side), every=False)
            yield found[0].crop if found else None
        else:
            yield face.crop


def rows(
    networks: dict[str, bytes], crops: npt.NDArray[np.uint8], person: npt.NDArray[np.int64]
) -> Iterator[list[str]]:
    """Yield a row of the table for each network; the first is what scores are compared with."""
    upper = np.triu_indices(len(person), 1)
    genuine = person[upper[0]] == person[upper[1]]
    count = np.bincount(person[upper[0]][genuine], minlength=person.max() + 1)
    weight = np.minimum(1, MAX_PAIRS_PER_PERSON / np.maximum(1, count))[person[upper[0]][genuine]]
    decided = Verifier.load().operating_point().threshold
    first = None
    for name, network in networks.items():
        vectors = embed(network, crops)
        score = (vectors @ vectors.T)[upper]
        first = score if first is None else first
        strangers = score[~genuine].astype(np.float64)
        limits = [threshold_at_fmr(strangers, far) for far in FARS]
        tars = [np.average(score[genuine] >= limit, weights=weight) for limit in limits]
        moved = np.abs(score - first)
        other = int(((score >= decided) != (first >= decided)).sum())
        size = f"{len(network) / 1e6:.1f} MB"
        yield [
            name,
            size,
            *(f"{tar:.4f}" for tar in tars),
            f"{moved.mean():.5f}",
            f"{moved.max():.4f}",
            f"{100 * other / len(score):.4f} %",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--lists", type=Path, required=True)
    options = parser.parse_args()
    index = FaceIndex.scan(options.data)
    images = people_of(index, options.lists, "peopleDevTest.txt")
    whole = export_onnx(read_keras(Bundle.open(None)), "embedding")[0]
    typical = calibration_crops(index, options.lists)
    networks = {
        "float32": whole,
        "8 bits": to_eight_bits(whole, typical, seven_bit_weights=False),
        "8 bits, weights of 7": to_eight_bits(whole, typical),
    }
    fars = [f"TAR at {far:g}" for far in FARS]
    heads = ["network", "file", *fars, "scores differ by, mean", "at most", "other decisions"]
    for side in (None, SMALL_PX):
        found = list(crops_of(index, images, side))
        kept = np.array([crop is not None for crop in found])
        crops = np.stack([crop for crop in found if crop is not None])
        person = np.unique(index.person_of[images[kept]], return_inverse=True)[1]
        print(f"{kept.sum():,} photos, {'as they are' if side is None else f'faces of {side} px'}")
        print("\n".join(align_columns([heads, *rows(networks, crops, person)])))


if __name__ == "__main__":
    main()
