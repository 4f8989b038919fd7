"""What `Verifier` and `Verdict` offer in notebooks: pairs in a data frame, faces, HTML."""

import dataclasses
import pickle
import weakref

import msgspec
import numpy as np
import pandas
import pytest

from facepairs import BadConfig, NoFace, Verifier
from facepairs.verification.quick import QuickVerifier


def test_a_data_frame_of_pairs_gets_scores_verdicts_and_errors(faces, tmp_path):
    photos = sorted(faces.glob("*/*.jpg"))
    (tmp_path / "text.jpg").write_text("no photo")
    pairs = pandas.DataFrame(
        {"left": [photos[0], photos[0], tmp_path / "text.jpg"], "right": photos[1:4]}
    )
    with Verifier.load() as verifier:
        scored = verifier.score_frame(pairs)
        with pytest.raises(BadConfig, match="pairs is a list without the columns left and right"):
            verifier.score_frame([(photos[0], photos[1])])
        single = verifier.verify(photos[0], photos[1])
        assert len(verifier.embed(pairs.right)) == 3
    assert list(scored) == ["left", "right", "score", "probability", "same", "error"]
    assert scored.score[0] == pytest.approx(single.score, abs=1e-5)
    assert scored.probability[0] == pytest.approx(single.probability, abs=1e-3)
    assert scored.same.tolist()[:2] == [bool(single), scored.score[1] >= single.threshold]
    assert "text.jpg" in scored.error[2]
    assert scored.same.isna().tolist() == scored.score.isna().tolist() == [False, False, True]


def test_a_verifier_opens_its_network_again_after_its_block(faces):
    photos = sorted(faces.glob("*/*.jpg"))[:1]
    pickled = pickle.loads(pickle.dumps(Verifier.load()))
    for verifier in (Verifier.load(), QuickVerifier.load(), pickled):
        with verifier:
            before = verifier.embed(photos)
            network = weakref.ref(verifier.scorer)
        assert network() is None
        assert np.array_equal(verifier.embed(photos), before)


def test_a_verdict_shows_both_faces_and_escapes_names(faces):
    photos = sorted(faces.glob("*/*.jpg"))
    verifier = Verifier.load()
    assert repr(verifier) == "Verifier('default', kind='embedding')"
    verdict = verifier.verify(photos[0], photos[1])
    page = verdict._repr_html_()
    assert page.count('src="data:image/png;base64,') == 2
    assert f"<td>verdict</td><td>{verdict.words}</td>" in page
    errors = msgspec.structs.replace(verdict.point.errors, measured_on="<b>people</b>")
    point = msgspec.structs.replace(verdict.point, errors=errors)
    assert "&lt;b&gt;people" in dataclasses.replace(verdict, point=point)._repr_html_()


def test_detect_returns_every_face_or_raises(faces):
    verifier, photo = Verifier.load(), next(faces.glob("*/*.jpg"))
    assert [face.faces for face in verifier.detect(photo)] == [1]
    with pytest.raises(NoFace):
        verifier.detect(np.zeros((200, 200, 3), np.uint8))
