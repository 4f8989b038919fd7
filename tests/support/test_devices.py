"""Networks run where they are told to, and on the CPU where that fails."""

import numpy as np
import onnxruntime
import pytest
from processes.command_line import in_process
from tiny.embedders import SIZE, network

from facepairs.bundles.model import open_model
from facepairs.bundles.scorer import open_scorer
from facepairs.data.synth.faces import draw_face
from facepairs.errors import BadConfig
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.support import devices
from facepairs.support.console import showing
from facepairs.support.devices import Session, available_devices, chosen_device

MAX_MOVED = 0.025  # between 8 bits and float32: .023 of 1.7 million pairs of LFW's photos
FACE = {"face": np.full((1, 3, SIZE, SIZE), 0.5, np.float32)}


OUT_OF_MEMORY = (  # cut in the middle
    "[ONNXRuntimeError] : 1 : FAIL : /cuda/cuda_call.cc:121 onnxruntime::CudaCall(ERRTYPE) [with "
    "ERRTYPE = cudaError] CUDA failure 2: out of memory ; GPU=0 ; hostname=a ; expr=f(p);\n\n"
)


class Failing(onnxruntime.InferenceSession):
    """ONNX Runtime as it behaves on a machine whose GPU cannot be opened, or fails in use."""

    fails_in_use = False

    def __init__(self, content, options, providers, enable_fallback):
        assert not enable_fallback  # it would print
        super().__init__(content, options, providers=["CPUExecutionProvider"])
        self.asked = providers

    def get_providers(self):
        return self.asked if self.fails_in_use else ["CPUExecutionProvider"]

    def run(self, outputs, inputs):
        if len(self.asked) > 1:
            raise RuntimeError(OUT_OF_MEMORY)
        return super().run(outputs, inputs)


@pytest.fixture
def cuda(monkeypatch):
    """A runtime that was built for CUDA."""
    monkeypatch.setenv("FACEPAIRS_DEVICE", "cuda")
    built = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: built)
    monkeypatch.setattr(onnxruntime, "InferenceSession", Failing)
    devices._told.clear()


def test_the_best_tried_device_is_chosen(monkeypatch):
    for built, best in (
        (["CPU"], "cpu"),
        (["OpenVINO", "CPU"], "openvino"),
        (["CUDA", "OpenVINO", "CPU"], "cuda"),
        (["CoreML", "CPU"], "cpu"),
    ):
        names = [f"{name}ExecutionProvider" for name in built]
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda names=names: names)
        monkeypatch.delenv("FACEPAIRS_DEVICE", raising=False)
        assert chosen_device() == best
        for device in available_devices():
            monkeypatch.setenv("FACEPAIRS_DEVICE", device)
            assert chosen_device() == device
        assert {device.casefold() for device in built} == {*map(str, available_devices())}


@pytest.mark.parametrize("wanted", ["gpu", "coreml"])
def test_a_device_that_there_is_not_is_refused(monkeypatch, wanted):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setenv("FACEPAIRS_DEVICE", wanted)
    with pytest.raises(BadConfig, match="cpu"):
        chosen_device()
    done = in_process("info", "default", check=2)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("fails_in_use", [False, True])
def test_a_device_that_fails_is_told_once_and_left(cuda, monkeypatch, fails_in_use):
    monkeypatch.setattr(Failing, "fails_in_use", fails_in_use)
    lines = []
    with showing(lines.append):
        for _ in range(2):
            session = Session(network(), onnxruntime.SessionOptions())
            assert session.run(["embedding"], FACE)[0].shape == (1, 7)
            assert session.device == "cpu"
    assert len(lines) == 1
    assert "cuda" in lines[0]
    assert ("CUDA failure 2: out of memory;" in lines[0]) == fails_in_use


def test_an_unsuitable_network_fails_on_the_cpu_as_ever(cuda):
    with pytest.raises(Exception, match="protobuf"):
        Session(b"no network", onnxruntime.SessionOptions())


def test_info_tells_where_networks_run(monkeypatch):
    monkeypatch.setenv("FACEPAIRS_DEVICE", "cpu")
    shown = in_process("info", "default", check=0).stdout
    assert "network on cpu in 8 bits, face detector on " in shown


def test_a_network_in_8_bits_alone_stays_on_the_cpu(cuda, monkeypatch):
    lines = []
    with showing(lines.append):
        for device in ("auto", "cuda"):  # only who asks for a device is told
            assert not lines
            monkeypatch.setenv("FACEPAIRS_DEVICE", device)
            session = Session(open_model(None).network.content, onnxruntime.SessionOptions())
            assert session.device == "cpu"
    assert len(lines) == 1
    assert "8-bit" in lines[0]


@pytest.mark.parametrize(("device", "is_read"), [("cuda", True), ("openvino", False)])
def test_the_best_device_takes_float32_only_if_it_is_a_gpu(cuda, monkeypatch, device, is_read):
    built = [devices.PROVIDERS[device], "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: built)
    monkeypatch.setattr(Failing, "fails_in_use", True)  # it opens
    monkeypatch.setenv("FACEPAIRS_DEVICE", "auto")
    network = open_model(None).network
    session = Session(network.content, onnxruntime.SessionOptions(), network.read_float32)
    assert session.device == (device if is_read else "cpu")


@pytest.mark.parametrize("fails_in_use", [False, True])
def test_what_fails_in_float32_falls_back_to_8_bits(cuda, monkeypatch, fails_in_use):
    expected = embeddings("cpu", monkeypatch)
    monkeypatch.setattr(Failing, "fails_in_use", fails_in_use)
    assert np.array_equal(embeddings("cuda", monkeypatch), expected)


def test_a_second_device_gives_the_scores_of_float32(monkeypatch):
    if "openvino" not in available_devices():
        pytest.skip("needs onnxruntime-openvino in place of onnxruntime")
    expected, on_device = (embeddings(name, monkeypatch) for name in ("cpu", "openvino"))
    network = onnxruntime.InferenceSession(open_model(None).network.read_float32())
    (in_float,) = network.run(None, {"image": drawn_crops()})
    assert np.abs(on_device - in_float).max() < 1e-4
    assert np.abs(on_device @ on_device.T - expected @ expected.T).max() < MAX_MOVED
    assert "network on openvino in float32" in in_process("info", "default", check=0).stdout


def drawn_crops():
    faces = [draw_face(3, person, 0) for person in range(4)]
    return np.stack([load_crop(face, CropSpec(150, 150)) for face in faces])


def embeddings(device, monkeypatch):
    """Embed drawn faces with the included model on a device."""
    monkeypatch.setenv("FACEPAIRS_DEVICE", device)
    scorer = open_scorer(open_model(None))
    rows = scorer.represent(drawn_crops())
    assert scorer.device == (device if device in ("cpu", "openvino") else "cpu")
    return rows
