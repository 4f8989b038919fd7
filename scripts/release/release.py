"""Make a release: version, changelog, wheel and sdist, their checks, an SBOM, commit and tag.

    make release VERSION=0.2.0

Writes dist/: the wheel, the sdist, the CycloneDX SBOM of the core, and SHA256SUMS. The commit and
the tag come last, so that a failing check leaves none. Nothing is uploaded.
"""

import argparse
import datetime
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.version import InvalidVersion, Version
from try_wheel import Environment, check_size, try_extra

ROOT = Path(__file__).parents[2]
VERSION, CHANGELOG, CITATION = "facepairs/version.py", "CHANGELOG.md", "CITATION.cff"
README, KUBERNETES = "README.md", "examples/deploy/kubernetes.yaml"
CHANGED = (VERSION, CHANGELOG, CITATION, README, KUBERNETES)
SECTION = r"^## (?:Unreleased|{version})[^\n]*\n(.*?)(?=^## |\Z)"


def git(tree: Path, *words: str) -> str:
    """Run git and return what it prints."""
    done = subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def check(tree: Path, version: str) -> None:
    """Exit unless this version can be released from the tree."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        sys.exit(f"{version!r} is no version; use one such as 0.2.0")
    if str(parsed) != version or parsed.is_devrelease or parsed.local:
        sys.exit(f"{version!r} is no version of a release; use one such as 0.2.0")
    if git(tree, "tag", "--list", f"v{version}"):
        sys.exit(f"v{version} exists already; use the next version")
    if changed := git(tree, "status", "--porcelain"):
        sys.exit(f"commit these first:\n{changed}")


def write_version(tree: Path, version: str, today: datetime.date) -> str:
    """Write version and date into the files that name them; return the changelog's section."""
    path = tree / CHANGELOG
    text = path.read_text(encoding="utf-8")
    section = re.search(SECTION.format(version=re.escape(version)), text, re.M | re.S)
    if section is None or not section[1].strip():
        sys.exit(f"{CHANGELOG}: write what is new under '## Unreleased' or '## {version}'")
    heading = f"## {version} ({today})\n"
    path.write_text(
        text[: section.start()] + heading + section[1] + text[section.end() :], encoding="utf-8"
    )
    _replace(tree / VERSION, r'^__version__ = ".*"$', f'__version__ = "{version}"')
    _replace(tree / CITATION, r"^version: .*$", f"version: {version}\ndate-released: {today}")
    _replace(tree / README, r"^This page describes \S+\. ", f"This page describes {version}. ")
    _replace(tree / KUBERNETES, r"\bfacepairs:\d[\w.]*", f"facepairs:{version}", 2)
    return section[1].strip()


def _replace(path: Path, line: str, by: str, expected: int = 1) -> None:
    text = re.sub(r"^date-released: .*\n", "", path.read_text(encoding="utf-8"), flags=re.M)
    text, count = re.subn(line, by, text, flags=re.M)
    if count != expected:
        sys.exit(f"{path}: {count} lines like {line}; there must be {expected}")
    path.write_text(text, encoding="utf-8")


def build(tree: Path, version: str) -> None:
    """Build wheel and sdist, check them and try the wheel, and describe what it installs."""
    dist = tree / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    _python(tree, "-m", "build", "--no-isolation", "--outdir", "dist")
    _python(tree, "-m", "twine", "check", "--strict", *map(str, dist.iterdir()))
    (wheel,) = dist.glob(f"facepairs-{version}-*.whl")
    check_size(wheel)
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder), wheel)
        try_extra(environment)
        # pip is a tool of the environment, not a part of what it installs
        environment.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
        sbom = dist / f"facepairs-{version}.cdx.json"
        _python(
            tree, "-m", "cyclonedx_py", "environment", str(environment.python), "--pyproject",
            "pyproject.toml", "--mc-type", "library", "--output-reproducible",
            "--output-file", str(sbom),
        )  # fmt: skip
    parts = json.loads(sbom.read_text(encoding="utf-8"))
    parts["metadata"]["component"]["version"] = version  # pyproject.toml does not name it
    sbom.write_text(json.dumps(parts, indent=1), encoding="utf-8")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
            for file in sorted(dist.iterdir())]  # fmt: skip
    (dist / "SHA256SUMS").write_text("".join(sums))


def _python(tree: Path, *words: str) -> None:
    if subprocess.run([sys.executable, *words], cwd=tree, check=False).returncode:
        sys.exit(f"failed: python {' '.join(words)}")


def release(tree: Path, version: str, today: datetime.date) -> None:
    """Make a release of a tree; a failure leaves its files as they were."""
    check(tree, version)
    before = {name: (tree / name).read_bytes() for name in CHANGED}
    try:
        section = write_version(tree, version, today)
        build(tree, version)
        git(tree, "commit", "--quiet", "--allow-empty", "-m", f"Release {version}", "--", *CHANGED)
    except BaseException:
        for name, data in before.items():
            (tree / name).write_bytes(data)
        raise
    git(tree, "tag", "--annotate", f"v{version}", "--cleanup=verbatim",
        "-m", f"facepairs {version}\n\n{section}")  # fmt: skip
    print(f"v{version} is tagged. To publish it:")
    print(f"  git push origin HEAD v{version}")
    print(f"  twine upload dist/facepairs-{version}*.whl dist/facepairs-{version}.tar.gz")


def main(arguments: list[str] | None = None) -> int:
    """Release the version that the command line names."""
    parser = argparse.ArgumentParser(description="Make a release.")
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--tree", type=Path, default=ROOT, help="checkout to release")
    options = parser.parse_args(arguments)
    release(options.tree, options.version, datetime.datetime.now(datetime.UTC).date())
    return 0


if __name__ == "__main__":
    sys.exit(main())
