"""`FaceEmbedder` in scikit-learn's pipelines and under its checks."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks

import facepairs


def test_a_pipeline_names_people(faces):
    photos = np.array(sorted(map(str, faces.glob("*/*.jpg")))[:24])
    names = np.array([photo.split("/")[-2] for photo in photos])
    pipeline = make_pipeline(facepairs.FaceEmbedder(), KNeighborsClassifier(1))
    pipeline.fit(photos[::2], names[::2])
    assert (pipeline.predict(photos[1::2]) == names[1::2]).mean() > 0.5


def test_it_embeds_as_the_verifier_and_can_be_cloned_and_pickled(faces):
    photos = sorted(faces.glob("*/*.jpg"))[:3]
    with pytest.raises(NotFittedError):
        facepairs.FaceEmbedder().transform(photos)
    embedder = clone(facepairs.FaceEmbedder(workers=1)).fit()
    rows = embedder.transform(photos)
    assert np.array_equal(rows, facepairs.Verifier.load().embed(photos))
    column = np.array([[str(photo)] for photo in photos], object)
    assert np.array_equal(pickle.loads(pickle.dumps(embedder)).transform(column), rows)
    assert len(embedder.get_feature_names_out()) == rows.shape[1]
    frame = embedder.set_output(transform="pandas").transform(photos)
    assert frame.shape == rows.shape


@pytest.mark.parametrize(
    "check",
    [
        checks.check_do_not_raise_errors_in_init_or_set_params,
        checks.check_estimator_cloneable,
        checks.check_estimator_repr,
        checks.check_estimator_tags_renamed,
        checks.check_get_params_invariance,
        checks.check_mixin_order,
        checks.check_no_attributes_set_in_init,
        checks.check_parameters_default_constructible,
        checks.check_set_params,
        checks.check_valid_tag_types,
    ],
)
def test_it_passes_the_checks_of_scikit_learn_that_pass_no_numbers(check):
    """`check_estimator` itself only knows estimators of numbers; these are its other checks."""
    check("FaceEmbedder", facepairs.FaceEmbedder())
