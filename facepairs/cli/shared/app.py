"""The base of every command: global options, and errors as one line and an exit code.

Global options stand before or after the name of a command. Each sets an environment variable, so
that child processes follow it too.
"""

import os
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.models import CommandFunctionType

from facepairs.choices import DEVICE, MAX_MEGAPIXELS, NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.cli.shared.output import (
    QUIET,
    VERBOSE,
    report,
    set_up_tensorflow,
    show_warnings,
    silence_libraries,
)
from facepairs.cli.shared.progress import showing_on_stderr
from facepairs.support.places import refuse_input, refuse_url

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
            os.environ[variable] = "1" if value is True else str(value)

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
