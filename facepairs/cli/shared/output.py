"""Results on stdout, as text or JSON; messages, progress and errors, each one line, on stderr.

Output of libraries is silenced unless `--verbose` is given, our messages with `--quiet`. Libraries
warn and log through Python, and print in C (TensorFlow, ONNX Runtime, libtiff).
"""

import contextlib
import io
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from facepairs.errors import FacepairsError, LostWorker, TooSmallFace, one_line
from facepairs.support.console import Progress, showing
from facepairs.support.words import align_columns

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from facepairs.verification.verifier import Verifier


OK, NEGATIVE, ERROR, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
BUG = 70  # EX_SOFTWARE of sysexits.h
LOST_WORKER = 138  # 128 + SIGUSR1: Kubeflow restarts a process that exits with it
VERDICT_CODES = {True: OK, False: NEGATIVE, None: UNDECIDED}
MATCH = {True: "yes", False: "no", None: ""}
MAX_SHOWN = 20  # messages of a list
ERASE_LINE = "\r\x1b[2K"
DISPLAY_AFTER_S = 2.0
LINE_EVERY_S = 30.0  # in a log file
TENSORFLOW_EXHAUSTED = "ResourceExhaustedError"  # memory, or the disk:
FULL_DISK = re.compile(r"([^\s;]*); (No space left on device|Disk quota exceeded)")
OUT_OF_MEMORY = "out of memory; free some or raise the limit (ulimit -v), or reduce the input"
# Environment variables, so that child processes see them.
VERBOSE, QUIET = "FACEPAIRS_VERBOSE", "FACEPAIRS_QUIET"


def quiet() -> bool:
    """Return whether messages, warnings and progress are hidden."""
    return os.environ.get(QUIET, "") not in ("", "0")


def verbose() -> bool:
    """Return whether the output of libraries is shown."""
    return os.environ.get(VERBOSE, "") not in ("", "0") and not quiet()


def open_streams() -> None:
    """Replace closed standard streams with the null device, so that no file takes their numbers."""
    with contextlib.suppress(OSError):  # too few open files: the command will say so
        while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(null)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "rw"[number > 0], closefd=False))  # noqa: SIM115


def silence_libraries() -> None:
    """Silence libraries from here on; in verbose mode, show all their warnings and logs."""
    import logging  # `--help` does not need it

    with contextlib.suppress(OSError):
        _separate_stderr()
    if verbose():
        warnings.simplefilter("default")
        logging.basicConfig(level=logging.INFO)
        return
    if not sys.warnoptions:  # neither -W nor PYTHONWARNINGS is set
        warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())  # without one, Python prints to stderr


def _separate_stderr() -> None:
    """Point Python at a stderr of its own; unless verbose, discard what C libraries write to it.

    A crash in C is still reported: faulthandler writes its location to Python's stderr.
    """
    import faulthandler

    stderr = sys.stderr
    if stderr is not sys.__stderr__ or stderr is None:
        return  # replaced by the caller, or closed
    own = os.dup(2)
    if not verbose():
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
    sys.stderr = open(own, "w", 1, stderr.encoding, stderr.errors)  # noqa: SIM115
    faulthandler.enable(sys.stderr)


def set_up_tensorflow() -> None:
    """Set the environment variables of TensorFlow and Keras; call it before their import."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0" if verbose() else "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"


def escape_unencodable() -> None:
    r"""Make stdout escape characters it cannot encode, as in a file name that is not Unicode.

    `\udcff` in JSON is the character itself, which `os.fsencode` turns back into the name's byte.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def can_print(text: str) -> bool:
    """Return whether stdout can encode a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def print_json(value: object) -> None:
    """Print a result, or a dict of values with the version of results, on stdout."""
    from facepairs.support.results import SCHEMA, json_text  # msgspec: `--help` does not need it

    print(json_text({"schema": SCHEMA, **value} if isinstance(value, dict) else value))


def print_error(kind: str, message: str, as_json: bool) -> None:
    """Print one line on stderr, or with `as_json` an object on stdout."""
    line = " ".join(message.split())
    if as_json:
        from facepairs.support.results import json_text

        print(json_text({"error": {"kind": kind, "message": line}}))
    else:
        # One write: a C library may be printing from another thread.
        sys.stderr.write(f"{_erase()}facepairs: error: {line}\n")


def _erase() -> str:
    """Return the escape sequence that clears a progress bar from the terminal's line."""
    return ERASE_LINE if sys.stderr.isatty() else ""


def log(line: str) -> None:
    """Print a message or warning on stderr, unless --quiet; line breaks in names are escaped."""
    if not quiet():
        print(_erase() + one_line(line), file=sys.stderr)


def show_warnings() -> None:
    """Show the warnings of our own loggers on stderr."""
    import logging  # `--help` does not need it

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log(f"warning: {record.getMessage()}")

    logger = logging.getLogger("facepairs.photos")
    if not logger.handlers:
        logger.addHandler(Shown())


def log_first(lines: Sequence[str]) -> None:
    """Print the first messages of a list, and the number of the others."""
    for line in lines[:MAX_SHOWN]:
        log(line)
    if len(lines) > MAX_SHOWN:
        log(f"… and {len(lines) - MAX_SHOWN:,} more: use --json")


def warn_of_known(verifier: "Verifier", bundle: str, photos: Iterable[Path]) -> None:
    """Warn if the photos' folders name people that the model was trained or calibrated on."""
    from facepairs.data.pairs import person_name

    names = sorted({person_name(str(photo.absolute())) for photo in photos})
    knows = verifier.model.origin.identities.knows(names)
    known = [name for name, known in zip(names, knows, strict=True) if known]
    if known:
        people = " and ".join(known) if len(known) < 3 else f"{len(known):,} of these people"
        log(
            f"warning: {bundle} was trained or calibrated on {people}; expect more errors with "
            "other people"
        )


def print_rows(rows: Iterable[Sequence[str]]) -> None:
    """Print rows in aligned columns; control characters are escaped."""
    for line in align_columns([list(map(one_line, row)) for row in rows]):
        print(line)


def print_result(as_json: bool, value: object, rows: Iterable[tuple[str, str]]) -> None:
    """Print the result of a command: as JSON with `as_json`, else rows of text."""
    if as_json:
        print_json(value)
    else:
        print_rows(rows)


def percent(share: float | None) -> str:
    """Return a share between 0 and 1 as a percentage, such as `0.124 %`; None is unknown."""
    return "unknown, too few pairs" if share is None else f"{100 * share:.3g} %"


def describe_failure(error: BaseException) -> str:
    """Describe an error of the system, such as a full disk; return "" for any other error."""
    if isinstance(error, MemoryError) or type(error).__name__ == TENSORFLOW_EXHAUSTED:
        if full := FULL_DISK.search(str(error)):
            return f"{full[1]}: {full[2]}; choose another place or free space"
        return OUT_OF_MEMORY
    if not isinstance(error, OSError):
        return ""
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}; choose another place, free space or raise the limit"


def report(
    error: BaseException, names: Mapping[str, str] | None = None, as_json: bool = False
) -> int:
    """Print why a command failed, in one line or with `as_json` as an object.

    Args:
        error: What it raised.
        names: What the user types for each parameter of the command.
        as_json: Print an object.

    Returns:
        The exit code.
    """
    if isinstance(error, FacepairsError):
        return _report_error(error, names or {}, as_json)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        print_error("interrupted", "interrupted", as_json)
        return INTERRUPTED
    if hasattr(error, "format_message"):  # click's UsageError
        return _report_usage_error(error, as_json)
    if failure := describe_failure(error):
        print_error("system", failure, as_json)
        return ERROR
    return _report_bug(error, as_json)


def _report_error(error: FacepairsError, names: Mapping[str, str], as_json: bool) -> int:
    """Print an error that a user can act on, with the options that it is about."""
    has_settings = "config" in names  # other names may be settings of that file
    about = (names.get(name, name) for name in error.arguments if name in names or has_settings)
    print_error(error.kind, error.with_names(about), as_json)
    if isinstance(error, LostWorker):
        return LOST_WORKER
    return UNDECIDED if isinstance(error, TooSmallFace) else ERROR


def _report_usage_error(error: Any, as_json: bool) -> int:
    """Print a mistake in the command line."""
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help())
        return ERROR
    command = context.command_path if context else "facepairs"
    message = error.format_message().replace("\n", " ").rstrip(".")
    parsed = context.params if context else {}  # --json is parsed first
    link = " See" if message.endswith("?") else "; see"
    print_error("usage", f"{message}{link} {command} --help", as_json or bool(parsed.get("json")))
    return ERROR


def _report_bug(error: BaseException, as_json: bool) -> int:
    """Print Python's traceback of an unexpected error on stderr, and ask for a report."""
    traceback.print_exception(error, file=sys.stderr)
    message = (
        f"this is a bug in facepairs ({type(error).__name__}); please report it with the command "
        "and the lines from Traceback on"
    )
    print_error("bug", message, as_json)
    return BUG


@contextmanager
def showing_on_stderr(as_json: bool = False) -> Iterator[None]:
    """Show messages and progress on stderr during a block; with `as_json`, messages alone.

    In a terminal progress is a bar, once a phase takes two seconds; elsewhere a line every 30
    seconds. --quiet hides everything.
    """
    if as_json or quiet():
        with showing(log):
            yield
    elif not sys.stderr.isatty():
        with showing(log, _progress_lines):
            yield
    else:
        with _showing_bars():
            yield


@contextmanager
def _showing_bars() -> Iterator[None]:
    bars: Bars | None = None

    def begin(label: str) -> Progress:
        started, task = time.monotonic(), None

        def update(done: int, total: int) -> None:
            nonlocal bars, task
            if task is None and done < total and time.monotonic() - started > DISPLAY_AFTER_S:
                bars = bars or _start_bars()
                task = bars.add_task(label, completed=done, total=total)
            if bars is not None and task is not None:
                bars.update(task, completed=done, total=total, visible=done < total)

        return update

    try:
        with showing(log, begin, _waiting):
            yield
    finally:
        if bars is not None:
            bars.stop()


def _start_bars() -> "Bars":
    from rich import console, progress  # a twentieth of a second, which short work does not need

    columns = progress.BarColumn(24), progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    label = progress.TextColumn("{task.description}", markup=False)
    # Messages go past it: it would break long lines.
    bars = progress.Progress(
        label,
        *columns,
        console=console.Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bars.start()
    return bars


def _progress_lines(label: str) -> Progress:
    printed = time.monotonic()

    def update(done: int, total: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if done < total and now - printed >= LINE_EVERY_S:
            printed = now
            log(f"{label} {done:,}/{total:,}")

    return update


@contextmanager
def _waiting(label: str) -> Iterator[None]:
    print(f"{ERASE_LINE}{label} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(ERASE_LINE, end="", file=sys.stderr, flush=True)
