"""Find the people's folders in an unpacked data set, however deep they lie."""

from collections import Counter
from pathlib import Path

from facepairs.data.index import name_problem, walk
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
    for folder, files in walk(root):
        if folder != root:
            photos[folder.parent] += sum(name_problem(file) is None for file in files)
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
    found = (folder / name for folder, files in walk(root) for name in files)
    return sorted(path for path in found if path.suffix.lower() == ".parquet")
