"""`facepairs evaluate`."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from facepairs.cli.shared.options import (
    Families,
    Groups,
    Json,
    Lists,
    Pairs,
    SkipBad,
    typed_command,
)
from facepairs.cli.shared.output import log, print_json
from facepairs.errors import BadConfig
from facepairs.support.places import check_output_file

EXAMPLE = "Example: facepairs evaluate run/bundle default photos/ --report report.html"


def evaluate(
    sources: Annotated[
        list[str],
        Argument(
            metavar="SOURCE... [DATA]",
            help="What to measure, several to compare: bundles (`default`: the included model), "
            "TOML files of other embedders, scores files, folders of crossval; then the folder of "
            "Person_Name/photo.jpg.",
        ),
    ],
    protocol: Annotated[
        Literal["heldout", "view1", "view2"] | None,
        Option(
            help="Which pairs; view2 with the included model and TOML files only. "
            "[default: as the bundle was trained]"
        ),
    ] = None,
    lists: Lists = None,
    pairs: Pairs = None,
    out: Annotated[Path | None, Option(help="Scores file to write, of one verifier.")] = None,
    report: Annotated[
        Path | None,
        Option(help="HTML page to write: curves, tables, and photos of the worst errors."),
    ] = None,
    no_images: Annotated[
        bool,
        Option("--no-images", help="No photos in the report; names of files and people remain."),
    ] = False,
    groups: Groups = None,
    families: Families = None,
    identification: Annotated[
        bool,
        Option(
            "--identification",
            help="Also measure how often one verifier finds known people and takes strangers for "
            "somebody.",
        ),
    ] = False,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Measure a verifier's errors, or those of a scores file.

    A verifier is measured on people that it does not know. First the balanced accuracy, the mean of
    the shares of strangers and of genuine pairs decided rightly, then the errors as verify decides.
    No threshold comes from the pairs it is reported on. Several verifiers are compared on the same
    pairs. Needs pip install 'facepairs[measure]'
    """
    from facepairs.evaluation.evaluate import evaluate as measure
    from facepairs.evaluation.page.page import write_page
    from facepairs.verification.provenance import check_scores_file

    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise BadConfig(f"{report}: use a name that ends in .html", "report")
    for path, check in ((report, check_output_file), (out, check_scores_file)):
        if path is not None:
            check(path)
    result = measure(
        sources,
        protocol=protocol,
        lists=lists,
        pairs=pairs,
        scores_out=out,
        groups=groups,
        families=families,
        identification=identification,
        skip_bad=skip_bad,
    )
    for line in result.warnings:
        log(f"warning: {line}")
    if report is not None:
        write_page(result, report, typed_command(), not no_images)
    if json:
        print_json(result.to_json())
    else:
        print(result)
    for path in (out, report):
        if path and not json:
            log(f"written: {path}")
