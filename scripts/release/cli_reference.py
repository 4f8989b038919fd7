"""Write the reference of all commands into docs/reference/cli.md, between its two markers.

    python scripts/release/cli_reference.py             # rewrite the page
    python scripts/release/cli_reference.py --check     # exit code 1 if it is not up to date

The text comes from the commands' definitions, not from printed help, so neither the width of the
terminal nor the version of typer changes it.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facepairs.cli.main import EVERYWHERE, build_command

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
BEGIN, END = "<!-- cli -->", "<!-- /cli -->"
COMMAND = "make reference"
KINDS = {"path": "PATH", "int": "N", "float": "X"}  # by the beginning of a type's name


def reference() -> str:
    """Return the Markdown of all commands, in their order."""
    root = build_command()
    blocks = [_block(path, command) for path, command in _commands(root, ["facepairs"])]
    return "\n".join([BEGIN, *blocks, END])


def _commands(command: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, [*path, name])
    if not hasattr(command, "commands"):
        yield " ".join(path), command


def _block(path: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    shared = {"--help", *EVERYWHERE}
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

| | |
| --- | --- |
{chr(10).join(rows)}

```
{example}
```
"""


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).strip("[]{}").upper()
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
    default = parameter.default
    shown = default is not None and not parameter.required and not isinstance(default, bool)
    if shown and isinstance(default, str | int | float | Path) and "[default" not in text:
        text += f" [default: {default}]"
    if parameter.required and parameter.param_type_name == "option":
        text += " [required]"
    if getattr(parameter, "envvar", None):
        text += f" Environment variable: {parameter.envvar}."
    return text.replace("|", "\\|")


def update(text: str) -> str:
    """Return the text with a new block between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"no {BEGIN} … {END} in the file; put both lines where the reference belongs")
    return before + reference() + after


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=PAGE)
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit code 1 if it is old"
    )
    options = parser.parse_args(arguments)
    text = options.file.read_text(encoding="utf-8")
    new = update(text)
    if options.check and new != text:
        sys.exit(f"{options.file}: its reference of commands is not up to date; run: {COMMAND}")
    if not options.check:
        options.file.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
