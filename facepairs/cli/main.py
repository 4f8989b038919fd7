"""The `facepairs` command: collect the commands, and turn errors into one line and an exit code.

Exit codes: 0 success (`verify`: same person; `gallery identify`: somebody known); 1 a negative
finding (`verify`: different people, `data check`: something is wrong); 2 an error; 3 no verdict
(a face of too few pixels, or an embedder without a threshold); 70 a bug of facepairs; 130
interrupted; 138 another worker of a distributed training was lost.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib import import_module
from itertools import takewhile
from typing import Any, NoReturn

import typer
from typer import Option

import facepairs
from facepairs.choices import MAX_MEGAPIXELS, NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.cli.shared.output import (
    ERROR,
    INTERRUPTED,
    QUIET,
    VERBOSE,
    describe_failure,
    escape_unencodable,
    is_usage_error,
    open_streams,
    print_error,
    quiet_tensorflow,
    report_bug,
    report_error,
    report_usage_error,
    show_warnings,
    silence_libraries,
)
from facepairs.cli.shared.progress import showing_on_stderr
from facepairs.errors import FacepairsError, one_line
from facepairs.support.extras import require_extras
from facepairs.support.places import refuse_input, refuse_url

GROUPS = ("gallery", "data", "cache")
COMMANDS = (  # in the order of use
    "verify", "score", "search", "group", "gallery", "data", "calibrate", "evaluate", "train",
    "crossval", "info", "export", "serve", "cache", "bench", "demo",
)  # fmt: skip
OUTPUTS = ("out", "report", "show")
NEEDS = {  # the extras of commands and groups; `evaluate` and `demo` ask for theirs
    **dict.fromkeys(("train", "crossval", "export", "bench", "cache"), ("train",)),
    "cache forget": (),
    **dict.fromkeys(("calibrate", "group"), ("measure",)),
    "serve": ("serve",),
}
FLAG: dict[str, Any] = {"is_flag": True, "default": False}
WHOLE: dict[str, Any] = {"type": int}
FILE: dict[str, Any] = {"type": str, "metavar": "FILE"}
EVERYWHERE = {  # options of every command, before or after its name: what they set, and their kind
    "--quiet": (QUIET, FLAG, "Print nothing on stderr but errors."),
    "--verbose": (VERBOSE, FLAG, "Show warnings and logs of libraries."),
    "--cache": (PHOTO_CACHE, FILE, "Keep what is found in photos in this file."),
    "--no-cache": (NO_PHOTO_CACHE, FLAG, "Keep nothing of what is found in photos."),
    "--max-megapixels": (MAX_MEGAPIXELS, WHOLE, "Read photos of up to this size.  [default: 52]"),
}


def _version(requested: bool) -> None:
    if requested:
        print(f"facepairs {facepairs.__version__}")
        raise typer.Exit


def _root(
    version: bool = Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Turn a folder of faces into a face verifier whose errors are known."""


def build_command(names: Iterable[str] = COMMANDS) -> Any:
    """Return the command line with these commands as a click command, with what all share."""
    command: Any = typer.main.get_command(build_app(names))
    command.commands = {name: command.commands[name] for name in names}  # typer puts groups last
    _complete(command)
    return command


def _complete(command: Any, words: Sequence[str] = ("facepairs",)) -> None:
    """Add what all commands share: options, the check for extras, no URL in place of a path.

    Args:
        command: A click command, or a group of them.
        words: What a user types for it.
    """
    paths = {parameter.name for parameter in command.params if hasattr(parameter.type, "dir_okay")}
    children = getattr(command, "commands", {})
    if not children:
        extras = NEEDS.get(" ".join(words[1:]), NEEDS.get(words[1], ()))
        flags = {option[2:].replace("-", "_"): option for option in EVERYWHERE}
        flags |= {
            one.name: one.opts[0] if one.param_type_name == "option" else one.human_readable_name
            for one in command.params
        }
        command.callback = _checked(command.callback, words, extras, paths, flags)
    for option, (_, kind, text) in EVERYWHERE.items():
        names = [option, f"everywhere{option.replace('-', '_')}"]  # no command's own name
        command.params.append(
            typer.core.TyperOption(param_decls=names, expose_value=False, help=text, **kind)
        )
    for name, child in children.items():
        _complete(child, (*words, name))


def _checked(
    callback: Callable[..., Any],
    words: Sequence[str],
    extras: Sequence[str],
    paths: set[str],
    flags: dict[str, str],
) -> Callable[..., Any]:
    @wraps(callback)
    def checked(**values: Any) -> Any:
        try:
            require_extras(extras, " ".join(words))
            if "train" in extras:
                quiet_tensorflow()
            for name in paths:
                if values[name] is not None:
                    refuse_url(values[name])
            inputs = [value for name, value in values.items() if name not in OUTPUTS]
            for name in OUTPUTS:
                if values.get(name):
                    refuse_input(values[name], inputs)
            with showing_on_stderr(values.get("json", False)):
                return callback(**values)
        except KeyboardInterrupt:  # typer would end without a line
            raise typer.Abort from None
        except FacepairsError as error:
            return report_error(error, flags, bool(values.get("json")))

    return checked


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands, each from the module of its name."""
    app = typer.Typer(
        name="facepairs",
        help="Turn a folder of faces into a face verifier whose errors are known.",
        epilog="Example: facepairs train photos/ --out run && facepairs verify a.jpg b.jpg "
        "--bundle run/bundle",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for name in names:
        module = import_module(f"facepairs.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(epilog=module.EXAMPLE)(getattr(module, name))
    return app


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    open_streams()
    escape_unencodable()
    ours = list(takewhile(lambda word: word != "--", arguments))  # Beam's options come after it
    for word, following in zip(ours, [*ours[1:], ""], strict=False):
        option, _, value = word.partition("=")
        if option in EVERYWHERE:
            variable, kind, _ = EVERYWHERE[option]
            os.environ[variable] = "1" if kind is FLAG else value or following
    silence_libraries()
    show_warnings()
    code = 0
    try:
        code = _run(arguments, "--json" in ours)
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


def _run(arguments: list[str], as_json: bool) -> int:
    # Importing one command starts sooner; a second one may be an option's value, or the other way.
    selected = [name for name in COMMANDS if name in arguments] or COMMANDS
    try:
        code = build_command(selected).main(arguments, prog_name="facepairs", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print_error("interrupted", "interrupted", as_json)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - what remains is a bug, and is reported as one
        if is_usage_error(error):
            return report_usage_error(error, as_json)
        if failure := describe_failure(error):
            print_error("system", failure, as_json)
            return ERROR
        return report_bug(error, as_json)
    return code if isinstance(code, int) else 0
