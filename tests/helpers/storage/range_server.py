"""A local HTTP server with Range that can be told to misbehave."""

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
    ranges: bool = True
    cut_after: list[int] = field(default_factory=list)  # bytes of the next answers
    tells_length: bool = True
    asked: list[tuple[str, str, int]] = field(default_factory=list)  # path, Range, bytes sent
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
        remote, wanted = self.remote, self.headers.get("Range", "")
        name = self.path.strip("/")
        if name not in remote.files:
            remote.asked.append((name, wanted, 0))
            self.answer(404, {}, b"")
            return
        body = remote.files[name]
        headers = {}
        status, start, total = 200, 0, len(body)
        if remote.ranges and wanted:
            start, status = int(wanted.removeprefix("bytes=").rstrip("-")), 206
            if start >= total:
                remote.asked.append((name, wanted, 0))
                self.answer(416, {"Content-Range": f"bytes */{total}"}, b"")
                return
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        if remote.tells_length:
            headers["Content-Length"] = str(total - start)
        sent = body[start:]
        if remote.cut_after:
            sent = sent[: remote.cut_after.pop(0)]
        remote.asked.append((name, wanted, len(sent)))
        self.answer(status, headers, sent)


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
