"""Photos on their way into a folder `Person_Name/photo.jpg`."""

import os
import re
import shutil
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from facepairs.data.index import SkipReason
from facepairs.data.unpack import UNSAFE_CHARACTERS
from facepairs.errors import BadData

Transfer = Literal["link", "copy", "move"]
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # on Windows


class NewPhoto(NamedTuple):
    """A photo to write: whose it is, its file name, and its file or content."""

    person: str
    file: str
    source: Path | bytes


class LeftOut(NamedTuple):
    """Something in the source that was not imported, and why."""

    name: str
    reason: str


def in_words(reason: SkipReason) -> str:
    """Return why a file or folder is left out, in words."""
    words: dict[SkipReason, str] = {"not_image": "not a photo", "unsupported": "unsupported format"}
    return words.get(reason, reason.replace("_", " "))


def check_name(name: str, place: str) -> str:
    """Return the name of a folder or file, if it is safe on every system.

    Args:
        name: From a table, which is not trusted.
        place: The file and row that it comes from, for messages.

    Raises:
        BadData: The name would lead elsewhere, hide the file, or has a special meaning somewhere.
    """
    unsafe = any(c in UNSAFE_CHARACTERS or c == "/" or not c.isprintable() for c in name)
    if not name or name.startswith(".") or name.endswith((".", " ")) or unsafe:
        raise BadData(
            f"{place}: {name!r} cannot name a folder or file on every system; rename it, without a "
            f"dot at its beginning or end and without / {' '.join(UNSAFE_CHARACTERS)}"
        )
    if RESERVED.fullmatch(name):
        raise BadData(f"{place}: {name!r} names a device on Windows; rename it")
    return name


class PeopleNames:
    """The names of a table's people, which must not be one folder on some system."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def check(self, name: str, place: str) -> str:
        """Return a name, as `check_name` does; refuse another spelling of an earlier one.

        Raises:
            BadData: The name is unsafe, or differs from another one only by case or Unicode form.
        """
        key = unicodedata.normalize("NFC", check_name(name, place)).casefold()
        known = self._known.setdefault(key, name)
        if known != name:
            raise BadData(
                f"{place}: {name!r} and {known!r} differ only by case or Unicode form; write one "
                "person's name in one way, or give two people two names"
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
