"""Networks in ONNX Runtime on the device that is chosen, or on the CPU if that fails."""

import os
from collections.abc import Callable
from typing import Any, get_args

from facepairs.choices import DEVICE, Device
from facepairs.errors import BadConfig
from facepairs.support import console

PROVIDERS: dict[str, str] = {
    "cuda": "CUDAExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "cpu": "CPUExecutionProvider",
}
AUTO = ("cuda", "openvino", "cpu")  # CoreML is in every runtime for macOS, and was not tried
INSTALL = {"cuda": "onnxruntime-gpu", "openvino": "onnxruntime-openvino"}
# CUDA and CoreML have no convolution in 8 bits. OpenVINO (onnxruntime-openvino 1.24.1) refuses the
# included network: "the graph is not acyclic".
EIGHT_BITS = b"QLinearConv"


def available_devices() -> list[str]:
    """Return the devices for which the installed ONNX Runtime was built."""
    import onnxruntime

    built = onnxruntime.get_available_providers()
    return [device for device, provider in PROVIDERS.items() if provider in built]


def chosen_device() -> str:
    """Return the device of the option or the environment variable, `auto` by default.

    Raises:
        BadConfig: The device is unknown, or the installed ONNX Runtime was not built for it.
    """
    wanted, available = os.environ.get(DEVICE) or "auto", available_devices()
    if wanted == "auto":
        return next(device for device in AUTO if device in available)
    if wanted not in get_args(Device):
        known = ", ".join(get_args(Device))
        raise BadConfig(f"device is {wanted!r}; use one of {known} (--device, {DEVICE})")
    if wanted not in available:
        advice = f"; in its place install {INSTALL[wanted]}" if wanted in INSTALL else ""
        raise BadConfig(
            f"device {wanted}: the installed ONNX Runtime has only {', '.join(available)}{advice} "
            f"(--device, {DEVICE})"
        )
    return wanted


class Session:
    """A network in ONNX Runtime; it moves to the CPU when its device fails, and says so.

    Args:
        network: The network's bytes.
        options: ONNX Runtime's `SessionOptions`.
        read_float32: Reads the network that runs elsewhere than on the CPU if this one computes in
            8 bits; None where there is none.

    Attributes:
        device: Where it runs.
    """

    def __init__(
        self, network: bytes, options: Any, read_float32: Callable[[], bytes] | None = None
    ) -> None:
        self._network, self._options = network, options
        self.device = chosen_device()
        if self.device != "cpu" and EIGHT_BITS in network:
            is_wanted = os.environ.get(DEVICE, "auto") not in ("auto", "")
            # OpenVINO computes on the CPU, where 8 bits are faster than float32.
            if read_float32 and (is_wanted or self.device == "cuda"):
                network = read_float32()
            else:
                if is_wanted:
                    _tell(self.device, "cannot run 8-bit networks, and this one has no other form")
                self.device = "cpu"
        try:
            self._session = self._open(network)
        except Exception as error:
            if self.device == "cpu":
                raise
            self._fall_back(error)

    def run(self, outputs: list[str], inputs: dict[str, Any]) -> list[Any]:
        """Run the network; arguments as for ONNX Runtime, whose errors may be raised."""
        try:
            results: list[Any] = self._session.run(outputs, inputs)
        except Exception as error:
            if self.device == "cpu":
                raise
            self._fall_back(error)
            results = self._session.run(outputs, inputs)
        return results

    def get_inputs(self) -> list[Any]:
        """Return ONNX Runtime's descriptions of the inputs."""
        return list(self._session.get_inputs())

    def get_outputs(self) -> list[Any]:
        """Return ONNX Runtime's descriptions of the outputs."""
        return list(self._session.get_outputs())

    def _open(self, network: bytes) -> Any:
        import onnxruntime

        provider = PROVIDERS[self.device]
        providers = list(dict.fromkeys([provider, PROVIDERS["cpu"]]))
        session = onnxruntime.InferenceSession(
            network,
            self._options,
            providers=providers,
            enable_fallback=0,  # its own prints to stdout
        )
        if provider not in session.get_providers():
            raise RuntimeError("its libraries or its hardware are missing")
        return session

    def _fall_back(self, error: Exception) -> None:
        # Names of C++ functions come first, and CUDA's places in the code last.
        line = str(error).strip().rpartition("\n")[2]
        _tell(self.device, line.rpartition("] ")[2].partition(" ; ")[0] or type(error).__name__)
        self.device = "cpu"
        self._session = self._open(self._network)


def _tell(device: str, reason: str) -> None:
    """Say once in a process that a device is left."""
    if device not in _told:
        _told.add(device)
        console.log(f"warning: device {device}: {reason}; a network runs on the CPU")


_told = set[str]()
