"""Run the README's commands, and put their output and the picture of the report into it.

    python scripts/release/readme.py WORK

WORK is a folder for photos and for what `facepairs demo` writes, whose report the picture shows;
what is there already is not made again. A line that starts with `$ ` is a command; what stands
below it is replaced by what it prints, as far as `…`. A command without output below it is not run,
nor one whose photos are missing: put LFW's photos there as `tests/test_readme.py` names them. The
screenshot of the report needs Chromium.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images"
BLOCK = re.compile(r"^```\n\$ .*?^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:.*\\\n)*.*")  # with the lines that it continues on
REPORT_PX = (1100, 940)
COLOURS = 192  # keeps a picture of faces below 150 kB


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", type=Path)
    work = parser.parse_args(arguments).work
    work.mkdir(parents=True, exist_ok=True)
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(BLOCK.sub(lambda found: _ran(found.group(), work), text), encoding="utf-8")
    report = work / "demo" / "report.html"
    if not report.exists():
        _run(["demo"], work)
    _screenshot(report, work / "report.png")
    _shrink(work / "report.png", PICTURES / "report.png")
    return 0


def _ran(block: str, work: Path) -> str:
    """Return a block with the present output of its commands."""
    lines = []
    for step in block.removeprefix("```\n$ ").removesuffix("```").split("\n$ "):
        command = COMMAND.match(step).group()
        words = shlex.split(command.replace("\\\n", ""))[1:]
        shown = step.removeprefix(command).splitlines()[1:]
        lines += [f"$ {command}", *_output(words, shown, work)]
    return "\n".join(["```", *lines, "```"])


def _output(words: list[str], shown: list[str], work: Path) -> list[str]:
    """Run a command of facepairs; return its output, cut where `…` stood."""
    made = "--out" in words and (work / words[words.index("--out") + 1]).exists()
    missing = [word for word in words if word.endswith(".jpg") and not (work / word).exists()]
    if made or missing or not shown:
        return shown
    lines = [line.rstrip() for line in _run(words, work).splitlines()]
    return [*lines[: shown.index("…")], "…"] if "…" in shown else lines


def _run(words: list[str], work: Path) -> str:
    """Run a command of facepairs; return what it prints."""
    print("facepairs", *words, file=sys.stderr)
    process = [sys.executable, "-m", "facepairs", *words]
    done = subprocess.run(process, cwd=work, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: different people
        sys.exit(done.returncode)
    return done.stdout


def _screenshot(page: Path, picture: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("the screenshot of the report needs Chromium")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-background-networking", f"--user-data-dir={profile}",
             "--window-size={},{}".format(*REPORT_PX), f"--screenshot={picture.resolve()}",
             page.resolve().as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip


def _shrink(picture: Path, out: Path) -> None:
    """Save a picture with few colours."""
    with Image.open(picture) as image:
        image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(out, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
