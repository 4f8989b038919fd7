"""A real `facepairs serve`, in a process of its own."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from processes.command_line import command


class LiveServer(NamedTuple):
    """A server that answers requests, and its process."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def live_server(*options: object, port: int = 0) -> Iterator[LiveServer]:
    """Start a server, wait until it answers, and stop it at the end; it logs nothing."""
    words = command("serve", "--port", port, "--json", "--quiet", *options)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield LiveServer(json.loads(process.stdout.readline())["url"], process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        process.stdout.close()
