"""Places that a command is given: may they be read or written? Asked before any work is done."""

import contextlib
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
# Those that may be lost: nobody's own files are among them.
SHOWN_HERE = {".ds_store", "thumbs.db", "desktop.ini", "@eadir", "@__thumb"}
# A `Path` has merged the two slashes; one letter before the colon is a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def check_output_folder(
    out: Path,
    kind: str = "",
    files_of: Callable[[Path], Collection[str]] | None = None,
    inputs: Path | None = None,
    error: type[FacepairsError] = BadData,
) -> None:
    """Refuse an output folder that holds somebody else's files, or lies inside the input folder.

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
        others = sorted(filter(_is_somebodys, set(files_below(out)) - own)) if own else []
        is_allowed = is_free(out) or (bool(own) and not others)
    except (OSError, RuntimeError) as failure:  # RuntimeError: a loop of links, up to Python 3.12
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"{out}: {reason}; choose another place") from None
    if not is_allowed:
        allowed = f"neither {kind} nor an empty folder" if kind else "not an empty folder"
        allowed += f", {others[0]} is none of its files" if others else ""
        raise error(f"{out}: exists and is {allowed}; {ADVICE}")
    if is_inside:
        raise error(f"{out}: lies within the photos {inputs}; choose another place")


def files_below(folder: Path) -> tuple[str, ...]:
    """Return the paths of all files below a folder, with slashes; links are not followed."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return tuple(sorted(path.relative_to(folder).as_posix() for path in found))


def listed_files(record: Path) -> set[str]:
    """Return the files of a folder that its record, a JSON file, lists as `files`; and the record.

    Return nothing where the file is missing, or no such record.
    """
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        return {record.name, *json.loads(record.read_text("utf-8"))["files"]}
    return set()


def refuse_input(out: Path | str, inputs: Iterable[object]) -> None:
    """Refuse an output file that is one of the files which a command reads, by whatever name.

    Args:
        out: The file to write.
        inputs: The values of the command's options; what is no path of a file is passed over.

    Raises:
        BadData: It is.
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
        mark: What an older output contains; another file is not replaced. None: any text is.

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
        kind = "earlier output" if mark else "text file"
        raise BadData(f"{out}: exists, and is no {kind}; {ADVICE}")


def hidden_beside(target: Path, ending: str) -> Path:
    """Return `.NAME.ending` beside an output; raises BadData for `.`, which has no name."""
    if not target.name:
        raise BadData(f"cannot write {target}: it has no name; give one, such as {target / 'out'}")
    return target.with_name(f".{target.name}.{ending}")


def is_leftover(name: str) -> bool:
    """Return whether a file or folder is hidden, or left by a system: none of a person's photos."""
    return name.startswith(".") or name.casefold() in LEFTOVERS


def _is_somebodys(path: str) -> bool:
    """Return whether a path is none of the files that systems leave in folders which they show."""
    names = path.casefold().split("/")
    return not any(name in SHOWN_HERE or name.startswith("._") for name in names)


def is_free(out: Path) -> bool:
    """Return whether `out` does not exist, or is an empty folder; may raise OSError."""
    if not out.exists():
        return not out.is_symlink()  # a link to nothing, or in a circle, cannot be replaced
    return out.is_dir() and not any(out.iterdir())


def refuse_url(place: Path | str) -> None:
    """Refuse a URL, or `-`, in place of a file or folder of this machine.

    Raises:
        BadData: It is a URL, and no path that exists; or it is `-`.
    """
    if str(place) == "-":
        raise BadData(f"{place}: stands for no file or folder here; give the path of one")
    url = _URL.fullmatch(str(place))
    if url and not Path(place).exists():
        raise BadData(
            f"{url[1]}://{url[2].rpartition('@')[2]}: a web address, where a path on this machine "
            "is needed; download what is there, or write to a local path and copy it"
        )
