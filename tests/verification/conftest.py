from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tiny_bundles import tiny_bundle

from facepairs.verification.bundle import Bundle


@pytest.fixture
def make_bundle(tmp_path: Path) -> Callable[..., Bundle]:
    """Give a function that writes a tiny bundle: (kind, network, **changes to the manifest)."""
    return partial(tiny_bundle, tmp_path / "bundle")
