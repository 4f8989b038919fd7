"""Put random faults into the package, one at a time, and count which ones the fast tests find.

    make mutants
    PYTHONPATH=tests:tests/helpers python -m stress.mutants --packages photos server --count 160

A fault changes one place: a comparison, an operator, a condition, a constant, or a statement that
is left out. Each package gets as many. A fault is put into a copy of the working tree, and the
tests of its package run there: first those of its module, then the others; with --rest also all
other fast tests. It is found when a test fails or hangs. The same seed and the same source give the
same faults.

Faults that change nothing, or only what nobody cares about, survive too: read the list.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "facepairs"
LEFT_OUT = (".git", ".venv*", ".*cache*", ".hypothesis", "__pycache__", "runs", "site", "dist")
LIMIT_S = 600  # for the tests of one fault
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


def rounds_of(fault: Fault, rest: bool) -> list[list[str]]:
    """Return the tests to run, one after the other until one fails."""
    mirror = ROOT / "tests" / fault.package
    files = sorted(str(path.relative_to(ROOT)) for path in mirror.rglob("test_*.py"))
    module = Path(fault.file)
    folder = Path("tests", *module.parts[1:-1])
    first = [
        name
        for name in files
        if module.stem in Path(name).stem
        or (len(folder.parts) > 2 and folder in Path(name).parents)
    ]
    rounds = [first, [name for name in files if name not in first]]
    if rest:
        rounds.append(["tests", f"--ignore=tests/{fault.package}"])
    return [names for names in rounds if names]


def is_found(fault: Fault, tree: Path, rest: bool) -> bool:
    """Put a fault into a copy of the tree, run the tests, and mend the copy again."""
    path = tree / fault.file
    sound = path.read_bytes()
    path.write_bytes(sound[: fault.start] + fault.after.encode() + sound[fault.end :])
    try:
        return any(not _tests_pass(names, tree) for names in rounds_of(fault, rest))
    finally:
        path.write_bytes(sound)


def _tests_pass(names: list[str], tree: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *names]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            return process.wait(LIMIT_S) in (0, 5)  # 5: no test was collected
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()


def report(found: list[tuple[Fault, bool]]) -> str:
    """Return the share of faults that were found, by package, a table in Markdown."""
    total = Counter(fault.package for fault, _ in found)
    killed = Counter(fault.package for fault, is_killed in found if is_killed)
    rows = [f"| `{name}` | {killed[name]} of {total[name]} |" for name in sorted(total)]
    rows.append(f"| all | {killed.total()} of {total.total()} |")
    return "\n".join(["| package | found |", "| --- | --- |", *rows])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
    parser.add_argument("--packages", nargs="+", choices=known, default=known)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no more then")
    parser.add_argument("--rest", action="store_true", help="also run the other fast tests")
    parser.add_argument("--out", type=Path, help="write the faults as JSON lines")
    options = parser.parse_args()
    begun, found = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for fault in choose(options.packages, options.count, options.seed):
            if time.monotonic() - begun > options.seconds:
                break
            found.append((fault, is_found(fault, tree, options.rest)))
            word = "found   " if found[-1][1] else "SURVIVED"
            before = " ".join(fault.before.split())
            print(f"{word} {fault.file}:{fault.line}: {before} → {fault.after}", flush=True)
            if options.out:
                row = json.dumps({**asdict(fault), "found": found[-1][1]})
                with open(options.out, "a", encoding="utf-8") as handle:
                    handle.write(row + "\n")
    print(report(found))


if __name__ == "__main__":
    main()
