"""Run commands on full disks, in read-only folders, with little memory and few open files.

    FACEPAIRS_OWN_MOUNTS=1 PYTHONPATH=tests:tests/helpers unshare -rm python -m stress.squeeze

Each must succeed, or fail with one line and exit code 2, and leave its output complete or absent.
Disks are small `tmpfs` mounts and read-only folders are bind mounts, both in a mount namespace of
this process alone (`unshare -rm`).
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from stress.jobs import SQUEEZED, Job, prepare
from stress.processes import Ended, run, warm_up

DISK_SHARES = (0.0, 0.3, 0.7, 0.95)  # of what an undisturbed run writes
MEMORY_MB = (1, 16, 128)  # more than the process has when it begins
OPEN_FILES = (0, 1, 2, 4, 8, 16)  # likewise
FILE_KB = (0, 4, 64)
LIMITS = (
    *(("memory", resource.RLIMIT_AS, mb, mb << 20) for mb in MEMORY_MB),
    *(("files", resource.RLIMIT_NOFILE, count, count) for count in OPEN_FILES),
    *(("file size", resource.RLIMIT_FSIZE, kb, kb << 10) for kb in FILE_KB),
)


def squeeze(name: str, base: Path) -> list[dict[str, Any]]:
    """Run one job under every limit; return a row for each."""
    rows = []
    job, folder = SQUEEZED[name](base), base / "squeeze" / name
    shutil.rmtree(folder, ignore_errors=True)
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir(parents=True)
    ended = run(job.work(undisturbed), folder / "tmp")
    if ended.code:
        raise SystemExit(f"{name}: failed undisturbed: {ended.stderr}")
    size = sum(path.stat().st_size for path in undisturbed.rglob("*") if path.is_file())
    for way, value, ended, left in _runs(job, folder, size):
        row = {"job": name, "way": way, "value": value, "code": ended.code, "left": left}
        if left != "half-written" and ended.code == 0:
            row["result"] = "done"
        elif left != "half-written" and ended.code == 2 and ended.is_one_line_error:
            row["result"] = "one line, exit 2"
        else:
            row["result"] = "BAD"
            print(json.dumps(row | {"stderr": ended.stderr[-600:]}), flush=True)
        rows.append(row)
    return rows


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def _runs(job: Job, folder: Path, size: int) -> Iterator[tuple[str, float, Ended, str]]:
    """Yield (kind of limit, its value, how the run ended, what it left)."""
    place, scratch = folder / "place", folder / "tmp"
    for share in DISK_SHARES:
        place.mkdir()
        _mount("-t", "tmpfs", "-o", f"size={max(4096, int(share * size))}", "tmpfs", place)
        ended = run(job.work(place), scratch)
        yield "disk", share, ended, _left(job, place)
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()
    place.mkdir()
    _mount("--bind", place, place)
    _mount("-o", "remount,ro,bind", place)
    yield "read-only", 0, run(job.work(place), scratch), _left(job, place)
    subprocess.run(["umount", str(place)], check=True)
    for way, number, value, limit in LIMITS:
        shutil.rmtree(place)
        place.mkdir()
        ended = run(job.work(place), scratch, limits={number: limit})
        yield way, value, ended, _left(job, place)


def _left(job: Job, place: Path) -> str:
    try:
        return "complete" if job.is_complete(place) else "absent"
    except Exception:  # noqa: BLE001 - any error of reading the output is the finding
        return "half-written"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("squeeze"), help="folder for everything")
    parser.add_argument("--jobs", nargs="+", choices=SQUEEZED, default=SQUEEZED)
    options = parser.parse_args()
    if os.environ.get("FACEPAIRS_OWN_MOUNTS") != "1":  # or the mounts would be everybody's
        raise SystemExit("start it with: FACEPAIRS_OWN_MOUNTS=1 unshare -rm python -m ...")
    options.out.mkdir(parents=True, exist_ok=True)
    base = options.out.resolve()
    os.environ["FACEPAIRS_PHOTO_CACHE"] = str(base / "photos.sqlite")  # not the user's own
    prepare(base)
    warm_up()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    rows = pd.DataFrame([row for name in options.jobs for row in squeeze(name, base)])
    print(pd.crosstab(rows["job"], rows["result"]))
    return int((rows["result"] == "BAD").any())


if __name__ == "__main__":
    sys.exit(main())
