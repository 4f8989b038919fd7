"""Wrong labels: photos of another person than the rest of their folder stand apart."""

import numpy as np
from tiny.heaps import heap_of

from facepairs.data.index import FaceIndex
from facepairs.evaluation.likeness import find_mislabelled


def test_photos_of_somebody_else_are_found_in_folders_of_three_and_more() -> None:
    people = {"Two": [0, 1], "Three": [2, 2, 3], "Mixed": [4, 4, 5, 5], "Many": [6] * 39 + [7]}
    people |= {"Right": [8] * 5, "Several": [9, 10, 11]}
    names = [f"{name}/{at:02}.jpg" for name, shown in people.items() for at in range(len(shown))]
    listing = np.argsort(names)
    shown = np.concatenate(list(people.values()))[listing]
    rows = heap_of(shown.tolist(), noise=0.2).embeddings
    index = FaceIndex.from_listing(names)
    found = [index.name(image) for image in find_mislabelled(index, rows)]
    assert found == ["Many/39.jpg", "Mixed/02.jpg", "Mixed/03.jpg", "Three/02.jpg"]
    rows[list(index.names()).index("Three/00.jpg")] = np.nan
    found = [index.name(image) for image in find_mislabelled(index, rows)]
    assert "Three/02.jpg" not in found
