"""Feeds files to every entry point of the package, in a child process with time and memory limits.

A file's cost is its processor time and the peak memory of the process. When a file kills the child
by a signal, this is reported as a crash of that file, and another child continues.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

HANG_S = 60  # busy or waiting; far above the limit of the tests, which report slowness
ADDRESS_SPACE = 6 << 30  # bytes that a file may make the process take


class Outcome(NamedTuple):
    """The result of one file at one entry point: `verdict`, `error`, `traceback` or `crash`.

    `message` is the result in words, `seconds` processor time, `megabytes` peak memory (VmHWM).
    """

    path: str
    way: str
    result: str
    message: str
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
    """Return the entry points by name; each one returns its result for a file in words."""
    from facepairs.photos.crop import CropSpec, load_crop
    from facepairs.photos.photo_record import PhotoRecord
    from facepairs.photos.photo_table import plan_crops, unusable_photos
    from facepairs.photos.reader import PhotoReader
    from facepairs.verification.verifier import Verifier

    verifier = Verifier.load(threads=1)
    spec = CropSpec(250, 112)

    def verify(path: Path) -> str:
        verdict = verifier.verify(good, path)
        assert 0 <= (verdict.probability or 0) <= 1
        return str(verdict.same)

    def crop(path: Path) -> str:
        assert load_crop(path, spec).shape == (112, 112, 3)
        return "cropped"

    def inspect(path: Path) -> PhotoRecord:
        (record,) = PhotoReader(aligned=True).records([os.fspath(path)])
        assert bool(record.problem) == bool(record.reason)
        return record

    def train(path: Path) -> str:
        """Decode a file that `data check` accepts, as training does."""
        record = inspect(path)
        if record.problem:
            return "not accepted"
        from facepairs.pipeline.decode import Cropper

        for align in ("landmarks", "none"):
            if not unusable_photos([record], align):
                crops = Cropper(plan_crops([record], spec, align))
                assert crops.crop(path.read_bytes(), 0, str(path)).shape == (112, 112, 3)
        return "decoded"

    return {
        "verify": verify,
        "crop": crop,
        "inspect": lambda path: inspect(path).problem or "good",
        "train": train,
    }


WAYS = ("verify", "crop", "inspect")


def _try(way: Callable[[Path], str], path: Path) -> tuple[str, str]:
    from facepairs.errors import FacepairsError

    try:
        return "verdict", way(path)
    except FacepairsError as error:
        message = str(error)
        return ("error" if len(message.splitlines()) == 1 else "traceback"), message
    except Exception as error:  # noqa: BLE001 - the tests look for these
        return "traceback", f"{type(error).__name__}: {error}"


def _peak_mb() -> float:
    """Return the peak memory since the last call, in MB, and reset it."""
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(peak.split()[1]) / 1024


def _child(good: str, *names: str) -> None:
    todo = json.load(sys.stdin)
    warnings.simplefilter("error")  # no warning may reach the user
    ways = {name: way for name, way in _ways(good).items() if name in names}
    for way in ways.values():
        way(Path(good))  # loading the package is not a file's cost
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # kills, even inside C code
    _peak_mb()
    for at, path in enumerate(todo):
        print(at, flush=True)
        for name, way in ways.items():
            signal.alarm(HANG_S)
            started = time.process_time()
            result, message = _try(way, Path(path))
            seconds = time.process_time() - started
            print(json.dumps([name, result, message, round(seconds, 3), _peak_mb()]), flush=True)


if __name__ == "__main__":
    _child(*sys.argv[1:])
