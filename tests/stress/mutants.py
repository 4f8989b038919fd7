"""Put random faults into the package, one at a time, and count which ones the fast tests find.

    make mutants
    PYTHONPATH=tests:tests/helpers python -m stress.mutants --packages photos server --count 160

A fault changes one place: a comparison, an operator, a condition, a constant, or a statement that
is left out. Each package gets as many. The same seed and the same source give the same faults.

First all fast tests run once, to learn which of them run which lines (`line_map`; kept in
runs/mutants until the package changes). Then each fault is put into a copy of the working tree, and
only the tests that run its line run there: those of its module first, then those of its package,
then the others, quick files first. What runs when a module is imported (a constant, a default) is
tried with the tests that run what uses it, those of its package, and those of all options. A fault
is found when a test fails or hangs; where no test runs its line it survives at once. `beam` is left
out: its tests need another environment.

With --out an interrupted round goes on where it stopped. Faults that change nothing, or only what
nobody cares about, survive too: read the list.
"""

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import pytest

import stress.line_map as line_map_plugin
from stress.line_map import LineMap, read_or_measure, tree_environment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "facepairs"
LEFT_OUT = (".git", ".venv*", ".*cache*", ".hypothesis", "__pycache__", "runs", "site", "dist")
LOADED = ("tensorflow", "keras", "sklearn.linear_model", "scipy.stats", "onnxruntime", "PIL.Image")
OF_ALL_OPTIONS = "test_reference.py"
UNSEEN = "pipeline"  # TensorFlow's threads run it unseen by the map: all its tests are tried
LIMIT_S = 60  # for a quick test; longer, and the fault makes it hang
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
OPERATORS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A change of one place.

    Attributes:
        file: The module, relative to the root.
        line: Its line, from 1.
        before: The source of the place.
        after: What replaces it.
        start: Offset of the place in the file's bytes.
        end: Where the place ends.
    """

    file: str
    line: int
    before: str
    after: str
    start: int
    end: int

    @property
    def package(self) -> str:
        return Path(self.file).parts[1]


def faults_of(path: Path) -> Iterator[Fault]:
    """Yield every fault of a module, in the order of its places."""
    data = path.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _places(ast.parse(data)):
        after = _changed(node)
        if not after:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = data[start:end].decode()
        yield Fault(str(path.relative_to(ROOT)), node.lineno, before, after, start, end)


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes that decide what the code does: no annotations, texts, assertions or messages."""
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.ClassDef):
        node.keywords, node.decorator_list = [], []  # such as frozen=True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # an assertion of zip
        return
    if hasattr(node, "lineno"):
        yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _places(child)


def _changed(node: ast.AST) -> str:
    """Return the source of a node with a fault; "" where there is none."""
    match node:
        case ast.Compare(left, [op, *ops], comparators) if type(op) in OPERATORS:
            return f"({ast.unparse(ast.Compare(left, [OPERATORS[type(op)](), *ops], comparators))})"
        case ast.BinOp(left, op, right) if type(op) in OPERATORS and not _is_text(node):
            return f"({ast.unparse(ast.BinOp(left, OPERATORS[type(op)](), right))})"
        case ast.BoolOp(op, values):
            return f"({ast.unparse(ast.BoolOp(OPERATORS[type(op)](), values))})"
        case ast.UnaryOp(ast.Not(), operand):
            return f"({ast.unparse(operand)})"
        case ast.IfExp(test, body, orelse):
            negated = ast.UnaryOp(ast.Not(), test)
            return f"({ast.unparse(ast.IfExp(negated, body, orelse))})"
        case ast.Constant(bool() as value):
            return str(not value)
        case ast.Constant(int() as value):
            return str(value + 1 if value < 1000 else 2 * value)
        case ast.Constant(float() as value):
            return repr(1.1 * value or 0.1)
        case ast.Expr(ast.Call()) | ast.AugAssign():
            return "pass"
    return ""


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operand is plainly a text or a type, for which another operator fails."""
    parts = (node.left, node.right)
    if isinstance(node.op, ast.BitOr):  # `str | Path`
        return any(ast.unparse(part).rpartition(".")[2][:1].isupper() for part in parts)
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in parts
    )


def choose(packages: list[str], count: int, seed: int) -> list[Fault]:
    """Return random faults in random order, the same number of each package."""
    rng, chosen = random.Random(seed), []
    for name in packages:
        paths = sorted((PACKAGE / name).rglob("*.py"))
        faults = [fault for path in paths for fault in faults_of(path) if not _is_drawing(fault)]
        chosen += rng.sample(faults, min(-(-count // len(packages)), len(faults)))
    return rng.sample(chosen, len(chosen))


def _is_drawing(fault: Fault) -> bool:
    """Return whether a fault is a number of a drawn face, which looks a little otherwise then."""
    return "/synth/" in fault.file and fault.before[:1].isdigit()


def lines_of(fault: Fault, users: bool = False) -> dict[str, set[int]]:
    """Return the lines whose tests may notice a fault, by module.

    They are those of its place; for what runs at import, or once because its result is kept, those
    that use it.

    Args:
        fault: The fault.
        users: Return the lines that use what the place is part of, in any case.
    """
    around, begin, end = _statements_around(fault)
    names = _names(around)
    if not (users or (names and _runs_once(around, begin))):
        return {fault.file: set(range(around[-1].lineno, end[0] + 1))}
    lines = {fault.file: set(_body(around[-1]))}
    for name, found in _users(names).items():
        lines.setdefault(name, set()).update(found)
    return lines


def _statements_around(fault: Fault) -> tuple[list[ast.stmt], tuple[int, int], tuple[int, int]]:
    """Return the statements that a place is part of, from the outermost, and its two ends."""
    data = (ROOT / fault.file).read_bytes()
    begin, end = _position(data, fault.start), _position(data, fault.end)
    around = [
        node
        for node in ast.walk(ast.parse(data))
        if isinstance(node, ast.stmt) and _begin(node) <= begin and end <= _end(node)
    ]
    return sorted(around, key=_begin), begin, end


def _position(data: bytes, offset: int) -> tuple[int, int]:
    return data.count(b"\n", 0, offset) + 1, offset - (data.rfind(b"\n", 0, offset) + 1)


def _begin(node: ast.stmt) -> tuple[int, int]:
    first = min([node, *getattr(node, "decorator_list", ())], key=lambda one: one.lineno)
    return first.lineno, first.col_offset


def _end(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _runs_once(around: list[ast.stmt], begin: tuple[int, int]) -> bool:
    """Return whether a place runs at import, or in a function that keeps its result."""
    functions = [node for node in around if isinstance(node, FUNCTION)]
    if not functions or begin < _begin(functions[-1].body[0]):
        return True
    return any("cache" in ast.unparse(one) for node in functions for one in node.decorator_list)


def _body(statement: ast.stmt) -> range:
    """Return the lines of a function's body, if the statement is one."""
    if not isinstance(statement, FUNCTION):
        return range(0)
    return range(statement.body[0].lineno, (statement.end_lineno or 0) + 1)


def _names(around: list[ast.stmt]) -> set[str]:
    """Return the names that statements bind: functions, classes, constants and fields."""
    names = {node.name for node in around if isinstance(node, FUNCTION | ast.ClassDef)}
    if isinstance(around[-1], ast.Assign | ast.AnnAssign):
        targets = getattr(around[-1], "targets", None) or [around[-1].target]
        found = [node for target in targets for node in ast.walk(target)]
        names |= {node.id for node in found if isinstance(node, ast.Name)}
        names |= {node.attr for node in found if isinstance(node, ast.Attribute)}
    return names


def _users(names: set[str]) -> dict[str, set[int]]:
    """Return the lines of the package's functions that use one of the names, by module."""
    modules = _modules(PACKAGE)
    known: set[str] = set()
    while names - known:  # constants of constants
        known |= names
        for module in modules.values():
            made = [node for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign)]
            names = names.union(*(_names([node]) for node in made if _mentions(node, known)))
    lines: dict[str, set[int]] = {}
    for path, module in modules.items():
        for function in (node for node in ast.walk(module) if isinstance(node, FUNCTION)):
            parts = (node for part in function.body for node in ast.walk(part))
            found = {node.lineno for node in parts if _name(node) in known}
            if _mentions(function.args, known):
                found.update(_body(function))
            if found:
                lines.setdefault(str(path.relative_to(ROOT)), set()).update(found)
    return lines


@functools.cache
def _modules(package: Path) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_bytes()) for path in sorted(package.rglob("*.py"))}


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(_name(part) in names for part in ast.walk(node))


def _name(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def covering_tests(fault: Fault, line_map: LineMap) -> list[list[str]]:
    """Return the tests that may find a fault: of its module, others of its package, all others.

    Each list begins with the quick files.
    """
    found: set[str] = set()
    for users in (False, True):  # a function may run only at import
        if not found:
            for file, lines in lines_of(fault, users).items():
                found |= line_map.of(file, lines)
    around, begin, _ = _statements_around(fault)
    if _runs_once(around, begin):  # tests that look at what was made run none of its lines
        found |= {test for test in line_map.seconds if _looks_at(test, fault)}
    if fault.package == UNSEEN:
        found |= {test for test in line_map.seconds if Path(test).parts[1] == UNSEEN}
    seconds = Counter()
    for test in found:
        seconds[test.partition("::")[0]] += line_map.seconds[test]
    rounds: tuple[list[str], ...] = ([], [], [])
    for test in line_map.seconds:
        if test in found:
            name = Path(test.partition("::")[0])
            is_of_package = name.parts[1] == fault.package
            is_of_module = is_of_package and Path(fault.file).stem in name.stem
            rounds[0 if is_of_module else 1 if is_of_package else 2].append(test)
    for tests in rounds:
        tests.sort(key=lambda test: (seconds[test.partition("::")[0]], test.partition("::")[0]))
    return [tests for tests in rounds if tests]


def _looks_at(test: str, fault: Fault) -> bool:
    """Return whether a test is of the package, or compares all options and settings."""
    path = Path(test.partition("::")[0])
    return path.parts[1] == fault.package or path.name == OF_ALL_OPTIONS


def is_found(fault: Fault, tree: Path, line_map: LineMap) -> bool:
    """Put a fault into a copy of the tree, run the tests, and mend the copy again."""
    rounds = covering_tests(fault, line_map)
    path = tree / fault.file
    sound = path.read_bytes()
    path.write_bytes(sound[: fault.start] + fault.after.encode() + sound[fault.end :])
    try:
        return any(not _tests_pass(tests, tree, line_map) for tests in rounds)
    finally:
        path.write_bytes(sound)


def _tests_pass(tests: list[str], tree: Path, line_map: LineMap) -> bool:
    """Run tests in a copy of this process, which has loaded large packages; end what they start."""
    seconds = [line_map.seconds[test] for test in tests]
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    words = ["-x", "-q", "-p", "no:cacheprovider", *files]
    words.append(f"--timeout={LIMIT_S + 5 * max(seconds):.0f}")
    with tempfile.TemporaryDirectory(prefix="mutants-tests-") as folder:
        names = Path(folder, "tests.txt")
        names.write_text("\n".join(tests), encoding="utf-8")
        process = os.fork()
        if process == 0:
            _run_tests(words, tree, {"MAP_TESTS": str(names), "TMPDIR": folder})
        ends = time.monotonic() + 10 * (LIMIT_S + sum(seconds))
        while not (ended := os.waitpid(process, os.WNOHANG))[0] and time.monotonic() < ends:
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        if not ended[0]:
            os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(ended[1]) if ended[0] else -1
    return code in (0, 5)  # 5: the fault changed the names of its tests


def _run_tests(words: list[str], tree: Path, environment: dict[str, str]) -> NoReturn:
    """Run pytest in a child, and end it without what the parent does when it ends."""
    code = 3
    try:
        os.setsid()
        gc.freeze()  # what the parent left is not to be collected here
        os.environ |= environment | tree_environment(tree)
        os.chdir(tree)
        sys.path[:0] = [str(tree), str(tree / "tests")]
        tempfile.tempdir, sys.dont_write_bytecode = None, True
        with open(os.devnull, "r+") as nothing:
            for number in range(3):
                os.dup2(nothing.fileno(), number)
        code = int(pytest.main(words, plugins=[line_map_plugin]))
    finally:
        os._exit(code)


def report(found: list[tuple[Fault, bool]]) -> str:
    """Return the share of faults that were found, by package, a table in Markdown."""
    total = Counter(fault.package for fault, _ in found)
    killed = Counter(fault.package for fault, is_killed in found if is_killed)
    rows = [f"| `{name}` | {killed[name]} of {total[name]} |" for name in sorted(total)]
    rows.append(f"| all | {killed.total()} of {total.total()} |")
    return "\n".join(["| package | found |", "| --- | --- |", *rows])


def _read(path: Path | None) -> dict[Fault, bool]:
    """Return what an earlier call wrote."""
    if not path or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {Fault(**{key: row[key] for key in row if key != "found"}): row["found"] for row in rows}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
    tested = [name for name in known if name != "beam"]
    parser.add_argument("--packages", nargs="+", choices=known, default=tested)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no more then")
    parser.add_argument("--out", type=Path, help="keep the faults as JSON lines, and go on there")
    parser.add_argument("--map", type=Path, default=ROOT / "runs" / "mutants")
    parser.add_argument("--processes", type=int, default=2, help="that measure the map")
    options = parser.parse_args()
    begun, found, done = time.monotonic(), [], _read(options.out)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder, "tree").resolve()
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        line_map = read_or_measure(tree, options.map, options.processes)
        for name in LOADED:
            importlib.import_module(name)
        for fault in choose(options.packages, options.count, options.seed):
            if fault not in done and time.monotonic() - begun > options.seconds:
                continue
            is_new = fault not in done
            found.append((fault, is_found(fault, tree, line_map) if is_new else done[fault]))
            word = "found   " if found[-1][1] else "SURVIVED"
            before = " ".join(fault.before.split())
            print(f"{word} {fault.file}:{fault.line}: {before} → {fault.after}", flush=True)
            if options.out and is_new:
                row = json.dumps({**asdict(fault), "found": found[-1][1]})
                with open(options.out, "a", encoding="utf-8") as handle:
                    handle.write(row + "\n")
    print(report(found))


if __name__ == "__main__":
    main()
