"""Photos on their way into a folder `Person_Name/photo.jpg`."""

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from facepairs.data.unpack import UNSAFE_CHARACTERS
from facepairs.errors import BadData

Transfer = Literal["link", "copy", "move"]


class NewPhoto(NamedTuple):
    """A photo to write: whose it is, its file name, and its file or content."""

    person: str
    file: str
    source: Path | bytes


class LeftOut(NamedTuple):
    """Something in the source that was not imported, and why."""

    name: str
    reason: str


def check_name(name: str, place: str) -> str:
    """Return the name of a folder or file, if it is safe on every system.

    Args:
        name: From a table, which is not trusted.
        place: The file and row that it comes from, for messages.

    Raises:
        BadData: The name would lead elsewhere, hide the file, or has a special meaning somewhere.
    """
    unsafe = [c for c in name if c in UNSAFE_CHARACTERS or c == "/" or not c.isprintable()]
    if not name or name.startswith(".") or unsafe:
        raise BadData(
            f"{place}: {name!r} cannot name a folder or file; rename it, without a dot at its "
            f"beginning and without / {' '.join(UNSAFE_CHARACTERS)}"
        )
    return name


@dataclass
class PhotoWriter:
    """Writes photos to `folder/Person_Name/photo.jpg`.

    Attributes:
        folder: An existing, empty folder.
        transfer: What is done with files; a link that is not possible becomes a copy.
        people: Number of photos by person.
        linked: Number of photos that are hard links.
        copied: Number of photos that are copies.
    """

    folder: Path
    transfer: Transfer
    people: Counter[str] = field(default_factory=Counter)
    linked: int = 0
    copied: int = 0

    def write(self, photo: NewPhoto) -> None:
        """Write a photo; one of the same name is kept, and this one gets a number."""
        folder = self.folder / photo.person
        if photo.person not in self.people:
            folder.mkdir()  # "File exists" on a disk that takes two people's names for one
        self.people[photo.person] += 1
        target = _free_name(folder / photo.file)
        if isinstance(photo.source, bytes):
            target.write_bytes(photo.source)
        elif self.transfer == "move":
            photo.source.replace(target)
        elif self.transfer == "link" and _link(photo.source, target):
            self.linked += 1
        else:
            shutil.copyfile(photo.source, target)
            self.copied += 1


def _free_name(path: Path) -> Path:
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _link(source: Path, target: Path) -> bool:
    """Make a hard link; return False where that is not possible."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        return False
    return True
