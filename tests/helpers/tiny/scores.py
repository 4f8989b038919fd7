"""Scored pairs of invented people, and photos and run folders to go with them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from facepairs.evaluation.scores import ScoredPairs, write_scores
from facepairs.verification.provenance import Provenance

FOLDS = 4


def invented(
    pairs: int = 400, seed: int = 0, apart: float = 2.0, folds: int = FOLDS
) -> ScoredPairs:
    """Return alternating genuine and impostor pairs of 20 people, in equal folds (0: no folds)."""
    draw = np.random.Generator(np.random.Philox(seed))
    genuine = np.arange(pairs) % 2 == 0
    left, right = [], []
    for number in range(pairs):
        who = number // 2 % 20
        other = who if genuine[number] else (who + 1 + number // 40 % 18) % 20
        left.append(photo(who, 1 + number // 40 % 3))
        right.append(photo(other, 4 + number // 40 % 3))
    fold = np.arange(pairs) * folds // pairs + 1 if folds else np.zeros(pairs)
    score = draw.normal(size=pairs) + apart * genuine
    return ScoredPairs(left, right, genuine, fold.astype(np.int16), score)


def photo(person: int, number: int) -> str:
    return f"Person_{person:02}/Person_{person:02}_{number:04}.png"


def draw_photos(root: Path) -> Path:
    """Write a flat photo for each name in `invented`; brightness depends on the person."""
    for person in range(20):
        for number in range(1, 7):
            path = root / photo(person, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.full((40 + number, 40, 3), 10 * person + number, np.uint8)
            pixels[::2, :, number % 3] += 7
            Image.fromarray(pixels).save(path)
    return root


def write_method(folder: Path, scores: ScoredPairs) -> Path:
    """Write the folder of a method as `crossval` writes it."""
    folder.mkdir(parents=True)
    origin = Provenance(model=folder.name, pairs="LFW View 2", protocol="view2")
    write_scores(folder / "scores.csv", replace(scores, origin=origin))
    numbers = np.unique(scores.fold).tolist()
    rows = [
        {
            "fold": k,
            "people": {"training": 10 + k},
            "seed": 3,
            "calibration": {"scale": 2.0, "offset": -1.8 - 0.2 * k},
        }
        for k in numbers
    ]
    result = {"method": folder.name, "folds": rows, "folds_in_all": len(numbers)}
    (folder / "result.json").write_text(json.dumps(result))
    return folder
