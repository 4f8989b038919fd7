"""The `facepairs` command: collects the commands and turns errors into one line and exit code 2.

Exit codes: 0 done (`verify`: same person), 1 a negative finding (`verify`: different people,
`data check`: something is wrong), 2 an error, 3 a score without a threshold to decide by (`verify`
with an embedder made elsewhere), 130 interrupted, 138 another worker of a training was lost.
"""

import errno
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

import typer

import facepairs
from facepairs.cli.output import ERROR, INTERRUPTED, bear_any_name, print_error
from facepairs.cli.quiet import VERBOSE, hush
from facepairs.errors import NO_PLACE, FacepairsError

COMMANDS = ("train", "evaluate", "crossval", "calibrate", "verify", "info", "export", "bench")
GROUPS = ("data", "cache")
EXHAUSTED = "ResourceExhaustedError"  # TensorFlow's
UNMAPPED = ("failed to map segment", "annot allocate memory")  # a library that finds no room
UNPLACED = "No usable temporary directory"  # Python's
FREE_SPACE = "free space or choose another place"
SHORTAGES = {  # of the machine, wherever they strike: no bugs
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: FREE_SPACE,
    errno.EFBIG: "raise the limit (ulimit -f)",
    errno.EROFS: "choose another place",
    errno.EMFILE: "raise the limit (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "free memory or raise the limit (ulimit -v)",
    errno.EAGAIN: "raise the limit (ulimit -u) or free memory",
    errno.EIO: "the disk has failed there",
}


def _version(wanted: bool) -> None:
    if wanted:
        print(f"facepairs {facepairs.__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
    verbose: bool = typer.Option(
        False, "--verbose", help="Show what libraries warn of and log, too; before the command."
    ),
) -> None:
    """Turn a folder of faces into a face verifier whose errors are known."""
    if verbose:
        os.environ[VERBOSE] = "1"
    hush()


def build_app(names: Iterable[str] = (*COMMANDS, *GROUPS)) -> typer.Typer:
    """Give the command line with the commands named, each from the file of its name."""
    app = typer.Typer(
        name="facepairs",
        help="Turn a folder of faces into a face verifier whose errors are known.",
        epilog="Example: facepairs train photos/ --out run && facepairs verify a.jpg b.jpg "
        "--model run/bundle",
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
    bear_any_name()
    try:
        code = _run(arguments, "--json" in arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ERROR
    sys.exit(code)


def _run(arguments: list[str], as_json: bool) -> int:
    every = (*COMMANDS, *GROUPS)
    first = [word for word in arguments if not word.startswith("-")][:1]
    wanted = [name for name in first if name in every]  # one alone starts sooner
    try:
        code = typer.main.get_command(build_app(wanted or every)).main(
            arguments, prog_name="facepairs", standalone_mode=False
        )
    except FacepairsError as error:
        print_error(error.kind, str(error), as_json)
        return ERROR
    except (KeyboardInterrupt, typer.Abort):
        print_error("interrupted", "interrupted", as_json)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - bugs are raised on
        if short := _shortage(error):
            print_error("system", short, as_json)
            return ERROR
        return _usage(error, as_json)
    return code if isinstance(code, int) else 0


def _shortage(error: Exception) -> str:
    """Say what the machine ran out of, where that is what an error tells; "" elsewhere."""
    unmapped = isinstance(error, ImportError) and any(word in str(error) for word in UNMAPPED)
    if unmapped or isinstance(error, MemoryError) or type(error).__name__ == EXHAUSTED:
        return "out of memory; free some or raise the limit (ulimit -v), or give less at once"
    if isinstance(error, FileNotFoundError) and UNPLACED in str(error):
        return NO_PLACE
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}; {SHORTAGES[error.errno]}"
    return ""


def _usage(error: Any, as_json: bool) -> int:
    """Print a mistake in the command's words (click's UsageError) as one line; raise bugs on."""
    if not hasattr(error, "format_message"):
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help())
        return ERROR
    where = error.ctx.command_path if getattr(error, "ctx", None) else "facepairs"
    message = error.format_message().replace("\n", " ").rstrip(".")
    print_error("usage", f"{message}; see {where} --help", as_json)
    return ERROR
