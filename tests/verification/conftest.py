"""A verifier of either kind, for the tests of all that one does with it."""

import pytest
from tiny.bundles import tiny_bundle

from facepairs.verification.verifier import Verifier


@pytest.fixture(scope="module", params=["pair", "embedding"])
def verifier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    bundle = tiny_bundle(tmp_path_factory.mktemp("b") / "bundle", request.param)
    return Verifier.load(bundle.folder, threads=1)
