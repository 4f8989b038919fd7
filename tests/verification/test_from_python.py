"""What `Verifier` and `Verdict` offer in notebooks."""

import dataclasses
import pickle
import weakref

import msgspec
import numpy as np

from facepairs import Verifier
from facepairs.verification.verifier import QuickVerifier


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
