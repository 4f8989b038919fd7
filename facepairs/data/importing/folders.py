"""Find the people's folders in an unpacked data set, however deep they lie."""

import os
from collections import Counter
from pathlib import Path

from facepairs.data.index import name_problem
from facepairs.errors import BadData
from facepairs.support.words import counted

TABLE = "metadata.csv"


def find_people(root: Path) -> Path | None:
    """Return the folder of the people's folders, `root` or one in it; None if there are no photos.

    Args:
        root: A folder such as Kaggle's, with `lfw-deepfunneled/lfw-deepfunneled/Name/photo.jpg`.

    Raises:
        BadData: Photos lie in several such folders, for instance `train` and `test`.
    """
    photos: Counter[Path] = Counter()  # by the folder of the people's folders
    for name, folders, files in os.walk(root):
        folders[:] = [folder for folder in folders if not _is_hidden(folder)]
        folder = Path(name)
        if folder != root:
            usable = (not _is_hidden(file) and name_problem(file) is None for file in files)
            photos[folder.parent] += sum(usable)
    photos = +photos
    if not photos:
        return None
    by_count = photos.most_common()
    people = by_count[0][0]
    if any(not folder.is_relative_to(people) for folder in photos):
        places = ", ".join(f"{path} ({counted(count, 'photo')})" for path, count in by_count)
        raise BadData(f"{root}: has photos of people in several places: {places}; import one")
    return people


def find_table(people: Path, root: Path) -> Path | None:
    """Return Hugging Face's table of photos beside or above them: folders then name nobody."""
    folders = [people, *people.parents]
    tables = (folder / TABLE for folder in folders[: folders.index(root) + 1])
    return next((table for table in tables if table.is_file()), None)


def find_parquet(root: Path) -> list[Path]:
    """Return the parquet files of a folder, sorted."""
    names = (path.relative_to(root) for path in sorted(root.rglob("*.parquet")))
    return [root / name for name in names if not any(map(_is_hidden, name.parts))]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"
