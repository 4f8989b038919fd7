"""The job that downloads, from a local server slow enough to be interrupted."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from storage.range_server import Handler, serving

from stress.jobs import Broken, Job, sha256
from stress.processes import Work

SERVED_BYTES, PAUSE_S = 64 << 10, 0.004  # the server sends so much, then pauses


def _answer_slowly(self: Handler, status: int, headers: dict[str, str], body: bytes) -> None:
    self.send_response(status)
    for name, value in headers.items():
        self.send_header(name, value)
    self.end_headers()
    with contextlib.suppress(OSError):  # the client was killed
        for start in range(0, len(body), SERVED_BYTES):
            self.wfile.write(body[start : start + SERVED_BYTES])
            time.sleep(PAUSE_S)


@contextlib.contextmanager
def serving_slowly(files: dict[str, Path]) -> Iterator[str]:
    """Serve files by name from a process of its own, slowly; yield the server's address."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        Handler.answer = _answer_slowly  # type: ignore[method-assign]
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


@contextlib.contextmanager
def fetch_job(base: Path) -> Iterator[Job]:
    """What `data fetch` does, with a local mirror in place of the published files."""
    from facepairs.cli.shared.output import print_error
    from facepairs.data.lfw.fetch import RemoteFile, content_sha256, fetch_lfw
    from facepairs.errors import FacepairsError

    archive, pairs = base / "faces.zip", base / "pairs.csv"
    expected = content_sha256(base / "many")
    with serving_slowly({"pairs.txt": pairs, "faces.zip": archive}) as url:
        mirror = RemoteFile("faces.zip", f"{url}/faces.zip", expected)
        lists = (RemoteFile("pairs.txt", f"{url}/pairs.txt", sha256(pairs)),)

        def work(place: Path) -> Work:
            def fetch() -> None:
                try:
                    fetch_lfw(place / "lfw", lists=lists, images=mirror)
                except FacepairsError as error:
                    print_error(error.kind, str(error), False)
                    raise SystemExit(2) from None

            return fetch

        def is_complete(place: Path) -> bool:
            fetched, folder = place / "lfw/pairs.txt", place / "lfw/faces"
            if fetched.exists() and sha256(fetched) != lists[0].sha256:
                raise Broken(f"{fetched} differs from the published file")
            if folder.exists() and content_sha256(folder) != expected:
                raise Broken(f"{folder} differs from the published images")
            return folder.exists()

        yield Job(
            "fetch", ("lfw",), work, is_complete,
            lambda place: content_sha256(place / "lfw/faces"),
        )  # fmt: skip
