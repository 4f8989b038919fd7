"""The `facepairs` command: commands are loaded when needed; an error is one line and an exit code.

Exit codes: 0 success (`verify`: same person; `gallery identify`: a known person); 1 a negative
finding (`verify`: different people, `data check`: an error in the folder, `drift`: a change,
`evaluate --replay`: other figures); 2 an error; 3 no verdict (a face of too few pixels, or an
embedder without a threshold); 70 a bug of facepairs; 130 interrupted; 138 another worker of a
distributed training was lost.

Global options stand before or after the name of a command. Each sets an environment variable, so
that child processes follow it too.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command
from typer.models import CommandFunctionType

import facepairs
from facepairs.choices import DEVICE, MAX_MEGAPIXELS, NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.cli.shared.output import (
    ERROR,
    OK,
    QUIET,
    VERBOSE,
    escape_unencodable,
    open_streams,
    print_error,
    report,
    set_up_tensorflow,
    show_warnings,
    showing_on_stderr,
    silence_libraries,
)
from facepairs.errors import one_line
from facepairs.support.places import refuse_input, refuse_url

COMMANDS = (  # in the order of use
    "verify", "score", "search", "group", "gallery", "data", "fetch", "calibrate", "plan",
    "evaluate", "train", "crossval", "drift", "info", "export", "serve", "cache", "forget",
    "bench", "demo",
)  # fmt: skip
SUMMARY = "Turn a folder of faces into a face verifier whose errors are known."
EXAMPLE = (
    "Example: facepairs train photos/ --out run && facepairs verify a.jpg b.jpg --bundle run/bundle"
)
OUTPUTS = ("out", "report")  # parameters that name what a command writes


def global_options() -> list[TyperOption]:
    """Return the options that may stand before or after the name of a command."""
    return [
        _option("--quiet", QUIET, "Print nothing on stderr but errors.", is_flag=True),
        _option("--verbose", VERBOSE, "Show warnings and logs of libraries.", is_flag=True),
        _option("--photo-cache", PHOTO_CACHE, "Remember photos in this file.", metavar="FILE"),
        _option("--no-photo-cache", NO_PHOTO_CACHE, "Do not remember photos.", is_flag=True),
        _option(
            "--max-megapixels",
            MAX_MEGAPIXELS,
            "Read photos up to this size.  [default: 52]",
            type=int,
        ),
        _option(
            "--device",
            DEVICE,
            "Run networks on cpu, cuda, openvino or coreml.  [default: auto]",
            metavar="NAME",
        ),
    ]


def _option(name: str, variable: str, text: str, **kind: Any) -> TyperOption:
    """Return an option that sets an environment variable when it is given."""

    def set_variable(_context: object, _option: object, value: object) -> None:
        if value is not None and value is not False:
            os.environ[variable] = str(value)

    return TyperOption(
        param_decls=[name], callback=set_variable, expose_value=False, help=text, **kind
    )


class Command(TyperCommand):
    """A command with the global options; whose errors are one line."""

    def __init__(self, *, params: list[Any], **settings: Any) -> None:
        super().__init__(params=[*params, *global_options()], **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and return its exit code, None for 0."""
        silence_libraries()
        show_warnings()
        set_up_tensorflow()
        as_json = bool(ctx.params.get("json"))
        try:
            self._check_places(ctx.params)
            with showing_on_stderr(as_json):
                return super().invoke(ctx)
        except (typer.Exit, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a bug, too, is reported
            return report(error, self._typed_names(), as_json)

    def _check_places(self, values: dict[str, Any]) -> None:
        """Refuse a URL in place of a path, and an output that is also an input."""
        for parameter in self.params:
            is_path = hasattr(parameter.type, "dir_okay")
            if is_path and (value := values.get(parameter.name or "")) is not None:
                refuse_url(value)
        inputs = [value for name, value in values.items() if name not in OUTPUTS]
        for name in OUTPUTS:
            if values.get(name):
                refuse_input(values[name], inputs)

    def _typed_names(self) -> dict[str, str]:
        """Return each parameter's name on the command line: `--max-fmr`, or `DATA`."""
        return {
            parameter.name or "": parameter.opts[0]
            if parameter.param_type_name == "option"
            else parameter.human_readable_name
            for parameter in self.params
        }


class Group(TyperGroup):
    """A group of commands, with the global options."""

    def __init__(self, *, params: list[Any], **settings: Any) -> None:
        super().__init__(params=[*params, *global_options()], **settings)


class App(typer.Typer):
    """A command, or a group of them, made of `Command` and `Group`."""

    def __init__(self, **settings: Any) -> None:
        # The root alone installs completion. Markup would import rich.
        defaults = {"cls": Group, "add_completion": False, "rich_markup_mode": None}
        super().__init__(**{**defaults, **settings})

    def command(
        self, *args: Any, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Register a function as a `Command`; arguments as for `typer.Typer.command`."""
        return super().command(*args, cls=Command, **settings)


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
    version: bool = Option(False, "--version", callback=_version, help="Print the version."),
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
    code = OK
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
    return code if isinstance(code, int) else OK
