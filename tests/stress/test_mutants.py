"""The faults that `make mutants` makes: each changes one place, and the same seed the same ones."""

import ast

import pytest

from stress.mutants import PACKAGE, ROOT, choose, faults_of, rounds_of

SOURCE = '''"""A module."""
from typing import NamedTuple

def f(a: int | None, b="text") -> int | str:
    assert a > 1
    if a < 3 and not b:
        print(f"{a + 1}")
    a += 2000
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
        (9, 'a * 0.5 if b in "x" else True', "(a * 0.5 if not b in 'x' else True)"),
        (9, "a * 0.5", "(a / 0.5)"),
        (9, "0.5", "0.55"),
        (9, 'b in "x"', "(b not in 'x')"),
        (9, "True", "False"),
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


def test_the_tests_of_a_module_come_first():
    (fault, *_) = faults_of(PACKAGE / "photos" / "formats.py")
    first, others = rounds_of(fault, rest=False)
    assert first == ["tests/photos/test_formats.py"]
    assert "tests/photos/test_crop.py" in others
    assert rounds_of(fault, rest=True)[2] == ["tests", "--ignore=tests/photos"]
