"""Run the real command line, in a process of its own or in this one."""

import io
import os
import subprocess
import sys
import threading
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock


class Result(NamedTuple):
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


# Runs the commands that its first argument lists as JSON, and prints what they ended with.
SEVERAL = """
import contextlib, io, json, sys
from facepairs.cli.app import main
done = []
for words in json.loads(sys.argv[1]):
    code, out, err = None, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try: main(words)
        except SystemExit as ended: code = ended.code
    done.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(done))
"""


def command(*arguments: object) -> list[str]:
    """Return the words that start `facepairs` with these arguments."""
    return [sys.executable, "-m", "facepairs", *map(str, arguments)]


def facepairs(
    *arguments: object, check: int | None = None, **options: object
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process; fail on a traceback, or on another exit code than `check`."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, **options
    )
    assert "Traceback" not in done.stderr, done.stderr
    if check is not None:
        assert done.returncode == check, (done.stdout, done.stderr)
    return done


def in_process(*arguments: object, check: int | None = None) -> Result:
    """Run a command in this process, which saves the start of Python and of TensorFlow."""
    from facepairs.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    words = [str(argument) for argument in arguments]
    code: object = None
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
        mock.patch.object(sys, "argv", ["facepairs", *words]),
        mock.patch.dict(os.environ),  # --quiet and --verbose set variables
    ):
        before = threading.enumerate()
        try:
            main(words)
        except SystemExit as ended:
            code = ended.code
        # As a process does when it ends. Threads in C crash where the environment changes.
        for thread in threading.enumerate():
            if thread not in before and not thread.daemon:
                thread.join(60)
    assert isinstance(code, int)
    done = Result(code, out.getvalue(), err.getvalue())
    if check is not None:
        assert done.returncode == check, (done.stdout, done.stderr)
    return done
