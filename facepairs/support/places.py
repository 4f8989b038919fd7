"""Places that a command is given: may they be read or written? Asked before any work is done."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from facepairs.errors import BadData, FacepairsError

ADVICE = "choose another place or remove it"
HEAD_BYTES = 4096
# A `Path` has merged the two slashes; one letter before the colon is a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def check_output_folder(
    out: Path,
    kind: str = "",
    is_own: Callable[[Path], bool] | None = None,
    inputs: Path | None = None,
    error: type[FacepairsError] = BadData,
) -> None:
    """Refuse an output folder that holds somebody else's files, or lies inside the input folder.

    Args:
        out: The folder to write. It may be missing, empty, or an older output of the same kind.
        kind: The kind of output with its article, such as "a bundle".
        is_own: Returns whether a folder that holds something is an older output of this kind, which
            may be replaced; None: nothing may be replaced.
        inputs: The folder that is read; an output inside it would be read as input next time.
        error: The exception that is raised.

    Raises:
        error: Names the folder, what is wrong, and what to do.
    """
    try:
        is_inside = inputs is not None and out.resolve().is_relative_to(inputs.resolve())
        is_allowed = is_free(out) or (is_own is not None and out.is_dir() and is_own(out))
    except (OSError, RuntimeError) as failure:  # RuntimeError: a loop of links, up to Python 3.12
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"{out}: {reason}; choose another place") from None
    if not is_allowed:
        allowed = f"neither {kind} nor an empty folder" if kind else "not an empty folder"
        raise error(f"{out}: exists and is {allowed}; {ADVICE}")
    if is_inside:
        raise error(f"{out}: lies within the photos {inputs}; choose another place")


def check_output_file(out: Path, inputs: Iterable[Path] = (), text: bool = True) -> None:
    """Refuse an output file that is also read, or that would replace a photo.

    Args:
        out: The file to write.
        inputs: The files that are read.
        text: Whether text is written: then another kind of file is not replaced.

    Raises:
        BadData: Names the file, what is wrong, and what to do.
    """
    try:
        if out.is_dir():
            raise BadData(f"{out}: is a folder; give the name of a file to write")
        if not out.is_file():
            return
        if any(path.is_file() and path.samefile(out) for path in inputs):
            raise BadData(f"{out}: is also read by this command; choose another file to write")
        with open(out, "rb") as handle:
            is_text = b"\0" not in handle.read(HEAD_BYTES)
    except OSError as error:
        raise BadData(f"{out}: {error.strerror}; choose another place") from None
    if text and not is_text:
        raise BadData(f"{out}: exists and is not a text file; {ADVICE}")


def hidden_beside(target: Path, ending: str) -> Path:
    """Return `.NAME.ending` beside an output; raises BadData for `.`, which has no name."""
    if not target.name:
        raise BadData(f"cannot write {target}: it has no name; give one, such as {target / 'out'}")
    return target.with_name(f".{target.name}.{ending}")


def is_free(out: Path) -> bool:
    """Return whether `out` does not exist, or is an empty folder; may raise OSError."""
    if not out.exists():
        return not out.is_symlink()  # a link to nothing, or in a circle, cannot be replaced
    return out.is_dir() and not any(out.iterdir())


def refuse_url(place: Path | str) -> None:
    """Refuse the URL of what would have to be a file or folder of this machine.

    Raises:
        BadData: It is a URL, and no path that exists.
    """
    url = _URL.fullmatch(str(place))
    if url and not Path(place).exists():
        raise BadData(
            f"{url[1]}://{url[2].rpartition('@')[2]}: a web address, where a path on this machine "
            "is needed; download what is there, or write to a local path and copy it"
        )
