"""The faults that `make mutants` makes: each changes one place, and the same seed the same ones."""

import ast
import shutil
import sys
from pathlib import Path

import pytest

from stress.line_map import LineMap, read_or_measure
from stress.mutants import ROOT, choose, covering_tests, faults_of, is_found, lines_of

SOURCE = '''"""A module."""
from typing import NamedTuple

def f(a: int | None, b="text") -> int | str:
    assert a > 1
    if a < 3 and not b:
        print(f"{a + 1}")
    a += 2000
    c = zip(b, b, strict=True)
    return a * 0.5 if b in "x" else True
'''


def test_each_kind_of_place_is_changed_and_no_message_or_type(tmp_path, monkeypatch):
    monkeypatch.setattr("stress.mutants.ROOT", tmp_path)
    path = tmp_path / "facepairs" / "photos" / "m.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    found = {(fault.line, fault.before, fault.after) for fault in faults_of(path)}
    assert found == {
        (6, "a < 3 and not b", "(a < 3 or not b)"),
        (6, "a < 3", "(a <= 3)"),
        (6, "3", "4"),
        (6, "not b", "(b)"),
        (7, 'print(f"{a + 1}")', "pass"),
        (8, "a += 2000", "pass"),
        (8, "2000", "4000"),
        (10, 'a * 0.5 if b in "x" else True', "(a * 0.5 if not b in 'x' else True)"),
        (10, "a * 0.5", "(a / 0.5)"),
        (10, "0.5", "0.55"),
        (10, 'b in "x"', "(b not in 'x')"),
        (10, "True", "False"),
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_faults_of_every_package_and_all_are_python(seed):
    packages = ["server", "support", "bundles"]
    faults = choose(packages, 60, seed)
    assert faults == choose(packages, 60, seed)
    assert faults != choose(packages, 60, seed + 1)
    assert [sum(fault.package == name for fault in faults) for name in packages] == [20, 20, 20]
    for fault in faults:
        sound = (ROOT / fault.file).read_bytes()
        ast.parse(sound[: fault.start] + fault.after.encode() + sound[fault.end :])


PACKAGE = {
    "facepairs/__init__.py": "",
    "facepairs/photos/__init__.py": "",
    "facepairs/photos/crop.py": """
import functools

SIZE = 3
UNUSED = 5

def default(size=SIZE):
    return size * 2

@functools.cache
def kept():
    return 7

def wide(size):
    if (
        size > 10
    ):
        return 1
    return kept()

if __name__ == "__main__":
    print(wide(20))
""",
    "tests/photos/test_crop.py": """
import sys
import pytest
for name in [name for name in sys.modules if name.partition(".")[0] == "facepairs"]:
    del sys.modules[name]  # of the tests that run this one
from facepairs.photos import crop

@pytest.fixture(scope="module")
def six(): return crop.default()

def test_first(six): pass

def test_six(six): assert six == 6

@pytest.mark.parametrize("size", [1, 2])
def test_narrow(size): assert crop.wide(size) == 7
""",
    "tests/cli/test_cli.py": """
import subprocess, sys

def test_process():
    words = [sys.executable, "-m", "facepairs.photos.crop"]
    assert subprocess.run(words, capture_output=True).stdout == b"1\\n"

def test_broken(): assert False
""",
    "pyproject.toml": "[tool.pytest.ini_options]",
}
FIRST, SIX, PROCESS = (
    "tests/photos/test_crop.py::test_first",
    "tests/photos/test_crop.py::test_six",
    "tests/cli/test_cli.py::test_process",
)
NARROW = [f"tests/photos/test_crop.py::test_narrow[{size}]" for size in (1, 2)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A small package with its tests."""
    root = tmp_path_factory.mktemp("small") / "tree"
    for name, source in PACKAGE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    (root / "tests" / "stress").mkdir()
    for name in ("__init__.py", "line_map.py"):
        shutil.copy(Path(__file__).with_name(name), root / "tests" / "stress")
    return root


@pytest.fixture(scope="module")
def line_map(tree):
    return read_or_measure(tree, tree.parent / "kept", processes=1)


@pytest.fixture
def crop_faults(tree, monkeypatch):
    monkeypatch.setattr("stress.mutants.ROOT", tree)
    monkeypatch.setattr("stress.mutants.PACKAGE", tree / "facepairs")
    faults = faults_of(tree / "facepairs" / "photos" / "crop.py")
    return {fault.before: fault for fault in faults}


def test_lines_are_those_of_the_place_or_of_what_uses_what_runs_once(crop_faults):
    found = {before: lines_of(fault) for before, fault in crop_faults.items()}
    file = "facepairs/photos/crop.py"
    assert found["size * 2"] == {file: {8}}
    assert found["size > 10"] == {file: {15, 16}}
    assert found["3"] == {file: {8}}  # a default: its function's body
    assert found["5"] == {file: set()}
    assert found["7"] == {file: {19}}  # kept: who calls it


def test_a_fault_is_tried_with_the_tests_that_run_its_line(crop_faults, line_map):
    assert sorted(line_map.seconds) == sorted([FIRST, SIX, PROCESS, *NARROW])  # none that fails
    found = {before: covering_tests(fault, line_map) for before, fault in crop_faults.items()}
    assert found["size * 2"] == [[FIRST, SIX]]  # share a fixture
    assert found["size > 10"] == [NARROW, [PROCESS]]  # a process that a test starts
    for at_import in ("3", "5", "7"):  # all of its module: some look at what was made
        assert [sorted(tests) for tests in found[at_import]] == [sorted([FIRST, SIX, *NARROW])]


def test_the_map_is_measured_once_for_a_package_and_anew_for_changed_tests(tree, line_map):
    (path,) = (tree.parent / "kept").iterdir()
    written = path.stat().st_mtime_ns
    assert read_or_measure(tree, path.parent, processes=1) == line_map
    assert path.stat().st_mtime_ns == written
    changed = tree / "tests" / "cli" / "test_cli.py"
    sound = changed.read_text()
    changed.write_text("from facepairs.photos import crop\ndef test_new(): crop.default()\n")
    found = read_or_measure(tree, path.parent, processes=1)
    changed.write_text(sound)
    new = "tests/cli/test_cli.py::test_new"
    assert sorted(found.seconds) == sorted([FIRST, SIX, *NARROW, new])
    assert found.of("facepairs/photos/crop.py", {8}) == {FIRST, SIX, new}
    assert found.of("facepairs/photos/crop.py", {18}) == set()


@pytest.mark.parametrize(
    ("before", "expected"), [("size * 2", True), ("print(wide(20))", True), ("5", False)]
)
def test_a_fault_is_found_and_the_copy_mended(
    before, expected, crop_faults, line_map, tree, monkeypatch
):
    monkeypatch.delitem(sys.modules, "test_crop", raising=False)  # the package's own
    path = tree / "facepairs" / "photos" / "crop.py"
    sound = path.read_bytes()
    assert is_found(crop_faults[before], tree, line_map) is expected
    assert path.read_bytes() == sound


def test_covering_tests_the_module_and_then_of_the_package_and_quick_files_come_first(crop_faults):
    seconds = {
        "tests/cli/test_slow.py::test": 9.0,
        "tests/cli/test_quick.py::test": 1.0,
        "tests/photos/test_other.py::test": 5.0,
        "tests/photos/test_crop_plan.py::test": 8.0,
    }
    rows = {"facepairs/photos/crop.py": {8: [*seconds]}}
    assert covering_tests(crop_faults["size * 2"], LineMap({}, seconds, rows)) == [
        ["tests/photos/test_crop_plan.py::test"],
        ["tests/photos/test_other.py::test"],
        ["tests/cli/test_quick.py::test", "tests/cli/test_slow.py::test"],
    ]
