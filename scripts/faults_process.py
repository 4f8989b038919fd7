"""Run the command line in processes that can be killed or squeezed at any moment.

TensorFlow takes seconds to import, so a process is forked from one that has the imports done; what
runs in it is the command line's own `main`. No thread of ours may run when it is forked.
"""

import contextlib
import fcntl
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], None]  # ends with SystemExit, as `main` does
CRASHED = 70
PIPE_BYTES = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code (negative: the signal), seconds, what it said on stderr."""

    code: int
    seconds: float
    stderr: str

    @property
    def one_line(self) -> bool:
        """Whether the last line tells an error and nothing was traced back."""
        lines = self.stderr.strip().splitlines()
        told = sum("facepairs: error: " in line for line in lines)
        return "Traceback" not in self.stderr and told == 1 and "error: " in lines[-1]


def warm_up() -> None:
    """Import all that the commands import."""
    from facepairs.cli.quiet import quiet_tensorflow

    quiet_tensorflow()
    import keras  # noqa: F401
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import sklearn.isotonic  # noqa: F401
    import tf2onnx  # noqa: F401

    import facepairs.cli.main
    import facepairs.data.lfw.fetch
    import facepairs.training.cache
    import facepairs.training.export.export
    import facepairs.training.recalibrate
    import facepairs.training.train
    import facepairs.verification.batch  # noqa: F401


def command_line(*words: object) -> Work:
    """Give what runs `facepairs` with these words."""

    def work() -> None:
        from facepairs.cli.main import main

        main([str(word) for word in words])

    return work


def run(
    work: Work,
    scratch: Path,
    kill_after_s: float | None = None,
    limits: dict[int, int] | None = None,
) -> Ended:
    """Run `work` in a process of its own, temporary files in `scratch`; perhaps kill it.

    `limits` are soft limits by resource number; address space and files count from what the forked
    process has already.
    """
    scratch.mkdir(exist_ok=True)
    reader, writer = os.pipe()  # not a file: the limits are not to touch it
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    started = time.monotonic()
    pid = os.fork()
    if not pid:
        os.close(reader)
        _inside(work, scratch, writer, limits or {})
    os.close(writer)
    status = None
    if kill_after_s is not None:
        status = _wait_until(pid, started + kill_after_s)
        if status is None:
            os.kill(pid, signal.SIGKILL)
    if status is None:
        status = os.waitpid(pid, 0)[1]
    seconds = time.monotonic() - started
    with open(reader, encoding="utf-8", errors="replace") as told:
        return Ended(os.waitstatus_to_exitcode(status), seconds, told.read())


def _wait_until(pid: int, moment: float) -> int | None:
    while (left := moment - time.monotonic()) > 0:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(min(left, 0.005))
    return None


def _inside(work: Work, scratch: Path, told: int, limits: dict[int, int]) -> None:
    code = CRASHED
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(told, 2)
        os.environ["TMPDIR"] = str(scratch)
        tempfile.tempdir = None
        for number, value in limits.items():
            extra = _has_already(number)
            resource.setrlimit(number, (value + extra, resource.getrlimit(number)[1]))
        work()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else CRASHED
    except BaseException:  # noqa: BLE001 - whatever it was, it is told and this process ends here
        import traceback

        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            import atexit
            import sys

            atexit._run_exitfuncs()  # `os._exit` would pass them over
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _has_already(number: int) -> int:
    """Give what this process takes of a resource before it has begun."""
    if number == resource.RLIMIT_AS:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    if number == resource.RLIMIT_NOFILE:
        free = os.dup(0)  # the lowest number that is free
        os.close(free)
        return free
    return 0
