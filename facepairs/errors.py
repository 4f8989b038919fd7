"""Errors that a user can act on; everything else that is raised is a bug."""

NO_PLACE = "no folder for temporary files can be written; set TMPDIR to one that can"


class FacepairsError(Exception):
    """Say in one line what is wrong, which file or value, and what to do; `kind` is for scripts.

    A line break or a control character in the message, from a file's name most likely, is escaped.
    """

    kind = "error"

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """Escape as Python does what would break a line or steer a terminal, or is no Unicode."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class BadConfig(FacepairsError):
    """An option, a configuration file or a combination of values that cannot be used."""

    kind = "config"


class BadData(FacepairsError):
    """A folder of faces, a pair list or a scores file that cannot be used as it is."""

    kind = "data"


class BadImage(FacepairsError):
    """One image that cannot be read."""

    kind = "image"


class NoFace(BadImage):
    """An image in which no face was found, so that nothing can be framed."""

    kind = "no_face"


class BadBundle(FacepairsError):
    """A bundle that is missing, damaged, or of another schema."""

    kind = "bundle"


class BadRun(FacepairsError):
    """A run folder that cannot be written, resumed, or is in use."""

    kind = "run"


class NotEnough(FacepairsError):
    """Too few people, images or pairs to say anything; the message gives the numbers needed."""

    kind = "not_enough"


class BadTransfer(FacepairsError):
    """A download that failed, or whose content is not what was promised."""

    kind = "transfer"


class LostWorker(FacepairsError):
    """Another worker of a training has gone, or did not come."""

    kind = "worker"
