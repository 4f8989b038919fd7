"""Start several workers of one training, each in a process of its own on this machine."""

import json
import os
import socket
import subprocess
from contextlib import ExitStack

from processes.command_line import command

Worker = subprocess.Popen[str]


def free_ports(count: int) -> list[int]:
    """Return free ports of this machine."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def environments(count: int) -> list[dict[str, str]]:
    """Return the environment that a launcher sets for each of `count` workers."""
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
    """Start a program as `count` workers; the last one runs `last` if it is given."""
    commands = [*[words] * (count - 1), last or words]
    pipe = subprocess.PIPE
    return [
        subprocess.Popen(command_words, env=env, text=True, stdout=pipe, stderr=pipe)
        for command_words, env in zip(commands, environments(count), strict=True)
    ]


def train(*arguments: object, count: int = 2) -> list[Worker]:
    """Start `facepairs train` as `count` workers."""
    return start(command("train", *arguments), count)


def finish(workers: list[Worker]) -> list[tuple[int, str, str]]:
    """Wait for all workers; return exit code, stdout and stderr of each. Fail on a traceback."""
    try:
        outputs = [worker.communicate() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for _, errors in outputs:
        assert "Traceback" not in errors, errors
    return [(w.returncode, out, err) for w, (out, err) in zip(workers, outputs, strict=True)]
