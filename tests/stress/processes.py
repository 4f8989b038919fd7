"""Run the command line in processes that can be killed or limited at any moment.

Importing TensorFlow takes seconds, so a process is forked from one that has imported everything;
it runs the command line's own `main`. The parent must have no threads of its own when it forks.
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
    """How a process ended: exit code (negative: the signal), seconds, its standard error."""

    code: int
    seconds: float
    stderr: str

    @property
    def is_one_line_error(self) -> bool:
        """Whether it ended with exactly one error message, on the last line, and no traceback."""
        lines = self.stderr.strip().splitlines()
        errors = sum("facepairs: error: " in line for line in lines)
        return "Traceback" not in self.stderr and errors == 1 and "error: " in lines[-1]


def warm_up() -> None:
    """Import everything that the commands import."""
    from facepairs.cli.shared.output import set_up_tensorflow

    set_up_tensorflow()
    import keras  # noqa: F401
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import sklearn.isotonic  # noqa: F401
    import tf2onnx  # noqa: F401

    import facepairs.cli.app
    import facepairs.evaluation.calibrate
    import facepairs.training.export
    import facepairs.training.fit
    import facepairs.training.inputs.pair_cache
    import facepairs.verification.score_list  # noqa: F401


def command_line(*words: object) -> Work:
    """Return work that runs `facepairs` with these words."""

    def work() -> None:
        from facepairs.cli.app import main

        main([str(word) for word in words])

    return work


def run(
    work: Work,
    scratch: Path,
    stop: tuple[float, signal.Signals] | None = None,
    limits: dict[int, int] | None = None,
) -> Ended:
    """Run `work` in a forked process, with `scratch` for temporary files.

    Args:
        work: What to run.
        scratch: Folder for temporary files; it is made.
        stop: After how many seconds to send the process a signal, and which one.
        limits: Soft limits by resource number. Address space and open files are counted on top of
            what the forked process already has.
    """
    scratch.mkdir(exist_ok=True)
    reader, writer = os.pipe()  # a pipe, because the limits on files must not affect it
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    started = time.monotonic()
    pid = os.fork()
    if not pid:
        os.close(reader)
        _run_in_child(work, scratch, writer, limits or {})
    os.close(writer)
    status = None
    if stop is not None:
        status = _wait_until(pid, started + stop[0])
        if status is None:
            os.kill(pid, stop[1])
    if status is None:
        status = os.waitpid(pid, 0)[1]
    seconds = time.monotonic() - started
    with open(reader, encoding="utf-8", errors="replace") as stderr:
        return Ended(os.waitstatus_to_exitcode(status), seconds, stderr.read())


def _wait_until(pid: int, moment: float) -> int | None:
    while (left := moment - time.monotonic()) > 0:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(min(left, 0.005))
    return None


def _run_in_child(work: Work, scratch: Path, stderr: int, limits: dict[int, int]) -> None:
    code = CRASHED
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(stderr, 2)
        os.environ["TMPDIR"] = str(scratch)
        tempfile.tempdir = None
        for number, value in limits.items():
            limit = value + _already_used(number)
            resource.setrlimit(number, (limit, resource.getrlimit(number)[1]))
        work()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else CRASHED
    except BaseException:  # noqa: BLE001 - it is printed, and this process ends here
        import traceback

        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            import atexit
            import sys

            atexit._run_exitfuncs()  # `os._exit` would skip them
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _already_used(number: int) -> int:
    """Return how much of a resource this process uses before its work begins."""
    if number == resource.RLIMIT_AS:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    if number == resource.RLIMIT_NOFILE:
        free = os.dup(0)  # the lowest free number
        os.close(free)
        return free
    return 0
