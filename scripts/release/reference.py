"""Write the reference of commands, routes, settings and Python into docs/reference.

    python scripts/release/reference.py             # rewrite what lies between markers
    python scripts/release/reference.py --check     # exit code 1 if one is not up to date

The text comes from the definitions of commands and settings, not from printed help, so neither the
width of the terminal nor the version of typer changes it.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from msgspec import inspect
from python_reference import PYTHON_MARKER, with_python

from facepairs.cli.app import build_command, global_options
from facepairs.config import TEMPLATE, TrainConfig
from facepairs.data.findings import DatasetReport
from facepairs.data.importing import ImportReport
from facepairs.evaluation.calibrate import Recalibration
from facepairs.evaluation.drift import DriftReport
from facepairs.evaluation.evaluate import EvaluationResult
from facepairs.evaluation.planning import StudyPlan
from facepairs.evaluation.replay import ReplayResult
from facepairs.gallery.enrol import Enrolment
from facepairs.gallery.identification import PhotoIdentification
from facepairs.server.routes import ERRORS, ROUTES, openapi
from facepairs.support.results import json_schemas
from facepairs.training.view2.crossval import CrossvalReport
from facepairs.verification.ranking import Ranking
from facepairs.verification.score_list import PairsReport
from facepairs.verification.verdict import Verdict

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = sorted(FOLDER / f"{name}.md" for name in ("cli", "http", "json", "python-api", "settings"))
COMMAND = "make reference"
RESULTS = {
    "verify": Verdict,
    "score": PairsReport,
    "search": Ranking,
    "plan": StudyPlan,
    "evaluate": EvaluationResult,
    "evaluate --replay": ReplayResult,
    "calibrate": Recalibration,
    "crossval": CrossvalReport,
    "drift": DriftReport,
    "gallery add": Enrolment,
    "gallery identify": PhotoIdentification,
    "data check": DatasetReport,
    "data import": ImportReport,
}
KINDS = {"path": "PATH", "int": "N", "float": "X"}  # by the beginning of a type's name


def commands() -> str:
    """Return the Markdown of all commands, in their order."""
    root = build_command()
    return "\n".join(_block(path, command) for path, command in _commands(root, ["facepairs"]))


def settings() -> str:
    """Return a table of the fields of TrainConfig: default, what is allowed, and meaning."""
    kinds = get_type_hints(TrainConfig, include_extras=True)
    rows = ["| setting | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    defaults, meanings = TrainConfig(), _meanings()
    for field in dataclasses.fields(TrainConfig):
        value = getattr(defaults, field.name)
        default = "" if value in (None, "") else f"`{json.dumps(value)}`"
        allowed = _allowed(kinds[field.name])
        rows.append(f"| `{field.name}` | {default} | {allowed} | {meanings[field.name]} |")
    return "\n".join(rows) + "\n"


def _allowed(kind: Any) -> str:
    """Return in words which values a type of a setting allows."""
    info = inspect.type_info(kind)
    if isinstance(info, inspect.UnionType):
        return " or ".join(_allowed(one) for one in get_args(kind) if one is not NoneType)
    if isinstance(info, inspect.LiteralType):
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if isinstance(info, inspect.IntType | inspect.FloatType):
        word = "a whole number" if isinstance(info, inspect.IntType) else "a number"
        return f"{word} from {info.ge:g} to {info.le:g}"
    return {inspect.StrType: "a text", inspect.BoolType: "true or false"}.get(type(info), "none")


def _meanings() -> dict[str, str]:
    """Return what each setting means: the comment above its place in the template."""
    blocks = (block.splitlines() for block in TEMPLATE.read_text("utf-8").strip().split("\n\n"))
    return {name.strip("{}"): " ".join(line[2:] for line in lines) for *lines, name in blocks}


def routes() -> str:
    """Return the Markdown of all routes of the server, in their order."""
    schemas, parts = openapi()["components"]["schemas"], []
    for route in ROUTES:
        parts.append(f"## `{route.method} {route.path}`\n\n{route.summary}\n")
        if route.takes:
            schema = schemas[route.takes.__name__]
            rows = [
                f"| `{name}` | {_type_in_words(field)} | "
                f"{'yes' if name in schema.get('required', ()) else ''} | {_meaning(field)} |"
                for name, field in schema["properties"].items()
            ]
            head = "| field | type | required | meaning |\n| --- | --- | --- | --- |"
            parts.append("\n".join([head, *rows]) + "\n")
        name = route.returns.__name__
        parts.append(f"Returns [{name}](json.md#{name.lower()}).\n")
    errors = "\n".join(f"| {status} | {text} |" for status, text in ERRORS.items())
    return "\n".join([*parts, f"| status | when |\n| --- | --- |\n{errors}\n"])


def results() -> str:
    """Return the Markdown of all results: those of commands and routes, then those within them."""
    answers = {route.returns: f"`{route.method} {route.path}`" for route in reversed(ROUTES)}
    prints = {kind: f"`facepairs {command} --json`" for command, kind in RESULTS.items()}
    places = {
        kind.__name__: " and ".join(filter(None, [prints.get(kind), answers.get(kind)]))
        for kind in dict.fromkeys([*prints, *answers])
    }
    schemas = json_schemas([*prints, *answers])
    names = dict.fromkeys([*places, *schemas])
    return "\n".join(_result(name, schemas[name], places.get(name)) for name in names)


def _result(name: str, schema: dict[str, Any], places: str | None) -> str:
    """Return what a type is, where it stands, and its fields."""
    rows = ["| field | type | meaning |", "| --- | --- | --- |"]
    rows += [
        f"| `{field}` | {_type_in_words(kind)} | {_meaning(kind)} |"
        for field, kind in schema.get("properties", {}).items()
    ]
    of = f"Of {places}. " if places else ""
    return "\n".join(
        [f"### {name}", "", of + " ".join(schema["description"].split()), "", *rows, ""]
    )


def _meaning(field: dict[str, Any]) -> str:
    """Return a field's description, which for a nullable one belongs to its type."""
    described = [field, *field.get("anyOf", ()), field.get("items") or {}]
    return next((one["description"] for one in described if "description" in one), "")


def _type_in_words(field: dict[str, Any]) -> str:
    """Return a field's type in a word or two."""
    if "anyOf" in field:
        return " or ".join(_type_in_words(one) for one in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if field.get("type") == "array":
        return f"list of {_type_in_words(field.get('items') or {})}"
    return str(field.get("type", "any"))


def _commands(command: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield " ".join(path), command
        return
    for name in command.list_commands(None):
        yield from _commands(command.get_command(None, name), [*path, name])


def _block(path: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    shared = {"--help", *(name for option in global_options() for name in option.opts)}
    options = [
        p for p in command.params if p.param_type_name == "option" and not shared & {*p.opts}
    ]
    usage = " ".join([path, *(_argument(argument) for argument in arguments)])
    rows = [f"| `{_argument(p)}` | {_help(p)} |" for p in arguments]
    rows += [f"| `{_option(p)}` | {_help(p)} |" for p in options]
    example = "\n".join(
        line.removeprefix("Example: ").strip()
        for line in (command.epilog or "").replace("\b", "").splitlines()
        if line.strip() not in ("", "Examples:")
    )
    paragraphs = (" ".join(text.split()) for text in (command.help or "").split("\n\n"))
    return f"""## `{usage}`

{(chr(10) * 2).join(paragraphs)}

| option | meaning |
| --- | --- |
{chr(10).join(rows)}

```
{example}
```
"""


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).upper()
    if name.startswith("["):
        name = name.strip("[]")
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    names = " / ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    found = (word for kind, word in KINDS.items() if parameter.type.name.lower().startswith(kind))
    return f"{names} {next(found, 'TEXT')}"


def _help(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    if choices := getattr(parameter.type, "choices", None):
        text += f" One of {', '.join(choices)}."
    if (low := getattr(parameter.type, "min", None)) is not None:
        high = parameter.type.max
        text += f" From {low}" + (" up." if high is None else f" to {high}.")
    default = parameter.default
    if parameter.secondary_opts:
        default = (parameter.opts if default else parameter.secondary_opts)[0]
    shown = default not in (None, "") and not parameter.required and not isinstance(default, bool)
    if shown and isinstance(default, str | int | float | Path) and "[default" not in text:
        text += f" [default: {default}]"
    if parameter.required and parameter.param_type_name == "option":
        text += " [required]"
    if getattr(parameter, "envvar", None):
        text += f" Environment variable: {parameter.envvar}."
    return text.replace("|", "\\|")


def update(text: str) -> str:
    """Return the text with a new block between its markers."""
    if PYTHON_MARKER in text:
        return with_python(text)
    for name, write in {
        "cli": commands,
        "http": routes,
        "json": results,
        "settings": settings,
    }.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        if begin:
            _, end, after = rest.partition(f"\n<!-- /{name} -->")
            return before + begin + write() + end + after
    sys.exit("no <!-- cli --> … <!-- /cli -->; put both lines where the reference belongs")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="*", default=PAGES)
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit code 1 if it is old"
    )
    options = parser.parse_args(arguments)
    for page in options.file:
        text = page.read_text(encoding="utf-8")
        new = update(text)
        if options.check and new != text:
            sys.exit(f"{page}: its reference is not up to date; run: {COMMAND}")
        if not options.check:
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
