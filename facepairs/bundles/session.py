"""`OnnxSession`: a network opened in ONNX Runtime on the CPU."""

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from facepairs.errors import BadBundle
from facepairs.support.platform import keep_for_ever

LOG_FATAL_ONLY = 4  # ONNX Runtime's log level; errors are raised as exceptions

# The key of an ONNX tensor's external file, after its length in protobuf's encoding. Which places
# ONNX Runtime lets such a tensor read (the current folder, memory) has changed between versions.
# Two plain searches: a regular expression takes ten times as long for a network's megabytes.
_EXTERNAL_TENSOR_MARKS = (b"\x08location", b"\x00location")


def _keep_after_fork() -> None:
    """Never end the networks of the other process: ONNX Runtime would wait for its threads."""
    for session in _open:
        keep_for_ever(session._session)


_open: "weakref.WeakSet[OnnxSession]" = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_after_fork)


class OnnxSession:
    """A network opened in ONNX Runtime on the CPU; thread-safe, and pickled with its network.

    Args:
        network: The network's bytes.
        path: The file that error messages name.
        threads: Threads of one call; None for one per core.

    Attributes:
        inputs: Name → description (name, type, shape) of each input.
        outputs: Name → description of each output.

    Raises:
        BadBundle: ONNX Runtime refuses the network, or it reads other files.
    """

    def __init__(
        self,
        network: bytes,
        path: Path,
        threads: int | None = None,
    ) -> None:
        if any(mark in network for mark in _EXTERNAL_TENSOR_MARKS):
            raise BadBundle(f"{path}: keeps tensors outside of itself; export it as a single file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = LOG_FATAL_ONLY
        # Threads that spin between calls would take the cores from those that decode images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.path = path
        # The bytes and not the file, which may have changed when the session is pickled.
        self._arguments = (network, path, threads)
        try:
            self._session: Any = onnxruntime.InferenceSession(
                network, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - ONNX Runtime's errors share no other class
            raise BadBundle(
                f"{path}: ONNX Runtime {onnxruntime.__version__} refuses it "
                f"({_first_line(error)}); export it again"
            ) from None
        self._process = os.getpid()  # last, as threads may open it at the same time
        _open.add(self)
        self.inputs = {node.name: node for node in self._session.get_inputs()}
        self.outputs = {node.name: node for node in self._session.get_outputs()}

    def __reduce__(self) -> Any:
        return OnnxSession, self._arguments

    def run(self, output: str, inputs: dict[str, Any]) -> npt.NDArray[np.float32]:
        """Run the network on one batch and return one of its outputs as float32.

        Raises:
            BadBundle: The network fails, or returns a value that is not finite.
        """
        if self._process != os.getpid():  # its threads have stayed in the other process
            self.__init__(*self._arguments)  # type: ignore[misc]
        try:
            (result,) = self._session.run([output], inputs)
        except Exception as error:  # noqa: BLE001 - see above
            count = len(next(iter(inputs.values())))
            raise BadBundle(
                f"{self.path}: failed on a batch of {count} ({_first_line(error)}); export it again"
            ) from None
        values: npt.NDArray[np.float32] = np.asarray(result, np.float32)
        if not np.isfinite(values).all():
            raise BadBundle(f"{self.path}: returned a value that is not finite; train it again")
        return values


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
