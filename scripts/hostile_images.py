"""Feed some 2,200 hostile files to every way into the package, and tell what came of them.

    python scripts/hostile_images.py [--seed 0] [--mutants 70] [--place FOLDER]

Each file is compared with a photo, with and without framing, checked as `data check` does, and
decoded as training does where that accepts it; then the commands, `train` too, take the whole
folder, and `train` takes drawn faces alone, to compare with. Exit code 1 where anything but a
verdict or a one-line error came, a file took five seconds of processor time or the process a GB; a
command that fails shows what it said. Files are kept in FOLDER where one is given.
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
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import hostile
import hostile_run
from command_line import command

from facepairs.cli.output import ticker
from facepairs.data.synth.generate import synth_faces

MOST_S, MOST_MB = 5.0, 1024
SAID_LINES = 60  # the last ones of a command that fails
DRAWN_PEOPLE, DRAWN_PHOTOS = 30, 4
TRAIN = """model = "difference"
store = "files"
epochs = 1
pairs_per_epoch = 640
batch_size = 32
calibration_pairs = 400
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


def table(outcomes: list[hostile_run.Outcome]) -> list[str]:
    """Give Markdown: by kind the files, what came of them, and the worst of each cost."""
    by_kind: dict[str, list[hostile_run.Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[Path(outcome.path).parent.name.replace("_", " ")].append(outcome)
    lines = [
        "| kind | files | verdicts | errors | tracebacks, crashes | slowest, CPU s | most MB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, some in (*by_kind.items(), ("all", outcomes)):
        results = [outcome.result for outcome in some]
        verdicts, errors = results.count("verdict"), results.count("error")
        lines.append(
            f"| {kind} | {len({outcome.path for outcome in some}):,} | {verdicts:,} | {errors:,} "
            f"| {len(some) - verdicts - errors} | {max(o.seconds for o in some):.2f} "
            f"| {max(o.megabytes for o in some):.0f} |"
        )
    return lines


def whole_commands(place: Path, photo: Path, paths: list[Path]) -> int:
    """Run the commands on the whole folder; give how many failed or took more than a GB."""
    faces = place / "faces"
    pairs = place / "pairs.csv"
    with open(pairs, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("left", "right"))
        writer.writerows((photo.name, path.relative_to(place)) for path in paths)
    settings = place / "train.toml"
    settings.write_text(TRAIN)
    synth_faces(place / "drawn", DRAWN_PEOPLE, DRAWN_PHOTOS, seed=0)
    commands: tuple[tuple[object, ...], ...] = (
        ("data", "check", faces),
        ("verify", "--pairs", pairs, "--out", place / "scores.csv"),
        ("verify", photo, "--against", faces),
        ("train", faces, "--skip-bad", "--config", settings, "--out", place / "run"),
        ("train", place / "drawn", "--config", settings, "--out", place / "run-drawn"),
    )
    return sum(not runs_well(words) for words in commands)


def runs_well(words: tuple[object, ...]) -> bool:
    """Run a command, tell what it took, and where that is no success or too much, what it said."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as told:
        child = subprocess.Popen(command(*words), stdout=told, stderr=told)
        _, status, used = os.wait4(child.pid, 0)
        code = child.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        said = told.read().decode(errors="replace")
    megabytes, traced = used.ru_maxrss / 1024, "Traceback" in said
    well = not traced and code in (0, 1) and megabytes <= MOST_MB
    print(
        f"facepairs {' '.join(str(word) for word in words[:2])}: exit {code}, "
        f"{time.monotonic() - started:.0f} s, {megabytes:.0f} MB{', a traceback' * traced}"
    )
    if not well:
        print(textwrap.indent("\n".join(said.splitlines()[-SAID_LINES:]), "    "))
    sys.stdout.flush()
    return well


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=70, help="of each of 27 sound files")
    parser.add_argument("--place", type=Path, help="an empty folder to keep the files in")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as temporary:
        place = options.place or Path(temporary)
        paths = write(place, options.seed, options.mutants)
        photo = place / "photo.jpg"
        photo.write_bytes(hostile.encoded(hostile.face(options.seed), "JPEG"))
        outcomes: list[hostile_run.Outcome] = []
        bad = 0
        tick = ticker("files")
        for ways in (hostile_run.WAYS, ("train",)):
            for outcome in hostile_run.run(paths, photo, ways):
                # TensorFlow alone takes half a GB: training is held to time and to decoding.
                limit = MOST_MB if outcome.way != "train" else 2 * MOST_MB
                sound = outcome.result in ("verdict", "error") and outcome.seconds < MOST_S
                if not sound or outcome.megabytes > limit:
                    bad += 1
                    print(f"BAD: {outcome}", flush=True)
                outcomes.append(outcome)
                tick(len(outcomes), 4 * len(paths))
        print(*table([o for o in outcomes if o.way != "train"]), sep="\n")
        trained = [outcome for outcome in outcomes if outcome.way == "train"]
        decoded = sum(outcome.told == "decoded" for outcome in trained)
        print(f"data check accepts {decoded:,} of {len(trained):,}, and training decodes them all")
        bad += whole_commands(place, photo, paths)
    print("clean" if not bad else f"{bad} BAD")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
