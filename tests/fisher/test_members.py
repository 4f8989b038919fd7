"""A Fisher network of several members: each sees its part, and the embeddings are concatenated."""

import keras
import numpy as np
import onnx
import onnxruntime
import pytest
from test_fisher import faces, photos

from facepairs.fisher.descriptors import LENGTH, View, describe, positions, project_views
from facepairs.fisher.embedding import BASE, SLOPE, CohortDimension
from facepairs.fisher.network import FisherNetwork
from facepairs.fisher.tower import (
    BACKBONE,
    COHORT,
    PROJECTOR,
    FisherBackbone,
    fisher_tower,
)
from facepairs.models.export.convert import export_onnx, round_weights

MEMBERS = ("eyes", "lines")


def as_fitted(cohort=0):
    made = FisherNetwork(96, 96, members=MEMBERS, cohort=cohort)
    for layer in made.head.get_layer(BACKBONE).members:  # as close as in a fitted mixture
        layer.deviations.assign(np.full(layer.deviations.shape, 0.2, np.float32))
        layer.means.assign(layer.means * 4)
    return made


def single_member(network, number):
    """Return a tower of one member with the weights of one of several."""
    tower = fisher_tower(96, MEMBERS[number : number + 1], cohort=0)
    fishers = network.head.get_layer(BACKBONE).members
    tower.get_layer(BACKBONE).members[0].set_weights(fishers[number].get_weights())
    weights = network.head.get_layer(PROJECTOR).get_weights()
    tower.get_layer(PROJECTOR).set_weights(weights[2 * number : 2 * number + 2])
    return tower


def test_a_member_sees_its_region_enlarged():
    images = faces(2, 96)
    part = keras.ops.image.resize(images[:, 6:66, 18:78], (96, 96), "bilinear")
    expected = np.asarray(describe(part))
    backbone = fisher_tower(96, ["eyes"], cohort=0).get_layer(BACKBONE)
    (member,) = backbone.members
    np.testing.assert_allclose(describe(images, member.view), expected, rtol=0, atol=1e-4)
    assert expected.shape[1] == len(positions(96))
    (again,) = FisherBackbone.from_config(backbone.get_config()).members
    assert again.view == member.view


def test_lines_are_second_derivatives():
    rows, columns = np.mgrid[:96, :96].astype(np.float32) / 96
    ramp, waves = rows, 0.5 + 0.4 * np.sin(40 * columns)
    images = np.repeat(np.stack([ramp, waves])[..., None], 3, axis=3)
    edges, lines = (np.asarray(describe(images, View(lines=x))) for x in (False, True))
    middle = len(edges[0]) // 4
    assert np.abs(edges[0, middle]).max() > 0.2
    assert np.abs(lines[0, middle]).max() < 0.01  # a ramp has no lines
    by_orientation = lines[1, middle].reshape(-1, 8).sum(axis=0)
    assert set(np.argsort(by_orientation)[-2:]) == {2, 6}  # bright and dark ones, upright


def test_views_of_both_kinds_are_computed_together_as_one_by_one():
    images = faces(2, 96)
    views = [View(), View(60, 6, lines=True), View(66)]
    random = np.random.default_rng(0)
    bases = [random.normal(size=(LENGTH, 4)).astype(np.float32) for _ in views]
    together = np.asarray(project_views(images, views, bases))
    for number, (view, basis) in enumerate(zip(views, bases, strict=True)):
        alone = np.asarray(describe(images, view)) @ basis
        np.testing.assert_allclose(together[:, number], alone.transpose(0, 2, 1), atol=1e-4)


def test_an_embedding_is_the_concatenation_of_the_members():
    network, images = as_fitted(), faces(4, 96)
    got = np.asarray(network.head(images)).reshape(4, len(MEMBERS), 128)
    assert np.linalg.norm(got, axis=(1, 2)) == pytest.approx(1, abs=1e-5)
    for number in range(len(MEMBERS)):
        expected = np.asarray(single_member(network, number)(images))
        own = got[:, number] / np.linalg.norm(got[:, number], axis=1, keepdims=True)
        assert own == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_rounded_projections_and_a_cohort_survive_export_at_every_optimisation_level():
    rounded = as_fitted(cohort=20)
    rows = unit(np.random.default_rng(3).normal(size=(60, 128 * len(MEMBERS))))
    rounded.head.get_layer(COHORT).set_cohort(rows[:20], rows)
    round_weights(rounded.head)
    numbers = sum(kernel.size for kernel in rounded.head.get_layer(PROJECTOR).kernels)
    model = rounded.inference_model()
    data, difference = export_onnx(model, "embedding")
    assert difference < 1e-4
    stored = onnx.load_model_from_string(data).graph.initializer
    halves = [tensor for tensor in stored if tensor.data_type == onnx.TensorProto.FLOAT16]
    assert len(halves) >= len(MEMBERS)
    assert 2 * numbers < len(data) < 2.2 * numbers
    expected = np.asarray(model(photos(3)))
    assert expected.shape == (3, 128 * len(MEMBERS) + 1)
    levels = onnxruntime.GraphOptimizationLevel
    for level in (
        levels.ORT_DISABLE_ALL,
        levels.ORT_ENABLE_BASIC,
        levels.ORT_ENABLE_EXTENDED,
        levels.ORT_ENABLE_ALL,
    ):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        (rows,) = session.run(None, {"image": photos(3)})
        assert rows == pytest.approx(expected, abs=1e-4)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def random_rows(count, seed):
    return unit(np.random.default_rng(seed).normal(size=(count, 24)) + 0.5)


def test_an_empty_cohort_changes_no_order():
    rows = random_rows(6, 0)
    got = np.asarray(CohortDimension(8)(rows))
    assert got.shape == (6, 25)
    assert got @ got.T == pytest.approx((rows @ rows.T + BASE**2) / (1 + BASE**2), abs=1e-6)


def test_the_cohort_lowers_scores_of_faces_that_resemble_many():
    rows, cohort = random_rows(200, 1), random_rows(8, 2)
    layer = CohortDimension(8)
    layer.build(rows.shape)
    layer.set_cohort(cohort, rows)
    got = np.asarray(layer(rows))
    near = (rows @ cohort.T).mean(axis=1)  # fewer members than it compares with: all count
    expected = unit(np.column_stack([rows, BASE - SLOPE * (near - near.mean())]))
    assert got == pytest.approx(expected, abs=1e-5)
    left, right = np.triu_indices(200, 1)
    plain, normalised = ((x[left] * x[right]).sum(axis=1) for x in (rows, got))
    wanted = plain - (near[left] + near[right]) / 2
    assert np.corrcoef(wanted, normalised)[0, 1] > np.corrcoef(wanted, plain)[0, 1] + 0.02
    assert np.corrcoef(wanted, normalised)[0, 1] > 0.95
