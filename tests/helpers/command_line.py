"""The real command line, in a process of its own."""

import subprocess
import sys


def command(*arguments: object) -> list[str]:
    """Give what starts `facepairs` with these arguments."""
    return [sys.executable, "-m", "facepairs", *map(str, arguments)]


def facepairs(
    *arguments: object, check: int | None = None, **options: object
) -> "subprocess.CompletedProcess[str]":
    """Run it, see to it that nothing is traced back, and compare the exit code where it is told."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, **options
    )
    assert "Traceback" not in done.stderr, done.stderr
    if check is not None:
        assert done.returncode == check, (done.stdout, done.stderr)
    return done
