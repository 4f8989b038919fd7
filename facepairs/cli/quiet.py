"""What libraries have to say is kept from people who did not ask for it with --verbose.

They warn through Python, log through Python, and print in C (TensorFlow, ONNX Runtime, libtiff).
"""

import contextlib
import io
import os
import sys
import warnings

VERBOSE = "FACEPAIRS_VERBOSE"  # in the environment: for the processes that are started, too


def verbose() -> bool:
    """Whether libraries may be heard."""
    return os.environ.get(VERBOSE, "") not in ("", "0")


def hush() -> None:
    """Silence libraries from here on, or with `verbose` let them say all they have."""
    import logging  # `--help` does without

    if verbose():
        warnings.simplefilter("default")
        logging.basicConfig(level=logging.INFO)
        return
    if not sys.warnoptions:  # -W or PYTHONWARNINGS
        warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())  # without one, Python prints to stderr
    with contextlib.suppress(OSError):
        _part_from_c()


def _part_from_c() -> None:
    """Give Python a stderr of its own, and let the one that C libraries write to lead nowhere.

    What ends the process in C is not lost: where it was is written to Python's.
    """
    import faulthandler

    stderr = sys.stderr
    if stderr is not sys.__stderr__ or not isinstance(stderr, io.TextIOWrapper):
        return  # closed, or a caller's own
    stderr.flush()
    own = io.FileIO(os.dup(2), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.stderr = io.TextIOWrapper(
        own, stderr.encoding, stderr.errors, line_buffering=True, write_through=True
    )
    faulthandler.enable(sys.stderr)


def quiet_tensorflow() -> None:
    """Set what TensorFlow and Keras look for in the environment; call it before their import."""
    from facepairs.support.atomic import own_temporaries

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0" if verbose() else "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    own_temporaries()
