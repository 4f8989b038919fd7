"""Any ONNX embedder gets the input that its TOML describes; scores equal those of plain NumPy."""

import json
import pickle
import re
import shutil

import numpy as np
import pytest
from drawn.photos import noise_photos
from drawn.scenes import drawn_faces
from onnx import helper
from PIL import Image
from processes.command_line import in_process
from tiny.bundles import embedding_network, measured_of, onnx_model, tiny_bundle
from tiny.embedders import MATRIX, SIZE, TOML, embedder, network

from facepairs.bundles.embedder import ARCFACE_POINTS, Embedder
from facepairs.bundles.manifest import Identities, identity_hash
from facepairs.bundles.model import open_model
from facepairs.bundles.writer import write_calibrated
from facepairs.errors import BadBundle, BadData
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.photos.decode import upright
from facepairs.photos.detector import search_photo
from facepairs.photos.frame import TEMPLATE, fit_crop, fit_similarity
from facepairs.photos.photo import open_photo
from facepairs.photos.reader import PhotoReader
from facepairs.verification.verifier import Verifier

POINTS = [[3.5, 4], [7.5, 4], [5.5, 6], [4, 8], [7, 8]]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return noise_photos(tmp_path_factory.mktemp("photos"), 4, (250, 250))


def by_hand(verifier, photos, toml):
    """Embed photos with NumPy alone: crop, colours, scaling, layout, product."""
    crops = np.stack([verifier.detect(path, every=False)[0].crop for path in photos]).astype(
        np.float64
    )
    if toml["colours"] == "bgr":
        crops = crops[..., [2, 1, 0]]
    if toml.get("mean") is not None:
        crops = (crops - np.array(toml["mean"])) / np.array(toml["std"])
    if toml["layout"] == "nchw":
        crops = np.moveaxis(crops, 3, 1)
    return crops.reshape(len(crops), -1) @ MATRIX


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"colours": "rgb"},
        {"layout": "nhwc"},
        {"mean": None, "std": None, "kind": "UINT8"},
        {"std": [50, 60.5, 70]},
        {"batch": 1},
    ],
)
def test_the_network_gets_what_the_toml_describes(tmp_path, photos, changes):
    table = TOML | changes
    kind, batch = table.pop("kind", "FLOAT"), table.pop("batch", "N")
    toml = embedder(tmp_path, network(table["layout"], kind, batch), **table)
    verifier = Verifier.load(toml)
    rows = by_hand(verifier, photos, table)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    left, right = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    embedded = verifier.embed(photos)
    score = verifier.compare(embedded[left], embedded[right])
    assert score == pytest.approx((rows[left] * rows[right]).sum(axis=1), abs=1e-5)
    assert verifier.verify(photos[0], photos[1]).score == pytest.approx(score[0], abs=1e-6)


def test_the_crop_is_a_share_of_the_shorter_side(tmp_path, photos):
    verifier = Verifier.load(embedder(tmp_path / "a", crop=0.625))
    assert verifier.detect(photos[0])[0].crop.shape == (SIZE, SIZE, 3)
    assert verifier.model.framing.side_px(80, 64) == 40
    whole = Verifier.load(embedder(tmp_path / "c", crop=1.0)).model.framing
    assert whole.side_px(80, 64) == 64
    assert load_crop(photos[0], whole).shape == (SIZE, SIZE, 3)


def test_without_figures_there_is_only_a_score(tmp_path, photos):
    verdict = Verifier.load(embedder(tmp_path)).verify(photos[0], photos[1])
    assert (verdict.same, verdict.probability, verdict.threshold) == (None, None, None)
    with pytest.raises(BadData):
        bool(verdict)
    given = Verifier.load(tmp_path / "other.toml").verify(photos[0], photos[0], threshold=0.9)
    assert given.same is True


@pytest.mark.parametrize("described", [False, True])
def test_a_pickled_verifier_contains_its_model(tmp_path, photos, described):
    bundle = tiny_bundle(tmp_path / "bundle", "embedding", embedding_network())
    model = embedder(tmp_path / "external") if described else bundle.folder
    verifier = Verifier.load(model, threads=1)
    taken = pickle.dumps(verifier)
    wanted, network = verifier.embed(photos), verifier.model.network.embedder_sha256
    shutil.rmtree(tmp_path / "bundle")
    shutil.rmtree(tmp_path / "external", ignore_errors=True)
    assert verifier.model.network.embedder_sha256 == network  # the file is read once
    assert np.array_equal(pickle.loads(taken).embed(photos), wanted)


@pytest.mark.parametrize(
    "changes",
    [
        {"file": "../network.onnx"},
        {"file": "/etc/passwd"},
        {"file": "none.onnx"},
        {"colors": "rgb"},
        {"size_px": 0},
        {"size_px": 13},
        {"layout": "nhwc"},
        {"distance": "cosine"},
        {"mean": [1, 2]},
        {"mean": [1, 2, 3, 4]},
        {"std": [1, 2, 3, 4]},
        {"std": 1e-40},
        {"mean": 1e30, "std": 1e-9},
        {"std": 0},
        {"std": None},
        {"mean": None, "std": None},
        {"crop": 1.2},
        {"output": "none"},
        {"crop": None},
        {"align": "eyes"},
        {"points": POINTS},
        {"align": "landmarks-5", "crop": None},
        {"align": "landmarks-5", "points": POINTS},
        {"align": "landmarks-5", "crop": None, "points": POINTS[:4]},
        {"align": "landmarks-5", "crop": None, "points": [*POINTS, [1, 1]]},
        {"align": "landmarks-5", "crop": None, "points": [[*point, 0] for point in POINTS]},
        {"align": "landmarks-5", "crop": None, "points": POINTS[::-1]},
        {"align": "arcface-112", "crop": None},
        {"sha256": "0" * 64},
        {"measured": "none.json"},
        {"size_px": 10**40},
        {"std": 10**400},
    ],
)
def test_an_unusable_toml_is_refused_by_name(tmp_path, changes):
    toml = embedder(tmp_path, **changes)
    with pytest.raises(BadBundle, match=str(tmp_path)) as caught:
        Verifier.load(toml)
    said = str(caught.value).lower().replace("-", "")
    files = [value for value in changes.values() if str(value).startswith("none.")]
    assert any(word in said for word in (*changes, *files)), "names what is wrong"
    assert "facepairs fetch" not in said


def test_what_decides_an_embedding_is_its_network_and_input(tmp_path):
    def embedder_sha256(**changes):
        return open_model(embedder(tmp_path, **changes)).network.embedder_sha256

    same, *others = {"licence": "MIT", "training_data": "a"}, {"std": 57}, {"colours": "rgb"}
    assert embedder_sha256(**same) == embedder_sha256()
    assert len({embedder_sha256(), *(embedder_sha256(**changes) for changes in others)}) == 3


def test_no_file_of_another_folder_is_read(tmp_path):
    (tmp_path / "m.json").write_bytes(measured_of().to_bytes())
    (tmp_path / "p.json").write_bytes(Identities.of(["Ann"], []).to_bytes())
    for changes in ({"measured": "../m.json"}, {"people": "../p.json"}):
        (name,) = changes.values()
        with pytest.raises(BadBundle, match=re.escape(repr(name))):
            Embedder.open(embedder(tmp_path / "e", **changes))


def test_keys_that_break_lines_are_escaped(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('"\\u001c\\n\\u001b[2J" = 1\n')
    with pytest.raises(BadBundle) as caught:
        Embedder.open(path)
    assert str(caught.value).isprintable()


def test_networks_that_do_not_fit_are_refused(tmp_path, photos):
    several = network(outputs=("a", "b"))
    outside = network() + b"\x08location"
    for number, onnx in enumerate([several, outside, b"not onnx", network(kind="UINT8")]):
        with pytest.raises(BadBundle):
            Verifier.load(embedder(tmp_path / str(number), onnx))
    with pytest.raises(BadBundle):
        Verifier.load(embedder(tmp_path / "half", network(kind="UINT8"), std=None))
    chosen = embedder(tmp_path / "chosen", network(outputs=("a", "b")), output="b")
    assert Verifier.load(chosen).verify(photos[0], photos[0]).score == pytest.approx(1, abs=1e-5)
    outside = tmp_path / "outside.onnx"
    outside.write_bytes(network())
    linked = embedder(tmp_path / "linked")
    (tmp_path / "linked" / "network.onnx").unlink()
    (tmp_path / "linked" / "network.onnx").symlink_to(outside)
    with pytest.raises(BadBundle):
        Verifier.load(linked)
    linked.write_text("= no toml")
    with pytest.raises(BadBundle):
        Embedder.open(linked)
    with pytest.raises(BadBundle):
        Embedder.open(tmp_path / "none.toml")


def looks_at(points, size_px):
    """Return a network whose embedding is the colours at some pixels (x, y) of its square."""
    matrix = np.zeros((3, size_px, size_px, 3 * len(points)), np.float32)
    for number, (x, y) in enumerate(points):
        for colour in range(3):
            matrix[colour, y, x, 3 * number + colour] = 1
    nodes = [
        helper.make_node("Flatten", ["face"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "matrix"], ["colours"]),
    ]
    matrix = matrix.reshape(-1, 3 * len(points))
    frame = {"face": ["N", 3, size_px, size_px]}
    shape = {"colours": ["N", 3 * len(points)]}
    return onnx_model(nodes, shape, frame, {"matrix": matrix}, "FLOAT").SerializeToString()


PLAIN = {"mean": 0, "std": 1, "crop": None, "colours": "rgb"}


def test_the_network_sees_each_landmark_where_the_points_put_it(tmp_path):
    photo = drawn_faces(tmp_path / "drawn", people=1)[0]
    (face,) = search_photo(open_photo(photo))
    turn = np.array([[0.6, -0.3], [0.3, 0.6]])  # a similarity, so that all five can be met
    points = face.landmarks @ turn.T
    points = np.round(points - points.min(axis=0) + 20, 6)
    toml = embedder(
        tmp_path / "e", looks_at([(0, 0)], 112), **PLAIN, size_px=112, align="landmarks-5",
        points=points.tolist(),
    )  # fmt: skip
    verifier = Verifier.load(toml)
    (found,) = verifier.detect(photo, every=False)
    to_crop = fit_crop(found.face.landmarks, verifier.model.framing)
    assert to_crop(face.landmarks) == pytest.approx(points, abs=1e-4)
    pixels = points.round().astype(int)  # of the square, near each landmark
    looking = embedder(
        tmp_path / "f", looks_at(pixels, 112), **PLAIN, size_px=112, align="landmarks-5",
        points=points.tolist(),
    )  # fmt: skip
    seen = Verifier.load(looking).embed([photo]).ravel()
    with upright(open_photo(photo)) as (picture, _):
        image = np.asarray(picture, np.float64)
    expected = []
    for x, y in to_crop.inverse()(pixels):
        left, top = int(x), int(y)
        right, below = x - left, y - top
        window = image[top : top + 2, left : left + 2]
        weights = np.outer([1 - below, below], [1 - right, right])
        expected.append((window * weights[:, :, None]).sum(axis=(0, 1)))
    # An embedding has length 1.
    assert seen * np.linalg.norm(expected) == pytest.approx(np.ravel(expected), abs=4)


def test_arcface_112_is_the_similarity_that_comes_closest_to_its_template(tmp_path):
    photo = drawn_faces(tmp_path / "drawn", people=1)[0]
    toml = embedder(
        tmp_path / "e", looks_at([(0, 0)], 112), **PLAIN, size_px=112, align="arcface-112"
    )
    verifier = Verifier.load(toml)
    (found,) = verifier.detect(photo, every=False)
    template = np.array(verifier.model.framing.points)
    eyes_and_nose = [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366]]
    assert template.tolist() == [*eyes_and_nose, [41.5493, 92.3655], [70.7299, 92.2041]]
    to_crop = fit_crop(found.face.landmarks, verifier.model.framing)
    # x' = a x - b y + c, y' = b x + a y + d: four unknowns, ten equations
    rows = [row for x, y in found.face.landmarks for row in ((x, -y, 1, 0), (y, x, 0, 1))]
    (a, b, c, d), *_ = np.linalg.lstsq(np.array(rows), template.ravel(), rcond=None)
    assert to_crop.matrix == pytest.approx(np.array([(a, -b), (b, a)]), abs=1e-9)
    assert to_crop.offset == pytest.approx(np.array([c, d]), abs=1e-6)
    distance = np.linalg.norm(to_crop(found.face.landmarks) - template, axis=1)
    assert distance.max() < 10  # drawn faces have nearly the template's proportions
    assert found.crop.shape == (112, 112, 3)
    small = Image.open(photo).resize((90, 90)).resize((250, 250))  # blurred
    hints = verifier.detect(small)[0].hints
    assert hints
    reader = PhotoReader(aligned=True, framing=CropSpec(250, 128))
    assert hints == reader.detect("small", small)[0].hints  # not of the network's square


def test_arcface_s_template_is_nearly_the_mean_face_of_lfw():
    points = np.array(ARCFACE_POINTS)
    distance = np.linalg.norm(fit_similarity(points)(points) - TEMPLATE, axis=1)
    assert distance.max() < 3.5  # of 250 pixels; a tenth more of any number is seen


def test_calibrate_writes_a_folder_that_verify_opens(tmp_path, faces):
    toml, mine = embedder(tmp_path / "e", align="landmarks", crop=0.625), tmp_path / "mine"
    done = in_process("calibrate", toml, faces, "--out", mine, "--json", check=0)
    assert json.loads(done.stdout)["people"] == 24
    assert f"warning: the training people of {toml} are unknown" in done.stderr
    assert sorted(path.name for path in mine.iterdir()) == [
        "embedder.toml", "measured.json", "network.onnx"
    ]  # fmt: skip
    a, b = sorted(faces.glob("*/*.jpg"))[:2]
    told = json.loads(in_process("verify", a, b, "--bundle", mine, "--json").stdout)
    assert told["same"] is not None
    errors = told["operating_point"]["errors"]
    assert errors["measured_on"] == "24 people of faces/"
    low, high = errors["fmr"]["interval"]
    assert low <= errors["fmr"]["value"] <= high
    assert 0 < told["probability"] < 1
    refused = in_process("evaluate", mine, faces, check=2)
    assert "0 of 24 people" in refused.stderr
    with (mine / "network.onnx").open("ab") as network:
        network.write(b" ")  # another network has other errors
    refused = in_process("verify", a, b, "--bundle", mine, check=2)
    assert "its SHA-256 differs from embedder.toml" in refused.stderr
    shutil.copyfile(tmp_path / "e" / "network.onnx", mine / "network.onnx")
    broken = json.loads((mine / "measured.json").read_text())
    del broken["errors"]["fmr"]
    (mine / "measured.json").write_text(json.dumps(broken))
    refused = in_process("verify", a, b, "--bundle", mine, check=2)
    assert "measured.json: errors: " in refused.stderr


def test_only_an_embedder_with_its_errors_is_replaced(tmp_path):
    model, mine = open_model(embedder(tmp_path / "e")), tmp_path / "mine"
    for names in (["Ann"], ["Bo", "Cyd"]):
        write_calibrated(model, mine, measured_of(), names)
        assert open_model(mine).origin.identities.calibration == {
            identity_hash(name) for name in names
        }
    (mine / "photo.jpg").touch()
    with pytest.raises(BadBundle):
        write_calibrated(model, mine, measured_of(), ["Ann"])
    (mine / "photo.jpg").unlink()
    (mine / "measured.json").unlink()
    toml = (mine / "embedder.toml").read_text()
    (mine / "embedder.toml").write_text(toml.replace('measured = "measured.json"\n', ""))
    with pytest.raises(BadBundle):  # the user's own
        write_calibrated(model, mine, measured_of(), ["Ann"])


def test_evaluate_measures_an_external_embedder(tmp_path, faces):
    toml = embedder(tmp_path)
    assert "held-out" not in in_process("evaluate", toml, faces, check=0).stdout
    done = in_process("evaluate", toml, faces, "--json", check=0)
    (summary,) = json.loads(done.stdout)["models"]
    assert "the training people of" in done.stderr
    assert summary["people"] == 24
    assert summary["ece"] is None
    assert summary["threshold_source"] == "other_half"


def test_a_model_says_where_it_lies_and_who_trained_it(tmp_path):
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "people.json").write_bytes(Identities.of(["Ann", "Cyd"], []).to_bytes())
    toml = embedder(tmp_path / "e")
    unknown = open_model(toml)
    assert (unknown.place, unknown.name, unknown.alignment) == (str(toml), "other", "lfw-frame")
    assert (unknown.origin.lists_training, unknown.origin.trained_on) == (False, None)
    assert not unknown.files.check_all()  # it has no checksum
    listed = open_model(embedder(tmp_path / "e", people="people.json", align="landmarks"))
    assert (listed.origin.lists_training, listed.origin.trained_on) == (True, "2 people")
    assert listed.alignment == "landmarks-5"
    write_calibrated(listed, tmp_path / "mine", measured_of(), ["Bo"])
    mine = open_model(tmp_path / "mine")
    assert (mine.place, mine.name) == (str(tmp_path / "mine"), "other")
    assert mine.origin.identities == Identities.of(["Ann", "Cyd"], ["Bo"])
    assert mine.files.check_all()
    told = embedder(tmp_path / "e", people="people.json", training_data="photos")
    assert open_model(told).origin.trained_on == "photos"
