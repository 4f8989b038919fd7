"""dlib's network behind the same commands, and its squares beside ours."""

import json
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from drawn.scenes import drawn_faces
from processes.command_line import in_process
from processes.core_environment import link_core, run_in

from facepairs import Verifier
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import BadBundle
from facepairs.evaluation.protocols import PairSelection, category_of
from facepairs.evaluation.sources.find import find_sources
from facepairs.faces.alignment import fit_crop
from facepairs.images.crop import CropSpec
from facepairs.images.photo import load_upright, open_photo
from facepairs.images.warp import warp
from facepairs.verification.embedders.dlib_model import FOLDER, WEIGHTS_PACKAGE, WEIGHTS_SHA256
from facepairs.verification.embedders.embedder import ExternalEmbedder
from facepairs.verification.embedders.measured import MEASURED, read_measured

# Corners of the eyes and the base of the nose in dlib's square, as shares without its margin.
DLIB_POINTS = np.array(
    [(0.8596, 0.2135), (0.6461, 0.2290), (0.1206, 0.2137), (0.3341, 0.2291), (0.4901, 0.6278)]
)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn"), people=2)


@pytest.fixture(scope="module")
def verifier():
    pytest.importorskip("dlib")
    pytest.importorskip(WEIGHTS_PACKAGE)
    return Verifier.load("dlib")


def test_what_was_measured_fits_the_network():
    model, measured = ExternalEmbedder.open(FOLDER), read_measured(FOLDER / MEASURED)
    assert model.operating_point == 0.01
    assert model.errors.at(measured.threshold).fmr.rate < 0.01
    assert len(measured.people) == 1711
    assert model.knows(["George_W_Bush", "Nobody_Known"]).tolist() == [False, False]
    assert model.model == "dlib"
    index = FaceIndex.from_listing(["Ann/a.jpg", "Bob/b.jpg"])
    view2 = PairSelection(index, PairList.of([0], [1], [False]), "View 2", "view2")
    assert category_of(model, view2) == "labelled outside data"
    assert category_of(model, replace(view2, protocol="")) is None
    assert find_sources(["dlib", "default", "photos"], None)[0][0].kind == "model"


def test_verify_says_its_operating_point_and_errors(photos, verifier):
    a, b, c = photos[:3]  # two of one person, one of another
    told = json.loads(in_process("verify", a, b, "--model", "dlib", "--json").stdout)
    assert (told["operating_point"], told["measured_on"]) == (
        "fmr-0.01", "test people of LFW View 1",
    )  # fmt: skip
    assert told["fmr"] == pytest.approx(0.0017, abs=1e-4)
    assert told["score"] > verifier.verify(a, c).score
    assert told["score"] == pytest.approx(verifier.verify(a, b).score, abs=1e-6)
    shown = in_process("verify", a, b, "--model", "dlib")
    assert "1 in 600 strangers would pass" in shown.stdout
    assert "were measured on LFW; on your photos run: facepairs calibrate dlib" in shown.stderr


def test_info_describes_the_network(verifier):
    shown = in_process("info", "dlib", check=0).stdout
    for words in ("CC0 (public domain)", "3 million labelled photos", "FMR 1 % among look-alikes"):
        assert words in shown
    told = json.loads(in_process("info", "dlib", "--json", check=0).stdout)
    assert told["size_px"] == 150
    assert told["point"]["operating_point"] == "fmr-0.01"


def test_it_embeds_batches_threads_and_pickles_the_same(photos, verifier):
    rows = verifier.embed(photos)
    assert rows.shape == (4, 128)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    again = pickle.loads(pickle.dumps(verifier)).embed(photos[:1])
    assert again == pytest.approx(rows[:1], abs=1e-6)


def test_a_square_by_dlibs_landmarks_is_dlibs_own(photos, verifier):
    """Our fit and warp against dlib's, for the same five landmarks."""
    import dlib

    image = np.ascontiguousarray(load_upright(open_photo(photos[0]), 1600)[0])
    landmarks = np.array([(148, 112), (128, 113), (82, 110), (102, 111), (115, 148)], float)
    parts = [dlib.point(int(x), int(y)) for x, y in landmarks]
    box = dlib.rectangle(60, 60, 190, 190)
    wanted = dlib.get_face_chip(image, dlib.full_object_detection(box, parts), 150, 0.25)
    points = (DLIB_POINTS + 0.25) / 1.5 * 150 - 0.5  # dlib counts from the corner of a pixel
    to_square = fit_crop(landmarks, CropSpec(150, 150, tuple(map(tuple, points))))
    ours = warp(image, to_square, 150)
    difference = np.abs(ours.astype(int) - wanted)[2:-2, 2:-2]
    assert difference.mean() < 1.5
    assert np.quantile(difference, 0.99) < 16


def test_another_file_of_that_name_is_refused(tmp_path, photos, verifier):
    text = (FOLDER / "embedder.toml").read_text()
    (tmp_path / "embedder.toml").write_text(text)
    (tmp_path / MEASURED).write_bytes((FOLDER / MEASURED).read_bytes())
    (tmp_path / verifier.bundle.file).write_bytes(b"no network")
    with pytest.raises(BadBundle, match="its SHA-256 is not the one in embedder"):
        Verifier.load(tmp_path)
    (tmp_path / "embedder.toml").write_text(text.replace(WEIGHTS_SHA256, "").replace("sha256", "#"))
    with pytest.raises(BadBundle, match="not dlib's weights"):  # dlib never reads it
        Verifier.load(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs links between folders")
def test_without_its_packages_one_line_names_the_extra(tmp_path, photos):
    core = link_core(tmp_path / "site")
    done = run_in(
        core, "-m", "facepairs", "verify", *photos[:2], "--model", "dlib", cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "facepairs: error: the model dlib needs more packages; install them with: "
        "pip install 'facepairs[dlib]'\n"
    )
