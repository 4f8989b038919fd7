"""What `Verifier` and `Verdict` offer in notebooks."""

import pickle

import msgspec
import numpy as np

from facepairs import Verifier


def test_a_verifier_can_be_pickled(faces):
    photos = sorted(faces.glob("*/*.jpg"))[:1]
    verifier = Verifier.load()
    pickled = pickle.loads(pickle.dumps(verifier))
    assert np.array_equal(pickled.embed(photos), verifier.embed(photos))


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
    assert "&lt;b&gt;people" in msgspec.structs.replace(verdict, point=point)._repr_html_()
