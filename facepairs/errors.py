"""Errors that a user can act on; every other exception is a bug."""

from collections.abc import Iterable
from typing import Literal, Self

LONGEST = 600  # characters of a message

Problem = Literal[
    "no_permission", "not_image", "too_large", "unreadable", "unsupported", "zero_byte"
]


class FacepairsError(Exception):
    """One line: what is wrong, with which file or value, and what to do next.

    Line breaks and control characters in the message, most likely from a file's name, are escaped,
    and the middle of a very long one is left out.

    Args:
        message: The line.
        *arguments: Names of the arguments or settings that the message is about. They are appended
            to the message; the command line shows its options there.

    Attributes:
        kind: The kind of error, for programs.
        message: The line.
        arguments: The names.
    """

    kind = "error"

    def __init__(self, message: str = "", *arguments: str) -> None:
        line = one_line(message)
        is_long = len(line) > LONGEST
        self.message = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}" if is_long else line
        self.arguments = arguments
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.with_names(self.arguments)

    def with_names(self, names: Iterable[str]) -> str:
        """Return the message followed by names of arguments."""
        listed = ", ".join(names)
        return f"{self.message} ({listed})" if listed else self.message

    def kept(self) -> Self:
        """Return the error without its traceback, which would keep images in memory."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


def one_line(text: str) -> str:
    """Escape line breaks, control characters and surrogates the way Python's `repr` does."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class BadConfig(FacepairsError):
    """An option, a configuration file or a combination of values that cannot be used."""

    kind = "config"


class MissingExtra(FacepairsError):
    """Packages that an extra of facepairs installs are missing; the message names the extra."""

    kind = "missing_extra"


class BadData(FacepairsError):
    """A folder of faces, a list of pairs or a scores file that cannot be used as it is."""

    kind = "data"


class NotEnrolled(BadData):
    """A name that is not in the gallery, or an empty gallery."""

    kind = "not_enrolled"


class BadGallery(BadData):
    """A gallery whose file or database is damaged, in use or unreachable."""

    kind = "gallery"


class BadImage(FacepairsError):
    """One image that cannot be used.

    Attributes:
        problem: The kind of problem.
    """

    kind = problem = "image"


class ImageProblem(BadImage):
    """An image that cannot be read.

    Attributes:
        problem: The kind of problem.
        reason: The problem in words, and what to do about it.
    """

    def __init__(self, name: str, problem: Problem = "unreadable", reason: str = "") -> None:
        super().__init__(f"{name}: {reason}" if reason else name)
        self.problem, self.reason = problem, reason


class NoFace(BadImage):
    """An image in which no face was found."""

    kind = problem = "no_face"


class TooSmallFace(BadImage):
    """An image whose face has too few pixels for a verdict."""

    kind = problem = "small_face"


class BadBundle(FacepairsError):
    """A bundle that is missing, damaged, or of another schema version."""

    kind = "bundle"


class BadRun(FacepairsError):
    """A run folder that cannot be written or resumed, or that is in use."""

    kind = "run"


class NotEnough(FacepairsError):
    """Too few people, images or pairs for a result; the message gives the numbers needed."""

    kind = "not_enough"


class BadTransfer(FacepairsError):
    """A download that failed, or whose checksum is wrong."""

    kind = "transfer"


class LostWorker(FacepairsError):
    """Another worker of a distributed training has ended, or did not start."""

    kind = "worker"
