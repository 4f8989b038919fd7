import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny.bundles import (
    CROP_PX,
    embedding_network,
    onnx_model,
    pair_network,
    score_pairs,
    tiny_bundle,
)

from facepairs.bundles.model import load_bundle, open_model
from facepairs.bundles.scorer import open_scorer, pair_scores
from facepairs.errors import BadBundle, BadData


def crops(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, CROP_PX, CROP_PX, 3), np.uint8)


def scorer_of(bundle):
    return open_scorer(load_bundle(bundle), threads=1)


@pytest.fixture(scope="module", params=["pair", "embedding"])
def scorer(request, tmp_path_factory):
    return scorer_of(tiny_bundle(tmp_path_factory.mktemp("b") / "bundle", request.param))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32))
def test_the_order_of_two_images_does_not_matter(scorer, count, seed):
    left, right = crops(count, seed), crops(count, seed + 1)
    there, back = score_pairs(scorer, left, right), score_pairs(scorer, right, left)
    assert there.dtype == np.float32
    assert there.shape == (count,)
    assert there.tobytes() == back.tobytes()


def test_no_crops_have_no_embeddings_but_their_width(make_bundle):
    scorer = scorer_of(make_bundle("embedding"))
    rows = scorer.represent(crops(0))
    assert (rows.shape, rows.dtype) == ((0, scorer.represent(crops(1)).shape[1]), np.float32)


def test_a_pair_network_returns_its_own_scores(make_bundle):
    left, right = crops(5), crops(5, 1)
    expected = -np.abs(left.astype(float) - right).mean(axis=(1, 2, 3)) / 255
    for column in (False, True):
        scorer = scorer_of(make_bundle("pair", pair_network(column)))
        assert np.allclose(score_pairs(scorer, left, right), expected, atol=1e-6)
        assert score_pairs(scorer, left, left).tolist() == [0] * 5


def test_an_embedding_network_scores_by_the_cosine(make_bundle):
    scorer = scorer_of(make_bundle("embedding"))
    left, right = crops(5), crops(5, 1)
    rows = scorer.represent(left)
    assert scorer.cache_key == scorer.network.embedder_sha256
    assert rows.dtype == np.float32
    assert rows.shape == (5, 24)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    scores = score_pairs(scorer, left, right)
    assert np.array_equal(scores, pair_scores(rows, scorer.represent(right)))
    assert np.allclose(scores, (rows * scorer.represent(right)).sum(1), atol=1e-6)
    assert np.allclose(score_pairs(scorer, left, left), 1, atol=1e-6)


@given(st.integers(1, 40), st.integers(1, 300), st.integers(0, 99))
def test_a_pair_of_rows_scores_the_same_in_any_batch(count, width, seed):
    a, b = np.random.default_rng(seed).normal(size=(2, count, width)).astype(np.float32)
    alone = [pair_scores(a[i : i + 1], b[i : i + 1])[0] for i in range(count)]
    assert pair_scores(a, b).tolist() == alone


def test_batches_change_no_more_than_rounding(scorer):
    left, right = crops(300), crops(300, 1)
    whole = score_pairs(scorer, left, right)
    alone = [
        score_pairs(scorer, left[i : i + 1], right[i : i + 1])[0] for i in (0, 1, 127, 128, 299)
    ]
    assert np.allclose(whole[[0, 1, 127, 128, 299]], alone, atol=1e-5)


def test_crops_of_another_shape_or_type_are_refused(scorer):
    for bad in (
        crops(2).astype(np.float32),
        crops(2)[0],
        crops(2)[:, :-1],
        np.zeros((2, CROP_PX, CROP_PX, 1), np.uint8),
    ):
        with pytest.raises(BadData):
            score_pairs(scorer, bad, bad)
        if not scorer.network.embeds:
            for sides in ((bad, crops(2)), (crops(2), bad)):
                with pytest.raises(BadData):
                    scorer.compare(*sides)


def test_networks_that_onnx_runtime_rejects_are_refused(make_bundle, capfd):
    for network in (b"", b"no network", pair_network()[:100]):
        with pytest.raises(BadBundle) as caught:
            scorer_of(make_bundle("pair", network))
        assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def one_node(inputs, outputs, kind="UINT8"):
    from onnx import helper

    nodes = [
        helper.make_node("Cast", [next(iter(inputs))], ["floats"], to=1),
        helper.make_node("ReduceMean", ["floats"], ["means"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Identity", ["means"], [next(iter(outputs))]),
    ]
    return onnx_model(nodes, outputs, inputs, kind=kind).SerializeToString()


FRAME = [CROP_PX, CROP_PX, 3]


def of_pixels(shape, frame=("N", *FRAME)):
    """Return a network whose output is the pixels in another shape."""
    from onnx import helper

    nodes = [
        helper.make_node("Cast", ["image"], ["floats"], to=1),
        helper.make_node("Reshape", ["floats", "shape"], ["embedding"]),
    ]
    weights = {"shape": np.array(shape)}
    outputs, inputs = {"embedding": ["M", *"DE"[: len(shape) - 1]]}, {"image": list(frame)}
    return onnx_model(nodes, outputs, inputs, weights).SerializeToString()


@pytest.mark.parametrize(
    ("network", "problem"),
    [
        (lambda: one_node({"other": ["N", *FRAME]}, {"embedding": ["N"]}), "its inputs are other"),
        (lambda: one_node({"image": [1, *FRAME]}, {"embedding": ["N"]}), "its output embedding is"),
        (lambda: one_node({"image": [2, *FRAME]}, {"embedding": ["N"]}), "its input is"),
        (lambda: one_node({"image": ["N", 8, 8, 3]}, {"embedding": ["N"]}), "its input is"),
        (lambda: one_node({"image": ["N", *FRAME, 1]}, {"embedding": ["N", 1]}), "its input is"),
        (
            lambda: one_node({"image": ["N", *FRAME]}, {"embedding": ["N"]}, "FLOAT"),
            "is tensor\\(float\\); give mean and std",
        ),
        (
            lambda: one_node({"image": ["N", *FRAME]}, {"embedding": ["N"]}, "INT32"),
            "is tensor\\(int32\\), not one of",
        ),
        (lambda: one_node({"image": ["N", *FRAME]}, {"other": ["N"]}), "its outputs are other"),
        (pair_network, "its inputs are left, right"),
        (lambda: of_pixels([-1, 384]), "output has shape \\[4, 384\\]"),
        (lambda: of_pixels([-1, 768]), "not L2-normalised"),
    ],
)
def test_networks_that_do_not_fit_the_manifest_are_refused(make_bundle, network, problem):
    with pytest.raises(BadBundle, match=problem):
        scorer_of(make_bundle("embedding", network())).represent(crops(2))


def test_a_network_may_leave_the_side_of_its_input_open(tmp_path):
    toml = tmp_path / "e.toml"
    (tmp_path / "e.onnx").write_bytes(of_pixels([-1, 768], ("N", "H", "W", 3)))
    toml.write_text(
        'file = "e.onnx"\nsize_px = 16\nlayout = "nhwc"\ncolours = "rgb"\n'
        'align = "none"\ncrop = 1\n'
    )
    scorer = open_scorer(open_model(toml))
    assert scorer.represent(crops(2)).shape == (2, 768)
    with pytest.raises(BadBundle, match="length 0"):
        scorer.represent(0 * crops(1))
    (tmp_path / "e.onnx").write_bytes(pair_network())
    with pytest.raises(BadBundle, match="its inputs are left, right"):
        open_scorer(open_model(toml))


def test_a_network_that_fails_on_a_batch_is_told_with_its_size(make_bundle):
    of_one = of_pixels([1, CROP_PX * CROP_PX * 3])
    with pytest.raises(BadBundle, match="on a batch of 3"):
        scorer_of(make_bundle("embedding", of_one)).represent(crops(3))


def test_what_onnx_runtime_says_of_a_network_is_told(make_bundle):
    with pytest.raises(BadBundle, match=r"refuses it \(.*rotobuf"):
        scorer_of(make_bundle("embedding", b"no network"))


def test_outputs_of_another_shape_are_refused(make_bundle):
    flat = one_node({"image": ["N", *FRAME]}, {"embedding": ["N"]})
    with pytest.raises(BadBundle):
        scorer_of(make_bundle("embedding", flat)).represent(crops(2))
    with pytest.raises(BadBundle):
        scorer_of(make_bundle("embedding", embedding_network(normalised=False))).represent(crops(2))
    with pytest.raises(BadBundle):
        score_pairs(
            scorer_of(make_bundle("pair", pair_network(negative_log=True))), crops(2), crops(2)
        )


def external_tensors(location: str, offset: int = 0) -> bytes:
    from onnx import TensorProto, load_from_string

    model = load_from_string(embedding_network(width=4))
    (tensor,) = model.graph.initializer
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    return model.SerializeToString()


def test_external_tensors_are_never_read(make_bundle, tmp_path, monkeypatch):
    weights = np.ones(CROP_PX * CROP_PX * 3 * 4, np.float32)
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "w.bin", tmp_path / "bundle" / "w.bin"):
        place.parent.mkdir(exist_ok=True)
    absolute = str(tmp_path / "w.bin")
    for location in ("w.bin", absolute, "../w.bin", "*/_ORT_MEM_ADDR_/*"):
        bundle = make_bundle("embedding", external_tensors(location, weights.ctypes.data))
        for place in (tmp_path / "w.bin", bundle.folder / "w.bin"):
            weights.tofile(place)
        with pytest.raises(BadBundle):
            scorer_of(bundle)
        (bundle.folder / "w.bin").unlink()


def test_external_tensors_in_an_unusual_encoding_are_found(make_bundle):
    # Protobuf readers take an overlong length too: 8 as 0x88 0x00.
    network = external_tensors("w.bin").replace(b"\x08location", b"\x88\x00location")
    with pytest.raises(BadBundle):
        scorer_of(make_bundle("embedding", network))
