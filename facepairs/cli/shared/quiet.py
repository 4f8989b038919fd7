"""Silence what libraries print, unless `--verbose` asks for it, and our messages with `--quiet`.

They warn through Python, log through Python, and print in C (TensorFlow, ONNX Runtime, libtiff).
"""

import contextlib
import os
import sys
import warnings

# Environment variables, so that child processes see them.
VERBOSE, QUIET = "FACEPAIRS_VERBOSE", "FACEPAIRS_QUIET"


def quiet() -> bool:
    """Return whether messages, warnings and progress are hidden."""
    return os.environ.get(QUIET, "") not in ("", "0")


def verbose() -> bool:
    """Return whether the output of libraries is shown."""
    return os.environ.get(VERBOSE, "") not in ("", "0") and not quiet()


def open_streams() -> None:
    """Let a standard stream that is closed read and write nothing; no file gets its number."""
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


def quiet_tensorflow() -> None:
    """Set the environment variables of TensorFlow and Keras; call it before their import."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0" if verbose() else "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"
