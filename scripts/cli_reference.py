"""Write what `--help` says of every command into README.md, between its `<!-- cli -->` markers.

    python scripts/cli_reference.py             # rewrite README.md
    python scripts/cli_reference.py --check     # exit code 1 where it is not up to date

Read from the commands themselves, not from printed help: so neither the terminal's width nor the
version of typer shows.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from facepairs.cli.main import build_app

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- cli -->", "<!-- /cli -->"
MEND = "make reference"
KINDS = {"path": "PATH", "int": "N", "float": "X"}  # how a type's name begins


def reference() -> str:
    """Give the Markdown of all commands, in their order."""
    root = typer.main.get_command(build_app())
    blocks = [_block(path, command) for path, command in _commands(root, ["facepairs"])]
    return "\n".join([BEGIN, *blocks, END])


def _commands(command: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, [*path, name])
    if not hasattr(command, "commands"):
        yield " ".join(path), command


def _block(path: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    what, _, more = " ".join((command.help or "").split("\n")).partition(". ")
    usage = " ".join([path, *(_argument(argument) for argument in arguments)])
    rows = [f"| `{_argument(p)}` | {_told(p)} |" for p in arguments]
    rows += [f"| `{_option(p)}` | {_told(p)} |" for p in options]
    example = "\n".join(
        line.removeprefix("Example: ").strip()
        for line in (command.epilog or "").replace("\b", "").splitlines()
        if line.strip() not in ("", "Examples:")
    )
    return f"""<details><summary><code>{usage}</code>: {what.rstrip(".")}</summary>

{_paragraph(more)}| | |
| --- | --- |
{chr(10).join(rows)}

```
{example}
```

</details>"""


def _paragraph(text: str) -> str:
    return f"{' '.join(text.split())}\n\n" if text.strip() else ""


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).strip("[]{}").upper()
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    names = " / ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    found = (word for kind, word in KINDS.items() if parameter.type.name.lower().startswith(kind))
    return f"{names} {next(found, 'TEXT')}"


def _told(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = parameter.default
    shown = default is not None and not parameter.required and not isinstance(default, bool)
    if shown and isinstance(default, str | int | float | Path) and "[default" not in text:
        text += f" [default: {default}]"
    if parameter.required and parameter.param_type_name == "option":
        text += " [needed]"
    if getattr(parameter, "envvar", None):
        text += f" [or the environment's {parameter.envvar}]"
    return text.replace("|", "\\|")


def renewed(text: str) -> str:
    """Give README's text with the block between its markers made anew."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"no {BEGIN} … {END} in the file; put both lines where the reference belongs")
    return before + reference() + after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=README)
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 if it is old")
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8")
    new = renewed(text)
    if options.check and new != text:
        sys.exit(f"{options.file}: its reference of commands is not up to date; run: {MEND}")
    if not options.check:
        options.file.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
