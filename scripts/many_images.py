"""How memory grows with images: invented names, and hard links to drawn faces.

    python scripts/many_images.py --place many --names 100000 1000000 10000000
    python scripts/many_images.py --place many --parts "verify --pairs, few images" --json

Every part runs in a process of its own at each of its sizes, and tells the most memory that it
took: in all (peak RSS) and without files (sampled; of that, more is there than is in use where
freed memory has not been given back). What one image more costs is the slope between the two
largest sizes. Results go to PLACE/results.jsonl; parts that are there are not run again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from many_images_parts import BY, COMMANDS, PARTS

SIZES = {
    "names": [100_000, 1_000_000, 10_000_000],
    "files": [20_000, 200_000],
    "missing": [100_000, 1_000_000],
    "rows": [10_000, 100_000, 1_000_000],
}
SAMPLE_S = 0.05


def anonymous_mb(pid: int) -> float:
    """Give what a process holds besides files, in MB; 0 once it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
        return int(text.split("RssAnon:")[1].split()[0]) * 1024 / 1e6
    except (OSError, IndexError):
        return 0.0


def measured(words: list[str], log: Path) -> tuple[dict, list[dict]]:
    """Run a process; give its cost, and the stages that it tells of."""
    started = time.monotonic()
    with open(log, "wb") as said:
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said)
        most = 0.0
        assert child.stdout
        os.set_blocking(child.stdout.fileno(), False)
        told = b""
        while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
            most = max(most, anonymous_mb(child.pid))
            told += child.stdout.read() or b""
            time.sleep(SAMPLE_S)
        told += child.stdout.read() or b""
    child.returncode = os.waitstatus_to_exitcode(ended[1])
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: exit {child.returncode}\n{log.read_text()[-2000:]}")
    cost = {
        "seconds": round(time.monotonic() - started, 1),
        "peak_mb": round(ended[2].ru_maxrss * 1024 / 1e6, 1),
        "anonymous_mb": round(most, 1),
    }
    stages = [json.loads(line) for line in told.splitlines() if line.startswith(b'{"stage"')]
    return cost, stages


def run(part: str, size: int, place: Path) -> list[dict]:
    """Measure a part at one size: a row for the whole, and one a stage."""
    if part in PARTS:
        script = Path(__file__).with_name("many_images_parts.py")
        words = [sys.executable, str(script), part, str(size), str(place)]
    else:
        command = COMMANDS[part]
        words = [sys.executable, "-m", "facepairs", *map(str, command.words(size, place))]
        if command.clear:
            _remove(place / command.clear)
    cost, stages = measured(words, place / "log.txt")
    # a stage begins with its peak forgotten, also by the system
    cost["peak_mb"] = max([cost["peak_mb"], *(stage["peak_mb"] for stage in stages)])
    whole = {"part": part, "size": size, **cost}
    told = [{"part": f"{part}: {row.pop('stage')}", "size": size, **row} for row in stages]
    return [whole, *told]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def growth(rows: list[dict], key: str) -> dict[str, float]:
    """Give by part what one more of what its sizes count costs in bytes, over the two largest."""
    found = {}
    for part in dict.fromkeys(row["part"] for row in rows):
        mine = sorted((r["size"], r[key]) for r in rows if r["part"] == part and key in r)
        if len(mine) > 1:
            (few, small), (many, large) = mine[-2:]
            found[part] = (large - small) * 1e6 / (many - few)
    return found


def table(rows: list[dict]) -> str:
    """Give Markdown: a line a part and size, with what one more costs."""
    lines = [
        "| part | size | seconds | peak MB | without files, or held MB | bytes one more costs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    most = growth(rows, "anonymous_mb") | growth(rows, "held_mb")
    last = {row["part"]: row["size"] for row in sorted(rows, key=lambda row: row["size"])}
    for row in rows:
        apart = row.get("anonymous_mb", row.get("held_mb"))
        slope = most.get(row["part"])
        cost = f"{slope:,.1f}" if slope is not None and last[row["part"]] == row["size"] else ""
        calls = row.get("calls", 1)
        took = f"{row['seconds']:,.1f}"
        if calls > 1:
            took += f" ({1000 * row['seconds'] / calls:.3f} ms each)"
        lines.append(
            f"| {row['part']} | {row['size']:,} | {took} | {row['peak_mb']:,.0f} | {apart:,.0f} "
            f"| {cost} |"
        )
    return "\n".join(lines)


def read(results: Path) -> list[dict]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--place", type=Path, default=Path("many"), help="folder for all of it")
    every = [*PARTS, *COMMANDS]
    parser.add_argument("--parts", nargs="+", choices=every, default=every, metavar="PART",
                        help=f"of: {'; '.join(every)}")  # fmt: skip
    for name, sizes in SIZES.items():
        parser.add_argument(f"--{name}", nargs="+", type=int, default=sizes, metavar="N",
                            help=f"sizes [default: {' '.join(map(str, sizes))}]")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    place = given.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    results = place / "results.jsonl"
    rows = read(results)
    done = {(row["part"], row["size"]) for row in rows}
    for part in given.parts:
        for size in getattr(given, BY[part]):
            if (part, size) in done:
                continue
            print(f"{part}, {size:,}", file=sys.stderr, flush=True)
            new = run(part, size, place)
            with open(results, "a", encoding="utf-8") as handle:
                handle.writelines(json.dumps(row) + "\n" for row in new)
            rows += new
    if given.json:
        print(json.dumps({"rows": rows, "bytes_one_more_costs": growth(rows, "anonymous_mb")
                          | growth(rows, "held_mb")}, indent=1))  # fmt: skip
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
