"""Stop commands at random moments; check that every output is complete or absent.

    make kill KILLS=100
    PYTHONPATH=tests:tests/helpers python -m stress.kill --out kill [--jobs train score]

Two of three are killed, the third gets Ctrl-C. A stopped command is run again to its end; its
result must be that of a run that was never stopped.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from facepairs.support.atomic import is_temporary
from stress.jobs import KILLED, Job, prepare
from stress.processes import run, warm_up

LATE, LATEST = 0.85, 1.1  # shares of an undisturbed run: about where the output is put in place
STOPPED = {signal.SIGKILL: -9, signal.SIGINT: 130}  # exit codes


def count_litter(place: Path) -> int:
    """Count files that should not be left beside an output: temporary files and locks."""
    names = [path.name for path in place.rglob("*")]
    return sum(is_temporary(name) or name.endswith((".lock", ".part")) for name in names)


def run_undisturbed(job: Job, folder: Path) -> tuple[float, object]:
    """Return the seconds of an undisturbed run, and what it makes."""
    place = folder / "undisturbed"
    seconds = []
    for _ in range(2):  # the first run reads files that are in no cache yet
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        ended = run(job.work(place), folder / "tmp")
        if ended.code or not job.is_complete(place):
            raise SystemExit(f"{job.name}: failed undisturbed: {ended.stderr}")
        seconds.append(ended.seconds)
    return min(seconds), job.content(place)


def stop_once(
    job: Job, folder: Path, expected: object, moment_s: float, how: signal.Signals, keep_old: bool
) -> dict[str, Any]:
    """Stop a run, look at what it left, run the command to its end, and look again."""
    place, scratch = folder / "work", folder / "tmp"
    place.mkdir(exist_ok=True)
    if not (keep_old and job.replaces):
        job.clear(place)
    row: dict[str, Any] = {"job": job.name, "how": how.name, "moment_s": round(moment_s, 3)}
    stopped = run(job.work(place), scratch, (moment_s, how))
    row["stopped"] = stopped.code == STOPPED[how]
    if not row["stopped"] and stopped.code:
        return row | {"problem": f"exit {stopped.code}: {stopped.stderr[-800:]}"}
    try:
        row["left"] = "complete" if job.is_complete(place) else "absent"
    except Exception as error:  # noqa: BLE001 - any error of reading the output is the finding
        return row | {"problem": f"half-written: {error!r}"}
    ended = run(job.work(place), scratch)
    row["litter"] = count_litter(place)
    if ended.code or not job.is_complete(place):
        return row | {"problem": f"rerun: exit {ended.code}: {ended.stderr[-800:]}"}
    if (result := job.content(place)) != expected:
        return row | {"problem": f"not the same: {result}, not {expected}"}
    return row


def kill(job: Job, base: Path, kills: int, seed: int) -> list[dict[str, Any]]:
    """Stop a job until `kills` runs were stopped in time: a run may end before its moment."""
    folder = base / job.name
    folder.mkdir(exist_ok=True)
    chance = random.Random(f"{seed} {job.name}")
    seconds, expected = run_undisturbed(job, folder)
    print(f"{job.name}: {seconds:.2f} s undisturbed", flush=True)
    rows: list[dict[str, Any]] = []
    while sum(row["stopped"] for row in rows) < kills and len(rows) < 3 * kills:
        number = len(rows)
        share = chance.random()
        if number % 3 == 2:  # near the end, where the output is put in place
            share = LATE + share * (LATEST - LATE)
        how = signal.SIGINT if number % 3 == 1 else signal.SIGKILL
        rows.append(stop_once(job, folder, expected, share * seconds, how, number % 2 == 1))
        if "problem" in rows[-1]:
            print(json.dumps(rows[-1]), flush=True)
            shutil.rmtree(folder / "work", ignore_errors=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("kill"), help="folder for everything")
    parser.add_argument("--kills", type=int, default=100, help="of each job")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", nargs="+", choices=KILLED, default=KILLED)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    base = options.out.resolve()
    os.environ["FACEPAIRS_PHOTO_CACHE"] = str(base / "photos.sqlite")  # not the user's own
    prepare(base)
    warm_up()
    started = time.monotonic()
    rows = []
    for name in options.jobs:
        rows += kill(KILLED[name](base), base, options.kills, options.seed)
    table = pd.DataFrame(rows, columns=("job", "stopped", "left", "litter", "problem"))
    stops = table[table["stopped"].astype(bool)]
    print(pd.crosstab(stops["job"], stops["left"].fillna("problem"), margins=True))
    print(stops.groupby("job")["litter"].max())
    print(f"{time.monotonic() - started:.0f} s")
    failed = table["problem"].notna().sum()
    print("all complete or absent, all results the same" if not failed else f"{failed} FAILED")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
