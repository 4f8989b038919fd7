"""A release refuses what is not ready, and writes version and date where they belong."""

import datetime
import shutil
import subprocess
import tomllib
from types import SimpleNamespace

import pytest
import release
from processes.script_runner import ROOT
from try_wheel import TRIALS

from facepairs.version import __version__

DAY = datetime.date(2026, 11, 22)


def test_every_extra_for_users_is_tried_from_the_wheel():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    # There is no GPU; the others are for us.
    not_tried = {"gpu", "docs", "release", "fuzz", "jax", "dev"}
    assert set(TRIALS) == {"core", *extras} - not_tried


@pytest.fixture
def tree(tmp_path):
    """A git checkout with the files that a release changes."""
    for name in release.CHANGED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = (
        "# Changelog\n\n## Unreleased\n\n- Verifies faces.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n"
    )
    (tmp_path / release.CHANGELOG).write_text(changelog)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return SimpleNamespace(path=tmp_path, git=git)


def test_the_version_stands_in_every_file(tree):
    release.check(tree.path, "0.9.0")
    assert release.write_version(tree.path, "0.9.0", DAY) == "- Verifies faces."
    assert '\n__version__ = "0.9.0"\n' in (tree.path / release.VERSION).read_text()
    citation = (tree.path / release.CITATION).read_text()
    assert "\nversion: 0.9.0\ndate-released: 2026-11-22\n" in citation
    assert "This page describes 0.9.0. " in (tree.path / release.README).read_text()
    assert (tree.path / release.KUBERNETES).read_text().count("facepairs:0.9.0") == 2
    changelog = (tree.path / release.CHANGELOG).read_text()
    assert changelog.startswith(
        "# Changelog\n\n## 0.9.0 (2026-11-22)\n\n- Verifies faces.\n\n## 0.1"
    )


def test_the_checkout_names_one_version():
    for name in (release.README, release.KUBERNETES, release.CITATION):
        assert __version__ in (ROOT / name).read_text(), name


@pytest.mark.parametrize("version", ["next", "v0.2.0", "0.2.0.dev0", "0.2.0+mine", "00.2"])
def test_only_versions_of_releases_are_taken(tree, version):
    with pytest.raises(SystemExit, match=r"0\.2\.0"):
        release.check(tree.path, version)


def test_a_tag_is_never_moved_and_changes_are_committed_first(tree):
    subprocess.run([*tree.git, "tag", "v0.9.0"], check=True)
    with pytest.raises(SystemExit, match="exists"):
        release.check(tree.path, "0.9.0")
    (tree.path / "notes.txt").write_text("a")
    with pytest.raises(SystemExit, match=r"\?\? notes.txt"):
        release.check(tree.path, "0.9.1")


def test_a_failing_hook_changes_nothing(tree, monkeypatch):
    hook = tree.path / ".git/hooks/pre-commit"
    monkeypatch.setattr(release, "build", lambda *_: None)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(SystemExit, match="not today"):
        release.release(tree.path, "0.9.0", DAY)
    assert release.git(tree.path, "status", "--porcelain") == ""
    assert release.git(tree.path, "tag") == ""
