"""An environment with what `pip install facepairs` installs, or with an extra, and nothing more."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(texts: list[str]) -> list[str]:
    """Return the names of required packages that apply here."""
    found = [Requirement(text) for text in texts]
    return [
        canonicalize_name(one.name)
        for one in found
        if one.marker is None or one.marker.evaluate({"extra": ""})
    ]


def extra_packages(extra: str) -> set[str]:
    """Return the names of the packages that an extra adds, and those of the extras in it."""
    found = set()
    for text in PROJECT["optional-dependencies"][extra]:
        one = Requirement(text)
        others = one.extras if one.name == PROJECT["name"] else ()
        found |= set().union(*map(extra_packages, others)) if others else set(requirements([text]))
    return found


def all_packages(extras: tuple[str, ...]) -> set[str]:
    """Return the names of all packages of the core and of extras, with those that they need."""
    todo, found = requirements(PROJECT["dependencies"]), set()
    for extra in extras:
        todo += extra_packages(extra)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += requirements(distribution(name).requires or [])
    return found


def link_core(folder: Path, *extras: str) -> Path:
    """Link the packages of the core and of extras, and this one, from here into a folder."""
    folder.mkdir()
    (folder / "facepairs").symlink_to(ROOT / "facepairs")
    for name in all_packages(extras):
        package = distribution(name)
        for top in {file.parts[0] for file in package.files or [] if ".." not in file.parts}:
            link = folder / top
            if top != "__pycache__" and not link.exists():
                link.symlink_to(package.locate_file(top))
    return folder


def run_in(core: Path, *words: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run Python in the environment; -S leaves out the packages of this process."""
    environment = {**os.environ, "PYTHONPATH": str(core)}
    return subprocess.run(
        [sys.executable, "-S", *map(str, words)],
        cwd=cwd, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
