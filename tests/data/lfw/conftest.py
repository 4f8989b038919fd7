"""A server of files that can be told to misbehave."""

from collections.abc import Iterator

import pytest
from storage.range_server import Remote, serving


@pytest.fixture
def remote() -> Iterator[Remote]:
    with serving() as server:
        yield server
