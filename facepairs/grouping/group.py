"""`group`: a collection of photos, sorted by people."""

from contextlib import nullcontext
from pathlib import Path

from facepairs.errors import BadBundle, BadConfig
from facepairs.gallery.gallery import Gallery
from facepairs.grouping.collection import read_collection
from facepairs.grouping.folder import (
    FACES,
    PeopleFolder,
    check_people_folder,
    folder_name,
    read_people_folder,
)
from facepairs.grouping.groups import PRECISION, Groups, KnownFaces, group_faces
from facepairs.grouping.linkage import unit_rows
from facepairs.grouping.write import write_people_folder
from facepairs.support.extras import require_extra
from facepairs.support.words import command_line
from facepairs.verification.verifier import Verifier


def group(
    photos: Path | str,
    out: Path | str | None = None,
    bundle: Path | str | None = None,
    *,
    precision: float = PRECISION,
    gallery: Path | str | None = None,
    copy: bool = False,
) -> Groups:
    """Find all faces of all photos below a folder, and group them by people.

    Where `out` holds the people of an earlier call, it is read first: folders that were renamed or
    joined, and photos that were moved, copied or deleted by hand, stay as they are. New faces join
    these people, or make new ones.

    Examples:
        >>> groups = facepairs.group("holidays", out="people")
        >>> print(groups.expected.describe())

    Args:
        photos: The folder of photos. Nothing in it is changed.
        out: Folder to write, see `grouping.folder`; None for none.
        bundle: A bundle or external embedder whose grouping was measured; None for the included
            model.
        precision: Share of joined pairs of faces that should show one person, in (0, 1).
        gallery: Gallery that gives the names of people that are enrolled.
        copy: Write copies of photos instead of hard links.

    Raises:
        BadData: The folder holds no photo; or `out` cannot be written, is something else, or has
            one face in the folders of two people.
        BadConfig: The precision is outside (0, 1), or a name of the gallery cannot name a
            folder.
        BadBundle: The model does not serve, or its grouping was not measured.
        NotEnough: The model was measured on too few pairs for this precision.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extra("measure", "facepairs.group")
    if not 0 < precision < 1:
        raise BadConfig(
            f"precision is {precision:g}; give the share of joined pairs that should be right, "
            "such as 0.99"
        )
    root, target = Path(photos), None if out is None else Path(out)
    if target is not None:
        check_people_folder(target, root)
    verifier = Verifier.load(bundle, threads=1)
    model = verifier.model
    tables = (model.profile.errors, model.profile.own_errors)
    errors = next((table for table in tables if table and table.grouping), None)
    if errors is None:
        calibrate = command_line("calibrate", model.place, "people/", "--out", "mine")
        raise BadBundle(
            f"{model.place}: how well it groups faces was not measured; run: {calibrate}"
        )
    with nullcontext() if gallery is None else Gallery(gallery, verifier) as opened:
        known = None if opened is None else known_faces(opened)
        collection, before = read_collection(root, verifier), PeopleFolder()
        if target is not None and (target / FACES).exists():
            collection, before = read_people_folder(target, collection, verifier)
        cohort, settled = model.profile.cohort, before.settled
        groups = group_faces(
            collection, errors, precision, settled, before.names, cohort, known, before.rate
        )
    if target is not None:
        write_people_folder(groups, target, before, copy)
    return groups


def known_faces(gallery: Gallery) -> KnownFaces | None:
    """Return the faces of a gallery's people; raises BadConfig if no folder can have a name."""
    embeddings, people = gallery.vectors().rows()
    if not people:
        return None
    names = {name: folder_name(name) for name in set(people)}
    return KnownFaces(unit_rows(embeddings), tuple(names[name] for name in people))
