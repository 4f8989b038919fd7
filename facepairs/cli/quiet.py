"""TensorFlow's start-up chatter is kept from people who did not ask for it."""

import os
import warnings

from facepairs.atomic import own_temporaries


def quiet_tensorflow() -> None:
    """Set what silences TensorFlow and Keras, and where their temporary files go; call it first."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    warnings.filterwarnings("ignore", module=r"(tensorflow|keras|tf2onnx|onnx|google)\..*")
    own_temporaries()
    _import_without_stderr()


def _import_without_stderr() -> None:
    """Import TensorFlow while its C++ logger, which writes before it is set up, goes nowhere."""
    import sys

    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        import tensorflow  # noqa: F401
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
