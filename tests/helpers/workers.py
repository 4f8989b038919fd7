"""Several workers of one training, each a process of its own on this machine."""

import json
import os
import socket
import subprocess
from contextlib import ExitStack

from command_line import command

Worker = subprocess.Popen[str]


def free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def environments(count: int) -> list[dict[str, str]]:
    """Give what a launcher sets for each of so many workers."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(count)]
    return [
        {
            **os.environ,
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": worker}}
            ),
        }
        for worker in range(count)
    ]


def start(words: list[str], count: int = 2, last: list[str] | None = None) -> list[Worker]:
    """Start the same program as so many workers, or for the last one what `last` says."""
    each = [*[words] * (count - 1), last or words]
    pipe = subprocess.PIPE
    return [
        subprocess.Popen(one, env=env, text=True, stdout=pipe, stderr=pipe)
        for one, env in zip(each, environments(count), strict=True)
    ]


def train(*arguments: object, count: int = 2) -> list[Worker]:
    """Start `facepairs train` as so many workers."""
    return start(command("train", *arguments), count)


def finish(workers: list[Worker], seconds: float = 240) -> list[tuple[int, str, str]]:
    """Wait for all; give exit codes and what they printed. Nobody may trace back or hang."""
    try:
        told = [worker.communicate(timeout=seconds) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for _, errors in told:
        assert "Traceback" not in errors, errors
    return [(w.returncode, out, err) for w, (out, err) in zip(workers, told, strict=True)]
