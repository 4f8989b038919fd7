"""Fuzz the readers of untrusted text files, guided by coverage (atheris, libFuzzer).

    make fuzz SECONDS=30
    PYTHONPATH=tests python -m stress.fuzz scores --seconds 60
    PYTHONPATH=tests python -m stress.fuzz all      # one process per target, one core each

A reader must accept the bytes or raise a FacepairsError with a message of one line (the manifest's
checks may raise ValueError, as documented). Anything else ends the run with exit code 1, and the
bytes are written to ./crash-*. The same seed tries the same inputs.
"""

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["facepairs", "csv", "tomllib", "json"]):
    from facepairs.bundles.embedder import Embedder
    from facepairs.bundles.error_profile import parse_measured
    from facepairs.bundles.manifest import Manifest, parse_json_object, parse_manifest
    from facepairs.data.index import FaceIndex
    from facepairs.data.lfw.lists import read_pairs, read_people
    from facepairs.data.pairs import read_pairs_csv
    from facepairs.errors import FacepairsError
    from facepairs.evaluation.scores import read_scores
    from facepairs.verification.score_list import read_list

INDEX = FaceIndex.from_listing(
    [f"{who}/{who}_{n:04d}.jpg" for who, count in (("Ann", 3), ("Bé", 2)) for n in range(1, count)]
)
GOLDEN = Path(__file__).parents[1] / "bundles" / "golden" / "pair"
TOML = b"""file = "a.onnx"
size_px = 112
layout = "nchw"
colours = "bgr"
mean = [127.5, 127.5, 127.5]
std = 127.5
crop = 0.512
name = "x"
output = "y"
align = "none"
threshold = 0.28
calibration = { scale = 12.0, offset = -3.4 }
"""


def people(path: Path) -> None:
    for fold in read_people(path, INDEX):
        assert len(fold)


def pairs(path: Path) -> None:
    listed, _ = read_pairs(path, INDEX)
    assert (listed.left != listed.right).all()


def pairs_csv(path: Path) -> None:
    assert len(read_pairs_csv(path, INDEX))


def listed_pairs(path: Path) -> None:
    listed = read_list(path)
    assert len(listed.left) == len(listed.right) > 0


def manifest(path: Path) -> None:
    fields = parse_json_object(path.read_bytes(), path)
    try:
        parsed = parse_manifest(fields)
    except ValueError:
        return
    for name, value in vars(Manifest).items():
        if isinstance(value, property):
            getattr(parsed, name)


def measured(path: Path) -> None:
    found = parse_measured(path.read_bytes(), path)
    assert found.calibration.probability(found.threshold) >= 0
    assert math.isfinite(found.threshold)


def scores(path: Path) -> None:
    table = read_scores(path)
    assert len(table)
    assert all(map(math.isfinite, table.score.tolist()))


def embedder(path: Path) -> None:
    model = Embedder.open(path)
    assert model.network_path.parent == path.parent
    assert model.framing.side_px(250, 250) >= 1


Target = Callable[[Path], None]
TARGETS: dict[str, tuple[Target, list[bytes]]] = {
    "people": (people, [b"2\nAnn\t2\nB\xc3\xa9\t1\n", b"2\n1\nAnn\t2\n1\nB\xc3\xa9\t1\n"]),
    "pairs": (pairs, [b"1\nAnn\t1\t2\nAnn\t1\tB\xc3\xa9\t1\n", b"1\t1\nAnn\t1\t2\nAnn\t1\tB\t1\n"]),
    "pairs_csv": (
        pairs_csv,
        [b"left,right,genuine,fold\nAnn/Ann_0001.jpg,./Ann/Ann_0002.jpg,same,3\n"],
    ),
    "listed_pairs": (
        listed_pairs,
        [b'\xef\xbb\xbfleft,right,genuine,fold,x\n"a,1",b,yes,3,\n\nc,d,no,,\r\n'],
    ),
    "manifest": (manifest, [(GOLDEN / "manifest.json").read_bytes()]),
    "measured": (measured, [(GOLDEN / "measured.json").read_bytes()]),
    "scores": (
        scores,
        [b"left,right,genuine,fold,score,error\na,b,1,1,0.5,\nc,d,0,,-1e3,\ne,f,1,2,,bad\n"],
    ),
    "embedder": (embedder, [TOML]),
}


def one_input(target: Target, path: Path) -> Callable[[bytes], None]:
    """Return what libFuzzer calls: it writes the bytes to a file and has the target read it."""

    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            target(path)
        except FacepairsError as error:
            if len(str(error).splitlines()) != 1:
                raise ValueError(f"not exactly one line: {str(error)!r}") from None

    return run


def fuzz(name: str, seconds: int, seed: int) -> None:
    """Fuzz one target in this process, which libFuzzer ends."""
    target, seeds = TARGETS[name]
    place = Path(tempfile.mkdtemp(prefix="facepairs-fuzz-", dir=_memory()))
    corpus = place / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds):
        (corpus / str(number)).write_bytes(data)
    words = {word for data in seeds for word in re.findall(rb"[\w.]+", data) if len(word) > 1}
    (place / "words").write_text("".join(_quoted(word) for word in sorted(words | MARKS)))
    arguments = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-seed={seed}"]
    # five seconds for one input count as a hang, a GB of memory as a leak
    arguments += ["-timeout=5", "-rss_limit_mb=1024", "-max_len=4096", f"-dict={place / 'words'}"]
    atheris.Setup(arguments, one_input(target, place / "input.toml"))
    atheris.Fuzz()


MARKS = {*(b"\xef\xbb\xbf", b"\xff", b"\r\n", b"\0", b'"', b"\xc2\x85"),
         *(b"1e999", b"nan", b"-0", b"1_0")}  # fmt: skip


def _quoted(word: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def every(seconds: int, seed: int) -> int:
    """Fuzz all targets, one process each, and print their results; return 1 if one failed."""

    def one(name: str) -> tuple[str, int, str, float]:
        started = time.monotonic()
        options = (f"--seconds={seconds}", f"--seed={seed}")
        command = [sys.executable, "-m", "stress.fuzz", name, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return name, done.returncode, done.stdout + done.stderr, time.monotonic() - started

    failed = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for name, code, output, took in pool.map(one, TARGETS):
            runs = re.findall(r"Done (\d+) runs", output) or ["0"]
            result = "clean" if code == 0 else "FAILED"
            print(f"{name:<12} {took:5.0f} s {int(runs[-1]):10,} inputs  {result}", flush=True)
            if code:
                failed = 1
                print(output[-3000:], file=sys.stderr)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seconds", type=int, default=30, help="for each target (default: 30)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.target == "all":
        return every(options.seconds, options.seed)
    fuzz(options.target, options.seconds, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
