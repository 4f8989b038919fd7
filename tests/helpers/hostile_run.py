"""Feeds files to every way into the package, in a child process that a clock and a limit guard.

A file's cost is the processor time it takes and the most memory that the process holds meanwhile.
A child that a file kills, by whatever signal, is told as that file's crash, and another goes on.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HANG_S = 60  # busy or waiting; much more than is allowed, so that slowness is told as such
ADDRESS_SPACE = 6 << 30  # an end to what a file can take, should it come to that


class Outcome(NamedTuple):
    """What came of one file on one way: `verdict`, `error`, `traceback` or `crash`, and in words.

    `seconds` are of processor time, `megabytes` the most that the process held (VmHWM).
    """

    path: str
    way: str
    result: str
    told: str
    seconds: float
    megabytes: float


def run(paths: Iterable[Path], good: Path, ways: tuple[str, ...] = ()) -> Iterator[Outcome]:
    """Feed files to the package; `good` is the photo that they are compared with."""
    todo = [os.fspath(path) for path in paths]
    while todo:
        with subprocess.Popen(
            [sys.executable, __file__, good, *(ways or WAYS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(todo))
            child.stdin.close()
            at = 0
            for line in child.stdout:
                outcome = json.loads(line)
                if isinstance(outcome, int):
                    at = outcome
                else:
                    yield Outcome(todo[at], *outcome)
        if child.returncode == 0:
            return
        yield Outcome(todo[at], "any", "crash", f"exit {child.returncode}", HANG_S, 0.0)
        todo = todo[at + 1 :]


def _ways(good: str) -> dict[str, Callable[[Path], str]]:
    """Give each way by its name: a function that says what it makes of a file."""
    from facepairs.images.check import examine
    from facepairs.verification.verifier import Verifier

    verifier = Verifier.load(threads=1, quick=True)

    def verify(path: Path, framing: bool) -> str:
        verdict = verifier.verify(good, path, framing=framing)
        assert 0 <= (verdict.probability or 0) <= 1
        return str(verdict.same)

    def check(path: Path) -> str:
        look = examine(path)
        assert bool(look.problem) == bool(look.reason)
        return look.problem or "sound"

    def train(path: Path) -> str:
        """Decode as training does what `data check` accepts."""
        if examine(path).problem:
            return "not accepted"
        from facepairs.pipeline.decode import crop_decoder

        decoders.setdefault("one", crop_decoder(250, 112))(path.read_bytes())
        return "decoded"

    decoders: dict[str, Any] = {}
    return {
        "framed": lambda path: verify(path, True),
        "as it came": lambda path: verify(path, False),
        "data check": check,
        "train": train,
    }


WAYS = ("framed", "as it came", "data check")


def _try(way: Callable[[Path], str], path: Path) -> tuple[str, str]:
    from facepairs.errors import FacepairsError

    try:
        told = way(path)
    except FacepairsError as error:
        told = str(error)
        return ("error" if len(told.splitlines()) == 1 else "traceback"), told
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        return "traceback", f"{type(error).__name__}: {error}"
    return "verdict", told


def _peak_mb() -> float:
    """Give the most memory held since the last call, in MB, and forget it."""
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(peak.split()[1]) / 1024


class _Watchdog(threading.Thread):
    """Ends the process over a file that waits for ever; a machine that sleeps counts as a tick.

    A file that computes for ever, perhaps without letting other threads run, is ended by SIGPROF.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ticks = 0

    def run(self) -> None:
        while self.ticks < HANG_S:
            time.sleep(1)
            self.ticks += 1
        os._exit(3)

    def restart(self) -> None:
        self.ticks = 0
        signal.setitimer(signal.ITIMER_PROF, HANG_S)


def _child(good: str, *names: str) -> None:
    todo = json.load(sys.stdin)
    warnings.simplefilter("error")  # none may reach the user
    ways = {name: way for name, way in _ways(good).items() if name in names}
    for way in ways.values():
        way(Path(good))  # what is loaded once is no file's cost
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # kills, also in the midst of C
    watchdog = _Watchdog()
    watchdog.start()
    _peak_mb()
    for at, path in enumerate(todo):
        print(at, flush=True)
        for name, way in ways.items():
            watchdog.restart()
            started = time.process_time()
            result, told = _try(way, Path(path))
            seconds = time.process_time() - started
            print(json.dumps([name, result, told, round(seconds, 3), _peak_mb()]), flush=True)


if __name__ == "__main__":
    _child(*sys.argv[1:])
