"""Run the steps of the Dockerfile in a scratch folder, for machines without a container engine.

    python scripts/release/docker_steps.py --python /usr/bin/python3 verify a.jpg b.jpg

Every absolute path of the image becomes one below the scratch folder, the base image's Python is
this machine's, `useradd` is left out, and the entry point runs as `nobody` where this is root:
Python and the photos must be readable to all.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
NOBODY = 65534
PLACES = re.compile(r"(?<![\w./])/(?=(?:src|wheels|opt|photos)\b)")  # paths of the image


class Step(NamedTuple):
    """One instruction of a Dockerfile."""

    name: str
    text: str


def parse(text: str) -> list[Step]:
    """Return the instructions of a Dockerfile; comments are left out, continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [Step(*line.split(maxsplit=1)) for line in joined]


def context(root: Path, scratch: Path) -> None:
    """Copy what .dockerignore lets through."""
    rules = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in (rule[1:] for rule in rules if rule.startswith("!")):
        source, target = root / name, scratch / "src" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def run_steps(steps: list[Step], scratch: Path, python: str, arguments: list[str]) -> int:
    """Run the instructions, then the entry point with these arguments; return its exit code."""
    tools = scratch / "tools"  # `python` and `pip` of the base image
    subprocess.run([python, "-m", "venv", str(tools)], check=True)
    variables = {"PATH": f"{tools / 'bin'}:{os.environ['PATH']}", "HOME": str(scratch / "root")}
    user, entry = "root", ["false"]
    for name, text in steps:
        here = PLACES.sub(f"{scratch}/", text)
        if name == "COPY" and "--from" not in text:
            context(ROOT, scratch)
        elif name == "RUN" and not text.startswith("useradd"):
            subprocess.run(["/bin/sh", "-ec", here], env=variables, cwd=scratch, check=True)
        elif name == "ENV":
            key, _, value = here.partition("=")
            variables[key] = value.replace(f"${key}", variables.get(key, ""))
        elif name == "USER":
            user = text
        elif name == "ENTRYPOINT":
            entry = json.loads(text)
    home = scratch / "home"
    home.mkdir()
    variables["HOME"] = str(home)
    scratch.chmod(0o755)
    as_user = {}
    if user != "root" and os.getuid() == 0:
        os.chown(home, NOBODY, NOBODY)
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    command = shutil.which(entry[0], path=variables["PATH"]) or entry[0]
    print(f"+ {' '.join([*entry, *arguments])}   (as {user})", flush=True)
    return subprocess.run(
        [command, *entry[1:], *arguments], env=variables, check=False, **as_user
    ).returncode


def main(arguments: list[str] | None = None) -> int:
    """Run the steps and the entry point."""
    parser = argparse.ArgumentParser(description="Run a Dockerfile's steps without an engine.")
    parser.add_argument("--python", default=sys.executable, help="Python of the base image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    steps = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        return run_steps(steps, Path(folder), options.python, options.command or ["--help"])


if __name__ == "__main__":
    sys.exit(main())
