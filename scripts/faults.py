"""Kill and squeeze the command line, and see that every output is whole or absent.

    python scripts/faults.py kill --out faults --kills 100
    FACEPAIRS_OWN_MOUNTS=1 unshare -rm python scripts/faults.py squeeze --out faults

Results are JSON lines in the folder; `--resume` goes on behind those that are there. Two commands
with different `--out` may run side by side.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from faults_job import Job
from faults_jobs import KILLED, SQUEEZED, job_of, prepare
from faults_process import run, warm_up

from facepairs.support.atomic import is_temporary

LATE, LATEST = 0.85, 1.1


def litter(place: Path, scratch: Path) -> int:
    """Count what should not be there: temporaries and locks, anything in `scratch`."""
    names = [path.name for path in place.rglob("*")]
    beside = sum(is_temporary(name) or name.endswith((".lock", ".fetched")) for name in names)
    return beside + sum(1 for _ in scratch.iterdir())


def clear(place: Path, job: Job) -> None:
    """Remove the outputs, and nothing else."""
    for pattern in job.outputs:
        for path in place.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def undisturbed(job: Job, folder: Path) -> tuple[float, object]:
    """Give the seconds of an undisturbed run, and what it makes."""
    place = folder / "undisturbed"
    seconds = []
    for _ in range(2):  # the first reads files that are in no cache yet
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        job.set_up(place)
        ended = run(job.start(place), folder / "tmp")
        if ended.code or not job.state(place):
            raise SystemExit(f"{job.name}: failed undisturbed: {ended.stderr}")
        seconds.append(ended.seconds)
    return min(seconds), job.content(place)


def one_kill(job: Job, folder: Path, wanted: object, moment_s: float, keep: bool) -> dict:
    """Kill a run, look at what it left, let it run to its end, and look again."""
    place, scratch = folder / "work", folder / "tmp"
    place.mkdir(exist_ok=True)
    if not (keep and job.replaces):
        clear(place, job)
        job.set_up(place)
    row: dict = {"job": job.name, "moment_s": round(moment_s, 3), "old": keep and job.replaces}
    killed = run(job.start(place), scratch, moment_s)
    row["killed"] = killed.code == -9
    if not row["killed"] and killed.code:
        row["problem"] = f"exit {killed.code}: {killed.stderr[-800:]}"
        return row
    try:
        row["left"] = "whole" if job.state(place) else "absent"
    except Exception as error:  # noqa: BLE001 - any error of reading it is the finding
        row["problem"] = f"half-written: {error!r}"
        return row
    row["litter_after_kill"] = litter(place, scratch)
    # `train` refuses a run that is finished; going on with it is what is asked for
    ended = run(job.again(place), scratch)
    row["resumed"] = ended.code == 0 and job.state(place)
    got = job.content(place) if row["resumed"] else None
    row["same"] = got == wanted
    if row["resumed"] and not row["same"]:
        row["differs"] = [str(got), str(wanted)]
    row["litter"] = litter(place, scratch)
    if not row["resumed"]:
        row["problem"] = f"rerun: exit {ended.code}: {ended.stderr[-800:]}"
    return row


def moments(name: str, kills: int, seed: int) -> Iterator[float]:
    """Yield moments without end, as shares of an undisturbed run.

    Of every three, two are anywhere, one in each of as many slices as there are kills, in a mixed
    order; the third is about the end, where the output is put into its place.
    """
    chance = random.Random(f"{seed} {name}")
    while True:
        slices = chance.sample(range(kills), kills)
        for number in range(kills):
            late = number % 3 == 2
            yield (
                LATE + chance.random() * (LATEST - LATE)
                if late
                else (slices[number] + chance.random()) / kills
            )


def kill(job: Job, base: Path, kills: int, seed: int, results: Path) -> None:
    """Kill a job until `kills` in all were in time: a run may end before its moment comes."""
    folder = base / job.name
    folder.mkdir(exist_ok=True)
    before = [row for row in read(results) if row["job"] == job.name]
    done = sum(row["killed"] for row in before)
    if done >= kills:
        return
    seconds, wanted = undisturbed(job, folder)
    started, first = time.monotonic(), done
    print(f"{job.name}: {seconds:.2f} s undisturbed", flush=True)
    for number, share in enumerate(moments(job.name, kills, seed)):
        if number < len(before):
            continue
        if done >= kills or number >= 3 * kills:
            break
        row = one_kill(job, folder, wanted, share * seconds, number % 2 == 1)
        with open(results, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")
        done += row["killed"]
        if "problem" in row:
            print(json.dumps(row), flush=True)
            shutil.rmtree(folder / "work", ignore_errors=True)
    took = (time.monotonic() - started) / max(1, done - first)
    print(f"{job.name}: {done} kills, {took:.1f} s each", flush=True)


def read(results: Path) -> list[dict]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines() if line.endswith("}")]


def table(rows: list[dict]) -> str:
    lines = ["| job | kills | whole | absent | neither | resumed | same result | litter |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for name in KILLED:
        mine = [row for row in rows if row["job"] == name and row.get("killed")]
        if not mine:
            continue
        whole, absent = (sum(r.get("left") == word for r in mine) for word in ("whole", "absent"))
        neither = len(mine) - whole - absent
        resumed, same = (sum(bool(r.get(word)) for r in mine) for word in ("resumed", "same"))
        most = max(row.get("litter", 0) for row in mine)
        lines.append(f"| {name} | {len(mine)} | {whole} | {absent} | {neither} | {resumed} | "
                     f"{same} | {most} |")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("kill", "squeeze", "table"))
    parser.add_argument("--out", type=Path, default=Path("faults"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--jobs", nargs="+", choices=dict.fromkeys(KILLED + SQUEEZED))
    given = parser.parse_args()
    jobs = given.jobs or (SQUEEZED if given.what == "squeeze" else KILLED)
    given.out.mkdir(parents=True, exist_ok=True)
    base = given.out.resolve()
    results = base / f"{given.what}.jsonl"
    if given.what == "table":
        print(table(read(base / "kill.jsonl")))
        return
    if not given.resume:
        results.unlink(missing_ok=True)
    prepare(base)
    warm_up()
    if given.what == "squeeze":
        from faults_squeeze import squeeze

        sys.exit(squeeze(base, jobs, results))
    started = time.monotonic()
    for name in jobs:
        with job_of(name, base) as job:
            kill(job, base, given.kills, given.seed, results)
    print(f"{table(read(results))}\n{time.monotonic() - started:.0f} s")
    sys.exit(any("problem" in row for row in read(results)))


if __name__ == "__main__":
    main()
