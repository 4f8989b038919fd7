"""Turn exceptions into one line of text and an exit code."""

import sys
import traceback
from collections.abc import Mapping
from typing import Any

from facepairs.cli.shared.output import BUG, ERROR, UNDECIDED, print_error
from facepairs.errors import SHORTAGES, FacepairsError, TooSmallFace

TENSORFLOW_OUT_OF_MEMORY = "ResourceExhaustedError"
LIBRARY_OUT_OF_MEMORY = ("failed to map segment", "annot allocate memory")
NO_PLACE = "no folder for temporary files can be written; set TMPDIR to one that can"
NO_TEMPORARY_FOLDER = "No usable temporary directory"  # Python's message
OUT_OF_MEMORY = "out of memory; free some or raise the limit (ulimit -v), or reduce the input"


def describe_shortage(error: Exception) -> str:
    """Return what the machine has run out of, or "" for any other error."""
    library = isinstance(error, ImportError) and any(
        text in str(error) for text in LIBRARY_OUT_OF_MEMORY
    )
    tensorflow = type(error).__name__ == TENSORFLOW_OUT_OF_MEMORY
    if library or tensorflow or isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, FileNotFoundError) and NO_TEMPORARY_FOLDER in str(error):
        return NO_PLACE
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}; {SHORTAGES[error.errno]}"
    return ""


def report_error(error: FacepairsError, flags: Mapping[str, str], as_json: bool) -> int:
    """Print an error that a user can act on, with the options that it is about.

    Args:
        error: The error.
        flags: What the user types for each argument of the command.
        as_json: Print an object.
    """
    has_settings = "config" in flags  # what is no option may be a setting of that file
    names = (flags.get(name, name) for name in error.arguments if name in flags or has_settings)
    print_error(error.kind, error.with_names(names), as_json)
    return UNDECIDED if isinstance(error, TooSmallFace) else ERROR


def report_bug(error: Exception, as_json: bool) -> int:
    """Print an error that nobody foresaw: Python's traceback on stderr, and what to do with it."""
    traceback.print_exception(error, file=sys.stderr)
    message = (
        f"this is a bug in facepairs ({type(error).__name__}); please report it with the command "
        "and the lines from Traceback on"
    )
    print_error("bug", message, as_json)
    return BUG


def is_usage_error(error: Exception) -> bool:
    """Return whether this is a mistake in the command line (click's UsageError)."""
    return hasattr(error, "format_message")


def report_usage_error(error: Any, as_json: bool) -> int:
    """Print a mistake in the command line in one line."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help())
        return ERROR
    command = error.ctx.command_path if getattr(error, "ctx", None) else "facepairs"
    message = error.format_message().replace("\n", " ").rstrip(".")
    print_error("usage", f"{message}; see {command} --help", as_json)
    return ERROR
