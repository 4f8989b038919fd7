"""Collections of faces that are only embeddings, and errors for them."""

import hashlib
from pathlib import Path

import msgspec
import numpy as np

from facepairs.bundles.rates import ErrorTable, GroupingErrors
from facepairs.grouping.collection import Collection, CollectionFace
from tiny.bundles import error_table

CUTS = (0.05, 0.1, 0.2, 0.4)


def grouping_errors(
    linked: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2), pairs: int = 10**9
) -> ErrorTable:
    """Errors of grouping at CUTS: the shares of strangers who are joined."""
    grouping = GroupingErrors(people_pairs=pairs, cuts=CUTS, linked=linked, mixed=linked)
    table = error_table()
    thresholds = (*table.thresholds[:-1], 0.98)
    return msgspec.structs.replace(
        table, grouping=grouping, impostor_pairs=pairs, thresholds=thresholds
    )


def heap_of(
    person: list[int], photo: list[str] | None = None, noise: float = 0.05, seed: int = 0
) -> Collection:
    """A collection of one face a photo, `0.jpg` and so on, unless photos are named."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(100, 64))
    rows = centres[person] + noise * random.normal(size=(len(person), 64))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    names = photo or [f"{number}.jpg" for number in range(len(person))]
    seen: dict[str, int] = {}
    faces = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        sha256 = hashlib.sha256(name.encode()).hexdigest()
        faces.append(CollectionFace(name, sha256, (10 * seen[name], 0, 8), seen[name]))
    photos = {face.photo: face.sha256 for face in faces}
    return Collection(Path("heap"), photos, tuple(faces), rows.astype(np.float32))
