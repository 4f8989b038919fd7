"""A local HTTP server that can be told to misbehave."""

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Remote:
    """What the server has, how it behaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: list[int] = field(default_factory=list)  # bytes of the next answers
    statuses: list[int] = field(default_factory=list)  # of the next answers
    tells_length: bool = True
    knows_ranges: bool = True
    lengths: list[int] = field(default_factory=list)  # that the next answers claim
    ranges: list[str | None] = field(default_factory=list)  # that were asked for
    asked: list[str] = field(default_factory=list)  # paths
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    remote: Remote

    def log_message(self, format: str, *args: object) -> None:
        pass

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        remote = self.remote
        name = self.path.strip("/")
        status = remote.statuses.pop(0) if remote.statuses else 200
        remote.asked.append(name)
        if status != 200 or name not in remote.files:
            self.answer(404 if status == 200 else status, {}, b"")
            return
        body = remote.files[name]
        headers, wanted = {}, self.headers["Range"]
        remote.ranges.append(wanted)
        if wanted and remote.knows_ranges:
            first, size = int(wanted.removeprefix("bytes=").rstrip("-")), len(body)
            if first >= size:
                self.answer(416, {"Content-Range": f"bytes */{size}"}, b"")
                return
            status, body = 206, body[first:]
            headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
        if remote.tells_length:
            length = remote.lengths.pop(0) if remote.lengths else len(body)
            headers["Content-Length"] = str(length)
        if remote.cut_after:
            body = body[: remote.cut_after.pop(0)]
        self.answer(status, headers, body)


@contextlib.contextmanager
def serving() -> Iterator[Remote]:
    what = Remote()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"remote": what}))
    what.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield what
    server.shutdown()
    server.server_close()
    thread.join()
