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
            help="One source to measure or several to compare: bundles (`default`: the included "
            "model), TOML files of other embedders, scores files, folders of crossval. Then the "
            "folder of Person_Name/photo.jpg.",
        ),
    ],
    protocol: Annotated[
        Literal["heldout", "view1", "view2", "cfp-fp", "agedb-30", "calfw", "cplfw", "xqlfw"]
        | None,
        Option(
            help="Pairs to measure on, from the data set's own lists; view2 only with the included "
            "model and TOML files. [default: as the bundle was trained]"
        ),
    ] = None,
    lists: Lists = None,
    pairs: Pairs = None,
    out: Annotated[Path | None, Option(help="Scores file to write, for one verifier.")] = None,
    report: Annotated[
        Path | None,
        Option(help="HTML report to write: curves, tables, and photos of the worst errors."),
    ] = None,
    no_images: Annotated[
        bool,
        Option("--no-images", help="Leave photos out of the report, but not names."),
    ] = False,
    groups: Groups = None,
    families: Families = None,
    factors: Annotated[
        Path | None,
        Option(
            help="CSV file photo,… or left,right,… with factors in the other columns, or `faces`: "
            "also measure errors by factor, such as the size of the face.",
        ),
    ] = None,
    identification: Annotated[
        bool,
        Option(
            "--identification",
            help="Also measure how often one verifier finds known people, and mistakes strangers "
            "for them.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Measure a verifier's errors, or those of a scores file.

    Measures a verifier on people it does not know: the balanced accuracy (the mean of the shares of
    strangers and of genuine pairs decided correctly), then the errors of verify's decisions. No
    threshold comes from the pairs it is reported on. Photos without a usable face are left out and
    counted. Several verifiers are compared on the same pairs. Requires the measure extra: pip
    install '.[measure]'
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
        factors=factors,
        identification=identification,
    )
    for line in result.warnings:
        log(f"warning: {line}")
    if report is not None:
        write_page(result, report, typed_command(), not no_images)
    if json:
        print_json(result.result)
    else:
        print(result)
    for path in (out, report):
        if path and not json:
            log(f"written: {path}")
