"""Feed some 2,200 hostile files to every way into the package, and report the outcomes.

    make hostile
    PYTHONPATH=tests:tests/helpers python -m stress.hostile_images [--mutants 70] [--place FOLDER]

Each file is compared with a photo, cropped whole, inspected as `data check` does, and decoded as
training does if that accepts it. Then the commands, `train` too, take the whole folder. Exit code 1
if anything but a verdict or a one-line error came, or if a file took five seconds of processor time
or the process a GB. A command that fails shows its output.
"""

import argparse
import csv
import os
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pandas as pd
from drawn.photos import encoded
from hostile import images as hostile
from hostile import run as hostile_run
from processes.command_line import command

from facepairs.cli.shared.output import showing_on_stderr
from facepairs.support import console

MAX_S, MAX_MB = 5.0, 1024
SHOWN_LINES = 60  # the last ones of a command that fails
TRAIN = """model = "difference"
epochs = 1
pairs_per_epoch = 640
batch_size = 32
calibration_share = 0.3
test_share = 0.1
"""


def write(place: Path, seed: int, mutants: int) -> list[Path]:
    """Write the corpus as `place/faces/KIND/NUMBER-NAME.jpg`."""
    paths = []
    for number, file in enumerate(hostile.hostile_files(seed, mutants)):
        name = re.sub(r"[^\w-]", "_", file.name)
        path = place / "faces" / file.kind.replace(" ", "_") / f"{number:04}-{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        paths.append(path)
    return paths


def whole_commands(place: Path, photo: Path, paths: list[Path]) -> int:
    """Run the commands on the whole folder; return how many failed or took more than a GB."""
    faces = place / "faces"
    pairs = place / "pairs.csv"
    with open(pairs, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("left", "right"))
        writer.writerows((photo.name, path.relative_to(place)) for path in paths)
    settings = place / "train.toml"
    settings.write_text(TRAIN)
    commands: tuple[tuple[object, ...], ...] = (
        ("data", "check", faces),
        ("score", pairs, "--out", place / "scores.csv"),
        ("search", photo, faces),
        ("train", faces, "--skip-bad", "--config", settings, "--out", place / "run"),
    )
    return sum(not runs_well(words) for words in commands)


def runs_well(words: tuple[object, ...]) -> bool:
    """Run a command and print its costs, and its output if it fails or takes too much."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as handle:
        child = subprocess.Popen(command(*words), stdout=handle, stderr=handle)
        _, status, used = os.wait4(child.pid, 0)
        code = child.returncode = os.waitstatus_to_exitcode(status)
        handle.seek(0)
        output = handle.read().decode(errors="replace")
    megabytes, traced = used.ru_maxrss / 1024, "Traceback" in output
    # Few of these faces can be told apart, so a training may end in an error of one line.
    most = 2 * MAX_MB if words[0] == "train" else MAX_MB  # TensorFlow alone takes half a GB
    well = not traced and code in (0, 1, 2) and megabytes <= most
    print(
        f"facepairs {' '.join(str(word) for word in words[:2])}: exit {code}, "
        f"{time.monotonic() - started:.0f} s, {megabytes:.0f} MB{', a traceback' * traced}"
    )
    if not well:
        print(textwrap.indent("\n".join(output.splitlines()[-SHOWN_LINES:]), "    "))
    sys.stdout.flush()
    return well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=70, help="of each of 34 sound files")
    parser.add_argument("--place", type=Path, help="an empty folder to keep the files in")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as temporary:
        place = options.place or Path(temporary)
        paths = write(place, options.seed, options.mutants)
        photo = place / "photo.jpg"
        photo.write_bytes(encoded(hostile.face(options.seed), "JPEG"))
        outcomes: list[hostile_run.Outcome] = []
        bad = 0
        tick = console.progress("files")
        for ways in (hostile_run.WAYS, ("train",)):
            for outcome in hostile_run.run(paths, photo, ways):
                # TensorFlow alone takes half a GB.
                limit = MAX_MB if outcome.way != "train" else 2 * MAX_MB
                fine = outcome.result in ("verdict", "error") and outcome.seconds < MAX_S
                if not fine or outcome.megabytes > limit:
                    bad += 1
                    print(f"BAD: {outcome}", flush=True)
                outcomes.append(outcome)
                tick(len(outcomes), 4 * len(paths))
        table = pd.DataFrame(outcomes)
        table["kind"] = table["path"].map(lambda path: Path(path).parent.name)
        trained = table["way"] == "train"
        fed = table[~trained]
        print(pd.crosstab(fed["kind"], fed["result"], margins=True).to_string())
        print(fed.groupby("kind")[["seconds", "megabytes"]].max().to_string())
        decoded = (table["message"][trained] == "decoded").sum()
        print(f"data check accepts {decoded:,} of {trained.sum():,}, and training decodes them all")
        bad += whole_commands(place, photo, paths)
    print("clean" if not bad else f"{bad} BAD")
    return 1 if bad else 0


if __name__ == "__main__":
    with showing_on_stderr():
        sys.exit(main())
