"""`group`: a heap of photos, sorted by people."""

from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np

from facepairs.bundles.measured import identification_point
from facepairs.errors import BadBundle, BadConfig
from facepairs.gallery.enrol import DEFAULT_FPIR
from facepairs.gallery.gallery import Gallery
from facepairs.gallery.grouping import PRECISION, Groups, group_faces
from facepairs.gallery.heap import find_photos, read_heap
from facepairs.gallery.people_folder import (
    check_people_folder,
    folder_name,
    read_earlier,
    write_people_folder,
)
from facepairs.support.extras import require_extras
from facepairs.support.words import command_line
from facepairs.verification.loading import model_name
from facepairs.verification.verifier import Verifier


def group(
    heap: Path | str,
    out: Path | str | None = None,
    bundle: Path | str | None = None,
    *,
    precision: float = PRECISION,
    gallery: Path | str | None = None,
    copy: bool = False,
) -> Groups:
    """Find all faces of all photos below a folder, and group them by people.

    Where `out` holds the people of an earlier call, they stay as they are, with what its file
    `corrections.csv` corrects; new photos join them, or make new people.

    Examples:
        >>> groups = facepairs.group("holidays", out="people")
        >>> print(groups.expected.describe())

    Args:
        heap: The folder of photos. Nothing in it is changed.
        out: Folder to write, see `people_folder`; None for none.
        bundle: A bundle or external embedder whose grouping was measured; None for the included
            model.
        precision: Share of joined pairs of faces that shall show one person, in (0, 1).
        gallery: Gallery that gives the names of people that are enrolled.
        copy: Write copies of photos instead of hard links.

    Raises:
        BadData: The heap holds no photo, or lacks one of an earlier call; or `out` cannot be
            written or is something else.
        BadConfig: The precision is outside (0, 1).
        BadBundle: The model does not serve, or its grouping was not measured.
        NotEnough: The model was measured on too few pairs for this precision.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extras(["measure"], "facepairs.group")
    if not 0 < precision < 1:
        raise BadConfig(
            f"precision is {precision:g}; give the share of joined pairs that shall be right, such "
            "as 0.99"
        )
    heap, target = Path(heap), None if out is None else Path(out)
    if target is not None:
        check_people_folder(target, heap)
    verifier = Verifier.load(bundle, threads=1)
    errors = verifier.bundle.errors
    if errors is None or errors.grouping is None:
        name = model_name(verifier.bundle)
        calibrate = command_line("calibrate", name, "people/", "--out", "mine")
        raise BadBundle(f"{name}: how well it groups faces was not measured; run: {calibrate}")
    earlier = read_earlier(target, find_photos(heap))
    with nullcontext() if gallery is None else Gallery(gallery, verifier) as known:
        heap_read = read_heap(heap, verifier)
        groups = group_faces(heap_read, errors, precision, earlier, verifier.bundle.cohort)
        if known is not None:
            groups = name_people(groups, known)
    if target is not None:
        write_people_folder(groups, target, earlier.corrections, copy)
    return groups


def name_people(groups: Groups, gallery: Gallery) -> Groups:
    """Return groups with the names of people that a gallery knows.

    A group gets a name where its mean score with one of that person's photos reaches the threshold
    at which the gallery would take one in a hundred such groups of strangers for somebody. Groups
    that get the same name become one. A name that no folder can have is left out, and so is one
    that a correction took from a face of the group.
    """
    vectors = gallery.vectors()
    if not len(vectors):
        return groups
    point = identification_point(gallery.verifier.bundle, DEFAULT_FPIR, len(vectors))
    names: dict[str, str] = {}
    for name, faces in groups.people.items():
        scores = vectors.best(groups.heap.embeddings[faces].mean(axis=0))
        best = int(np.argmax(scores))
        known = vectors.people[best]
        is_refused = groups.refused and any(known in groups.refused[face] for face in faces)
        if point.threshold is None or scores[best] < point.threshold or is_refused:
            continue
        with suppress(BadConfig):
            names[name] = folder_name(known)
    return groups.renamed(names)
