"""The `facepairs` command: load a command when it is needed, and turn errors into exit codes.

Exit codes: 0 success (`verify`: same person; `gallery identify`: a known person); 1 a negative
finding (`verify`: different people, `data check`: an error in the folder, `drift`: a change,
`evaluate --replay`: other figures); 2 an error; 3 no verdict (a face of too few pixels, or an
embedder without a threshold); 70 a bug of facepairs; 130 interrupted; 138 another worker of a
distributed training was lost.
"""

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer import Option
from typer.main import get_command

import facepairs
from facepairs.cli.shared.app import App, Group
from facepairs.cli.shared.output import (
    ERROR,
    escape_unencodable,
    open_streams,
    print_error,
    report,
)
from facepairs.errors import one_line

COMMANDS = (  # in the order of use
    "verify", "score", "search", "group", "gallery", "data", "fetch", "calibrate", "plan",
    "evaluate", "train", "crossval", "drift", "info", "export", "serve", "cache", "forget",
    "bench", "demo",
)  # fmt: skip
SUMMARY = "Turn a folder of faces into a face verifier whose errors are known."
EXAMPLE = (
    "Example: facepairs train photos/ --out run && facepairs verify a.jpg b.jpg --bundle run/bundle"
)


class Root(Group):
    """All commands; the module of each is imported when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"facepairs.cli.{cmd_name}")
        app = getattr(module, "app", None)  # of a group
        if app is None:
            app = App()
            app.command(epilog=module.EXAMPLE)(getattr(module, cmd_name))
        return get_command(app)


def _version(requested: bool) -> None:
    if requested:
        print(f"facepairs {facepairs.__version__}")
        raise typer.Exit


def _root(
    version: bool = Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Do nothing: the options act while they are parsed."""


def build_command() -> Any:
    """Return the command line as a click group, whose commands are loaded when they are used."""
    app = App(
        cls=Root,
        help=SUMMARY,
        epilog=EXAMPLE,
        no_args_is_help=True,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    return get_command(app)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    open_streams()
    escape_unencodable()
    code = 0
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except (Exception, SystemExit) as error:  # typer exits when the reader of our output is gone
        if isinstance(error, SystemExit) and not error.code:
            raise  # after a completion
        if code != ERROR and not isinstance(error, (BrokenPipeError, SystemExit)):
            print_error("system", f"standard output: {one_line(str(error))}; free space", False)
        # Python would complain again at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ERROR
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    try:
        code = build_command().main(arguments, prog_name="facepairs", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a bug, too, is reported
        return report(error)
    return code if isinstance(code, int) else 0
