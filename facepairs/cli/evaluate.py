"""`facepairs evaluate`."""

from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from typer import Argument, Option

from facepairs.cli.shared.options import (
    Families,
    Groups,
    Json,
    Lists,
    Pairs,
    typed_command,
)
from facepairs.cli.shared.output import NEGATIVE, OK, log, print_json, print_result
from facepairs.errors import BadConfig
from facepairs.support.places import check_output_file

EXAMPLE = "Example: facepairs evaluate run/bundle default photos/ --report report.html"


def evaluate(
    sources: Annotated[
        list[str] | None,
        Argument(
            metavar="SOURCE... [DATA]",
            help="One source to measure or several to compare: bundles (`default`: the included "
            "model), TOML files of other embedders, scores files, folders of crossval. Then the "
            "folder of Person_Name/photo.jpg.",
            show_default=False,
        ),
    ] = None,
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
    tables: Annotated[
        Path | None, Option(help="Folder to write every table to, as CSV and LaTeX.")
    ] = None,
    figures: Annotated[
        Path | None, Option(help="Folder to write every figure to, as SVG and PNG.")
    ] = None,
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
    replay: Annotated[
        Path | None,
        Option(
            metavar="REPORT.json",
            help="Compute the figures of an earlier --json again from its scores, and compare.",
        ),
    ] = None,
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
    from facepairs.evaluation.report.figures import write_figures, write_tables

    if replay is not None:
        others = (protocol, lists, pairs, out, report, tables, figures, groups, families, factors)
        if sources or no_images or identification or any(one is not None for one in others):
            raise BadConfig("works alone, or with --json; leave out the rest", "replay")
        _replay(replay, json)
    if not sources:
        raise BadConfig("give a verifier and a folder of photos, or a scores file", "sources")
    _check_outputs(out, report, tables, figures)
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
    result = result.with_command(typed_command())
    if report is not None:
        write_page(result, report, not no_images)
    if tables is not None:
        write_tables(result.tables(), tables)
    if figures is not None:
        write_figures(result.figures().values(), figures)
    if json:
        print_json(result.result)
    else:
        print(result)
        for path in filter(None, (out, report, tables, figures)):
            log(f"written: {path}")


def _check_outputs(
    out: Path | None, report: Path | None, tables: Path | None, figures: Path | None
) -> None:
    """Refuse places that cannot be written, before anything is measured."""
    from facepairs.evaluation.report.figures import check_folder
    from facepairs.verification.provenance import check_scores_file

    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise BadConfig(f"{report}: use a name that ends in .html", "report")
    checks = ((out, check_scores_file), (report, check_output_file))
    for path, check in (*checks, (tables, check_folder), (figures, check_folder)):
        if path is not None:
            check(path)


def _replay(report: Path, json: bool) -> NoReturn:
    """Compute the figures of a report again, print whether they are the same, and exit."""
    from facepairs.evaluation.replay import replay

    found = replay(report)
    rows = [("the same" if found.same else "differs", found.describe())]
    rows += [
        (one.figure, f"{one.reported} in the report, {one.again} again")
        for one in found.differences
    ]
    print_result(json, found, rows)
    raise typer.Exit(OK if found.same else NEGATIVE)
