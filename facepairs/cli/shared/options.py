"""Options that several commands share. Each name means the same thing everywhere.

`--out` names the output, `--json` prints the result as JSON, `--bundle` is a trained verifier,
`--model` an architecture to train, `--pairs` a CSV file of pairs.
"""

import sys
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Argument, Option

from facepairs import choices, recipes
from facepairs.support.places import is_remote, refuse_url
from facepairs.support.words import command_line


def path(text: str) -> str:
    """Return a path or a URI unchanged; `pathlib` would turn `//` into one slash."""
    return text


def joined(choice: Any) -> str:
    """Return the values of a type of `choices`, separated by commas."""
    return ", ".join(get_args(choice))


VERIFIER = "Bundle of `train` or `calibrate`, fetched network, TOML of another, or `default`."
Data = Annotated[Path, Argument(help="Folder of Person_Name/photo.jpg.")]
AnyData = Annotated[str, Argument(parser=path, help="Folder of Person_Name/photo.jpg.")]
BundleArgument = Annotated[
    str, Argument(help="Bundle of `train` or `calibrate`, or `default` for the included model.")
]
VerifierArgument = Annotated[str, Argument(metavar="BUNDLE", help=VERIFIER)]
Bundle = Annotated[str, Option("--bundle", help=VERIFIER, envvar="FACEPAIRS_BUNDLE")]
Threshold = Annotated[float | None, Option(help="Accept at this score and above.")]
MaxFmr = Annotated[
    float | None,
    Option(help="Use the bundle's threshold for this false match rate, such as 0.01."),
]
Prior = Annotated[float, Option(help="Expected share of genuine pairs, for the probability.")]
# Eager, so that it is known when the value of another option is refused.
Json = Annotated[bool, Option("--json", is_eager=True, help="Print the result as JSON.")]
Lists = Annotated[Path | None, Option(help="Folder of the official lists.")]
Pairs = Annotated[Path | None, Option(help="CSV file left,right,genuine with paths below DATA.")]
Groups = Annotated[
    Path | None, Option(help="CSV file person,group: also measure errors within these groups.")
]
Families = Annotated[
    Path | None,
    Option(help="CSV file person,family: intervals do not count relatives as independent."),
]
Model = Annotated[recipes.Model | None, Option(help="Architecture to train. [default: resnet]")]
Seed = Annotated[int | None, Option(help="Seed of everything random. [default: 0]")]
SkipBad = Annotated[bool, Option("--skip-bad", help="Leave out photos without a readable face.")]
Align = Annotated[
    choices.Align | None,
    Option(help="Align faces, or use photos framed like LFW's. [default: landmarks]"),
]
Config = Annotated[Path | None, Option(help="TOML file of settings; options override it.")]
Runner = Annotated[
    str | None,
    Option(
        help="Apache Beam runner to use: DirectRunner, DataflowRunner, FlinkRunner, SparkRunner, "
        "…  [default: threads of this machine]"
    ),
]
BeamOptions = Annotated[
    list[str] | None,
    Argument(
        metavar="[-- BEAM OPTIONS]",
        help="Beam's own options, with --runner.",
        show_default=False,
    ),
]


def uses_beam(runner: str | None, options: list[str] | None, *places: str | None) -> bool:
    """Return whether a runner, Beam's options or a remote place ask for Beam.

    Raises:
        BadData: A place is a web address.
    """
    for place in places:
        if place is not None and not is_remote(place):
            refuse_url(place)
    return bool(runner or options or any(place and is_remote(place) for place in places))


def typed_command() -> str:
    """Return the command line of this process, quoted for a shell."""
    return command_line(*sys.argv[1:])
