"""Full disks, read-only folders, little memory, few files: one line and exit code 2, or done.

Disks are small `tmpfs` mounts, read-only folders are bind mounts, both in a namespace of this
process's own (`unshare -rm`), so that nothing outside sees them.
"""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from faults_job import Job
from faults_jobs import job_of
from faults_process import Ended, run

DISK_SHARES = (0.0, 0.3, 0.7, 0.95)  # of what an undisturbed run leaves there
MEMORY_MB = (1, 16, 128)  # more than the process has when it begins
FILES = (0, 1, 2, 4, 8, 16)  # so, too
FILE_KB = (0, 4, 64)


def squeeze(base: Path, names: list[str], results: Path) -> int:
    """Squeeze each job that has no rows in every way; print a table; give 1 where one failed."""
    _own_mounts()
    done = {row["job"] for row in _read(results)}
    for name in names:
        if name in done:
            continue
        told: list[str] = []
        with job_of(name, base) as job:
            folder = base / "squeeze" / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            whole = folder / "whole"
            whole.mkdir()
            ended = run(job.start(whole), folder / "tmp")
            if ended.code:
                raise SystemExit(f"{name}: failed undisturbed: {ended.stderr}")
            size = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
            for way, value, ended, left in _ways(job, folder, size):
                row = {"job": name, "way": way, "value": value, "code": ended.code, "left": left}
                row["good"] = left != "half-written" and _told(ended)
                if not row["good"]:
                    row["stderr"] = ended.stderr[-600:]
                    print(json.dumps(row), flush=True)
                told.append(json.dumps(row) + "\n")
        with open(results, "a", encoding="utf-8") as handle:  # all rows of a job, or none
            handle.write("".join(told))
    rows = _read(results)
    print(_table(rows))
    return int(not all(row["good"] for row in rows))


def _read(results: Path) -> list[dict]:
    text = results.read_text() if results.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _told(ended: Ended) -> bool:
    return ended.code == 0 or (ended.code == 2 and ended.one_line)


def _own_mounts() -> None:
    """Leave where this process would mount for everybody."""
    if os.environ.get("FACEPAIRS_OWN_MOUNTS") != "1":
        raise SystemExit("start it with: FACEPAIRS_OWN_MOUNTS=1 unshare -rm python")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def _ways(job: Job, folder: Path, size: int) -> Iterator[tuple[str, float, Ended, str]]:
    place, scratch = folder / "place", folder / "tmp"
    for share in DISK_SHARES:
        place.mkdir()
        _mount("-t", "tmpfs", "-o", f"size={max(4096, int(share * size))}", "tmpfs", place)
        ended = run(job.start(place), scratch)
        yield "disk", share, ended, _state(job, place)
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()
    place.mkdir()
    _mount("--bind", place, place)
    _mount("-o", "remount,ro,bind", place)
    yield "read-only", 0, run(job.start(place), scratch), _state(job, place)
    subprocess.run(["umount", str(place)], check=True)
    limits = [("memory", resource.RLIMIT_AS, mb, mb << 20) for mb in MEMORY_MB]
    limits += [("files", resource.RLIMIT_NOFILE, n, n) for n in FILES]
    limits += [("file size", resource.RLIMIT_FSIZE, kb, kb << 10) for kb in FILE_KB]
    for way, number, value, limit in limits:
        shutil.rmtree(place)
        place.mkdir()
        ended = run(job.start(place), scratch, limits={number: limit})
        yield way, value, ended, _state(job, place)


def _state(job: Job, place: Path) -> str:
    try:
        return "whole" if job.state(place) else "absent"
    except Exception:  # noqa: BLE001 - any error of reading it is the finding
        return "half-written"


def _table(rows: list[dict]) -> str:
    lines = ["| job | squeezes | done | one line, exit 2 | other | half-written |",
             "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for name in dict.fromkeys(row["job"] for row in rows):
        mine = [row for row in rows if row["job"] == name]
        done = sum(row["code"] == 0 for row in mine)
        told = sum(row["code"] == 2 and row["good"] for row in mine)
        half = sum(row["left"] == "half-written" for row in mine)
        lines.append(f"| {name} | {len(mine)} | {done} | {told} | {len(mine) - done - told} | "
                     f"{half} |")  # fmt: skip
    return "\n".join(lines)
