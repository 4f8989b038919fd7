"""Kill commands at random moments; check that every output is complete or absent.

    make kill KILLS=100
    PYTHONPATH=tests:tests/helpers python -m stress.kill --out kill [--jobs train verify]

A killed command is run again to its end; its result must be that of a run that was never killed.
Rows are JSON lines in OUT/kill.jsonl; `--resume` continues after those that are there.
"""

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facepairs.support.atomic import is_temporary
from stress.jobs import KILLED, Job, open_job, prepare
from stress.processes import append_row, read_rows, run, warm_up

LATE, LATEST = 0.85, 1.1  # shares of an undisturbed run: about where the output is put in place


def count_litter(place: Path, scratch: Path) -> int:
    """Count files that should not be left: temporary files and locks, anything in `scratch`."""
    names = [path.name for path in place.rglob("*")]
    beside = sum(is_temporary(name) or name.endswith((".lock", ".part")) for name in names)
    return beside + sum(1 for _ in scratch.iterdir())


def run_undisturbed(job: Job, folder: Path) -> tuple[float, object]:
    """Return the seconds of an undisturbed run, and what it makes."""
    place = folder / "undisturbed"
    seconds = []
    for _ in range(2):  # the first run reads files that are in no cache yet
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        job.set_up(place)
        ended = run(job.start(place), folder / "tmp")
        if ended.code or not job.is_complete(place):
            raise SystemExit(f"{job.name}: failed undisturbed: {ended.stderr}")
        seconds.append(ended.seconds)
    return min(seconds), job.content(place)


def kill_once(
    job: Job, folder: Path, expected: object, moment_s: float, keep_old: bool
) -> dict[str, Any]:
    """Kill a run, look at what it left, run the command to its end, and look again."""
    place, scratch = folder / "work", folder / "tmp"
    place.mkdir(exist_ok=True)
    keep_old = keep_old and job.replaces
    if not keep_old:
        job.clear(place)
        job.set_up(place)
    row: dict[str, Any] = {"job": job.name, "moment_s": round(moment_s, 3), "old": keep_old}
    killed = run(job.start(place), scratch, moment_s)
    row["killed"] = killed.code == -9
    if not row["killed"] and killed.code:
        return row | {"problem": f"exit {killed.code}: {killed.stderr[-800:]}"}
    try:
        row["left"] = "complete" if job.is_complete(place) else "absent"
    except Exception as error:  # noqa: BLE001 - any error of reading the output is the finding
        return row | {"problem": f"half-written: {error!r}"}
    row["litter_after_kill"] = count_litter(place, scratch)
    # `train` refuses to start a finished run again, so the second run may have other options.
    ended = run(job.again(place), scratch)
    row["resumed"] = ended.code == 0 and job.is_complete(place)
    row["litter"] = count_litter(place, scratch)
    if not row["resumed"]:
        return row | {"same": False, "problem": f"rerun: exit {ended.code}: {ended.stderr[-800:]}"}
    result = job.content(place)
    row["same"] = result == expected
    if not row["same"]:
        row["differs"] = [str(result), str(expected)]
    return row


def moments(name: str, kills: int, seed: int) -> Iterator[float]:
    """Yield moments without end, as shares of an undisturbed run.

    Two of three are spread over the whole run, one in each of `kills` slices, in random order; the
    third is near the end, where the output is put in place.
    """
    chance = random.Random(f"{seed} {name}")
    while True:
        slices = chance.sample(range(kills), kills)
        for number in range(kills):
            if number % 3 == 2:
                yield LATE + chance.random() * (LATEST - LATE)
            else:
                yield (slices[number] + chance.random()) / kills


def kill(job: Job, base: Path, kills: int, seed: int, results: Path) -> None:
    """Kill a job until `kills` processes were killed in time: a run may end before its moment."""
    folder = base / job.name
    folder.mkdir(exist_ok=True)
    before = [row for row in read_rows(results) if row["job"] == job.name]
    done = sum(row["killed"] for row in before)
    if done >= kills:
        return
    seconds, expected = run_undisturbed(job, folder)
    print(f"{job.name}: {seconds:.2f} s undisturbed", flush=True)
    for number, share in enumerate(moments(job.name, kills, seed)):
        if number < len(before):
            continue
        if done >= kills or number >= 3 * kills:
            break
        row = kill_once(job, folder, expected, share * seconds, number % 2 == 1)
        append_row(results, row)
        done += row["killed"]
        if "problem" in row:
            print(json.dumps(row), flush=True)
            shutil.rmtree(folder / "work", ignore_errors=True)
    print(f"{job.name}: {done} kills", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a line per job."""
    lines = ["| job | kills | complete | absent | neither | resumed | same result | litter |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for name in KILLED:
        killed = [row for row in rows if row["job"] == name and row.get("killed")]
        if not killed:
            continue
        left = [row.get("left") for row in killed]
        cells = [len(killed), left.count("complete"), left.count("absent")]
        cells.append(cells[0] - cells[1] - cells[2])
        cells += [sum(bool(row.get(key)) for row in killed) for key in ("resumed", "same")]
        cells.append(max(row.get("litter", 0) for row in killed))
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("kill"), help="folder for everything")
    parser.add_argument("--kills", type=int, default=100, help="of each job")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="continue an earlier run in OUT")
    parser.add_argument("--jobs", nargs="+", choices=KILLED, default=KILLED)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    base = options.out.resolve()
    os.environ["FACEPAIRS_CACHE"] = str(base / "photos.sqlite")  # not the user's own
    results = base / "kill.jsonl"
    if not options.resume:
        results.unlink(missing_ok=True)
    prepare(base)
    warm_up()
    started = time.monotonic()
    for name in options.jobs:
        with open_job(name, base) as job:
            kill(job, base, options.kills, options.seed, results)
    rows = read_rows(results)
    print(f"{table(rows)}\n{time.monotonic() - started:.0f} s")
    failed = sum("problem" in row or (row["killed"] and not row["same"]) for row in rows)
    print("all complete or absent, all results the same" if not failed else f"{failed} FAILED")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
