"""Which fast tests run which lines, measured once for a version of the package and of a test.

`-p stress.line_map` is a plugin of pytest. With $MAP_FOLDER it measures: coverage.py counts lines
under the name of the test that runs, in this process and in those that the test starts, and under
the name of a fixture while that is set up for more than one test. With $MAP_TESTS, a file with a
test on each line, it runs these, in that order.
"""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

LIMIT_S = 3600
# The processes that a test starts read the test's name from the environment.
SETTINGS = """
[run]
source = {tree}/facepairs
data_file = {folder}/lines
parallel = true
sigterm = true
patch = _exit
context = ${{MAP_CONTEXT-}}
"""
_seconds: dict[str, float] = {}
_shared: dict[str, list[str]] = {}
_failed: set[str] = set()


@dataclass(frozen=True)
class LineMap:
    """The tests of each line.

    Attributes:
        digests: Of each file of tests, the SHA-256 it had when it was measured.
        seconds: Of each fast test that passes, how long it takes, with the fixtures that it made;
            in the order in which they ran.
        lines: Of each module and line, the tests that run it.
    """

    digests: dict[str, str]
    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]

    def of(self, file: str, lines: set[int]) -> set[str]:
        """Return the tests that run one of these lines."""
        rows = self.lines.get(file, {})
        return {test for line in lines for test in rows.get(line, ())}


def read_or_measure(tree: Path, kept: Path, processes: int) -> LineMap:
    """Return the map of a tree, kept in a folder; only tests that are new there are measured."""
    package = "".join(_digests(tree, "facepairs", "*.py").values())
    path = kept / f"{hashlib.sha256(package.encode()).hexdigest()[:16]}.pickle"
    known = pickle.loads(path.read_bytes()) if path.exists() else LineMap({}, {}, {})
    digests = _digests(tree, "tests", "test_*.py")
    if known.digests != digests:
        changed = [name for name in digests if digests[name] != known.digests.get(name)]
        print(f"measuring which lines the tests of {len(changed)} files run …", flush=True)
        measured = _measure(tree, changed if known.digests else [], processes) if changed else None
        known = _merged(known, measured, digests, changed)
        kept.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(known))
    return known


def _digests(tree: Path, folder: str, pattern: str) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((tree / folder).rglob(pattern))
    }


def _measure(tree: Path, files: list[str], processes: int) -> LineMap:
    with tempfile.TemporaryDirectory(prefix="line-map-") as name:
        folder = Path(name).resolve()
        (folder / "coveragerc").write_text(SETTINGS.format(tree=tree, folder=folder))
        environment = {
            "COVERAGE_PROCESS_START": str(folder / "coveragerc"),
            "MAP_FOLDER": str(folder),
        }
        words = ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder", *files]
        _run_pytest(tree, words, environment)
        return _combined(tree, folder)


def _combined(tree: Path, folder: Path) -> LineMap:
    from coverage import Coverage

    measured = json.loads((folder / "tests.json").read_text())
    coverage = Coverage(config_file=str(folder / "coveragerc"))
    coverage.combine()
    data = coverage.get_data()
    users = {test: [test] for test in measured["seconds"]}
    for test in measured["seconds"]:
        for fixture in measured["shared"].get(test, ()):
            users.setdefault(fixture, []).append(test)
    lines = {}
    for name in sorted(data.measured_files()):
        rows = data.contexts_by_lineno(name)
        lines[str(Path(name).relative_to(tree))] = {
            line: sorted({test for one in contexts for test in users.get(one, ())})
            for line, contexts in rows.items()
        }
    return LineMap({}, measured["seconds"], lines)


def _merged(
    old: LineMap, new: LineMap | None, digests: dict[str, str], changed: list[str]
) -> LineMap:
    """Return a map of the files in `digests`, those that changed from `new`."""
    kept = {name for name in digests if name not in changed}
    seconds = {test: took for test, took in old.seconds.items() if test.partition("::")[0] in kept}
    lines: dict[str, dict[int, list[str]]] = {}
    for one, known in ((old, seconds), (new, new.seconds if new else {})):
        for file, rows in one.lines.items() if one else ():
            for line, tests in rows.items():
                found = lines.setdefault(file, {}).setdefault(line, [])
                found += [test for test in tests if test in known]
    return LineMap(digests, seconds | (new.seconds if new else {}), lines)


def _run_pytest(tree: Path, words: list[str], environment: dict[str, str]) -> None:
    """Run pytest in a tree, and end what it started."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, "-p", "stress.line_map", *words],
        cwd=tree,
        env=os.environ | tree_environment(tree) | environment,
        start_new_session=True,
    )
    try:
        process.wait(LIMIT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def tree_environment(tree: Path) -> dict[str, str]:
    """Return what makes processes use the modules of a tree."""
    return {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}


def _is_measuring() -> bool:
    return "MAP_FOLDER" in os.environ


@contextmanager
def _context(name: str) -> Iterator[None]:
    """Count lines under a name, here and in processes started meanwhile."""
    from coverage import Coverage

    def switch(name: str) -> None:
        os.environ["MAP_CONTEXT"] = name
        if coverage := Coverage.current():
            coverage.switch_context(name)

    before = os.environ.get("MAP_CONTEXT", "")
    switch(name)
    try:
        yield
    finally:
        switch(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if not _is_measuring():
        return (yield)
    found = getattr(item, "_fixtureinfo", None)
    fixtures = [one for group in found.name2fixturedefs.values() for one in group] if found else []
    names = sorted({_name(fixture) for fixture in fixtures if fixture.scope != "function"})
    item.user_properties.append(("shared", names))  # reaches xdist's first process
    with _context(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    if not _is_measuring() or fixturedef.scope == "function":
        return (yield)
    with _context(_name(fixturedef)):
        return (yield)


def _name(fixture: pytest.FixtureDef[object]) -> str:
    return f"fixture {fixture.baseid} {fixture.argname}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0) + report.duration
    _shared[report.nodeid] = dict(report.user_properties).get("shared", [])
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _is_measuring():
        return
    from coverage import Coverage

    if coverage := Coverage.current():
        coverage.save()
    if not hasattr(session.config, "workerinput"):
        seconds = {test: took for test, took in _seconds.items() if test not in _failed}
        path = Path(os.environ["MAP_FOLDER"], "tests.json")
        path.write_text(json.dumps({"seconds": seconds, "shared": _shared}))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "MAP_TESTS" not in os.environ:
        return
    names = Path(os.environ["MAP_TESTS"]).read_text(encoding="utf-8").splitlines()
    order = {name: at for at, name in enumerate(names)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
    items[:] = [item for item in items if item.nodeid in order]
    items.sort(key=lambda item: order[item.nodeid])
