"""A local server of files, slow enough to be interrupted, in a process of its own."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from range_server import Handler, serving

CHUNK_BYTES = 64 << 10
PAUSE_S = 0.004


def _answer(self: Handler, status: int, headers: dict[str, str], body: bytes) -> None:
    self.send_response(status)
    for name, value in headers.items():
        self.send_header(name, value)
    self.end_headers()
    with contextlib.suppress(OSError):  # whoever asked was killed
        for at in range(0, len(body), CHUNK_BYTES):
            self.wfile.write(body[at : at + CHUNK_BYTES])
            time.sleep(PAUSE_S)


@contextlib.contextmanager
def serving_slowly(files: dict[str, Path]) -> Iterator[str]:
    """Serve files by name; give the address. The process that serves ends with the block."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        Handler.answer = _answer  # type: ignore[method-assign]
        with serving() as remote:
            remote.files = {name: path.read_bytes() for name, path in files.items()}
            os.write(writer, remote.url.encode())
            while True:
                signal.pause()
    url = os.read(reader, 100).decode()
    os.close(reader)
    os.close(writer)
    try:
        yield url
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
