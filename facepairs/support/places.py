"""Check the files and folders that a command reads or writes."""

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from facepairs.errors import BadData, FacepairsError

ADVICE = "choose another place or remove it"
HEAD_BYTES = 4096
LEFTOVERS = {  # of Synology, QNAP, Windows, macOS and Linux, in lower case
    *("@eadir", "#recycle", "#snapshot", "@recycle", "@recently-snapshot", "@__thumb", "__macosx"),
    *("$recycle.bin", "system volume information", "thumbs.db", "desktop.ini", "lost+found"),
}
# Leftovers that may be deleted: none is a user's own file.
SHOWN_HERE = {".ds_store", "thumbs.db", "desktop.ini", "@eadir", "@__thumb"}
# A `Path` has merged the two slashes; one letter before the colon is a drive of Windows.
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
WEB = ("http", "https", "ftp", "file")  # no storage that a pass over photos can list
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def check_output_folder(
    out: Path,
    kind: str = "",
    files_of: Callable[[Path], Collection[str]] | None = None,
    inputs: Path | None = None,
    error: type[FacepairsError] = BadData,
) -> None:
    """Refuse an output folder that holds other files, or lies inside the input folder.

    Args:
        out: The folder to write. It may be missing, empty, or an older output of the same kind.
        kind: The kind of output with its article, such as "a bundle".
        files_of: Returns the paths of the files in an older output of this kind, as the folder's
            own list has them; nothing, or a FacepairsError, for any other folder. A folder that
            holds no other file may be replaced, but for what systems leave there, such as
            `.DS_Store`; None: nothing may be replaced.
        inputs: The folder that is read; an output inside it would be read as input next time.
        error: The exception that is raised.

    Raises:
        error: Names the folder, what is wrong, and what to do.
    """
    try:
        is_inside = inputs is not None and out.resolve().is_relative_to(inputs.resolve())
        own: set[str] = set()
        with contextlib.suppress(FacepairsError):
            own.update(files_of(out) if files_of is not None and out.is_dir() else ())
        others = sorted(filter(is_foreign, set(files_below(out)) - own)) if own else []
        is_allowed = is_free(out) or (bool(own) and not others)
    except (OSError, RuntimeError) as failure:  # RuntimeError: a loop of links, up to Python 3.12
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"{out}: {reason}; choose another place") from None
    if not is_allowed:
        allowed = f"neither {kind} nor an empty folder" if kind else "not an empty folder"
        allowed += f": {others[0]} does not belong to it" if others else ""
        raise error(f"{out}: exists and is {allowed}; {ADVICE}")
    if is_inside:
        raise error(f"{out}: lies within the photos {inputs}; choose another place")


def files_below(folder: Path) -> tuple[str, ...]:
    """Return the paths of all files below a folder, with slashes; links are not followed."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return tuple(sorted(path.relative_to(folder).as_posix() for path in found))


def listed_files(record: Path) -> set[str]:
    """Return the files of a folder that its record, a JSON file, lists as `files`; and the record.

    Return an empty set if the file is missing, or is not such a record.
    """
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        return {record.name, *json.loads(record.read_text("utf-8"))["files"]}
    return set()


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits; raise OSError if it cannot be read."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def refuse_input(out: Path | str, inputs: Iterable[object]) -> None:
    """Raise BadData if an output file is also an input, under whatever name.

    Args:
        out: The file to write.
        inputs: The values of the command's options; values that are not files are ignored.
    """
    for value in inputs:
        with contextlib.suppress(OSError, ValueError, TypeError):
            path = Path(value)  # type: ignore[arg-type]
            if path.is_file() and path.samefile(out):
                raise BadData(f"{out}: is also read by this command; choose another file to write")


def check_output_file(out: Path, mark: bytes | None = None) -> None:
    """Refuse an output file that would replace a photo.

    Args:
        out: The file to write.
        mark: Bytes that an older output contains; no other file is replaced. None: any text file
            may be.

    Raises:
        BadData: Names the file, what is wrong, and what to do.
    """
    try:
        if not out.exists():
            return
        if not out.is_file():
            raise BadData(f"{out}: is a folder or a device; give the name of a file to write")
        with open(out, "rb") as handle:
            is_own = b"\0" not in handle.read(HEAD_BYTES) if mark is None else mark in handle.read()
    except OSError as error:
        raise BadData(f"{out}: {error.strerror}; choose another place") from None
    if not is_own:
        kind = "an earlier output" if mark else "a text file"
        raise BadData(f"{out}: exists and is not {kind}; {ADVICE}")


def hidden_beside(target: Path, ending: str) -> Path:
    """Return `.NAME.ending` beside an output; raise BadData for `.`, which has no name."""
    if not target.name:
        raise BadData(f"cannot write {target}: it has no name; give one, such as {target / 'out'}")
    return target.with_name(f".{target.name}.{ending}")


def is_leftover(name: str) -> bool:
    """Return whether a file or folder is hidden, or a leftover of an operating system."""
    return name.startswith(".") or name.casefold() in LEFTOVERS


def is_foreign(path: str) -> bool:
    """Return whether a path is a user's file, not one that systems leave in folders they show."""
    names = path.casefold().split("/")
    return not any(name in SHOWN_HERE or name.startswith("._") for name in names)


def is_free(out: Path) -> bool:
    """Return whether `out` does not exist, or is an empty folder; may raise OSError."""
    if not out.exists():
        return not out.is_symlink()  # a broken or circular link cannot be replaced
    return out.is_dir() and not any(out.iterdir())


def is_remote(place: str) -> bool:
    """Return whether a place is a URI of remote storage, such as `gs://bucket/photos`."""
    scheme = _REMOTE.match(place)
    return scheme is not None and scheme[1].lower() not in WEB


def refuse_url(place: Path | str) -> None:
    """Raise BadData for a URL (unless such a path exists), or `-`, in place of a local path."""
    if str(place) == "-":
        raise BadData(f"{place}: standard input and output are not supported; give a path")
    url = _URL.fullmatch(str(place))
    if url and not Path(place).exists():
        raise BadData(
            f"{url[1]}://{url[2].rpartition('@')[2]}: is a web address; give a path on this "
            "machine: download the data first, or write locally and copy the result"
        )
