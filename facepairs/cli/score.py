"""`facepairs score`: a list of pairs in, their scores out."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from facepairs.cli.shared.options import (
    BeamOptions,
    Bundle,
    Json,
    MaxFmr,
    Prior,
    Runner,
    Threshold,
    path,
    uses_beam,
)
from facepairs.cli.shared.output import NEGATIVE, OK, log, print_result
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.verification.score_list import PairsReport

EXAMPLE = """\b
Examples:
  facepairs score pairs.csv --out scores.csv
  facepairs score pairs.csv --out scores.csv --root photos/ --max-fmr 0.001
  facepairs score pairs.csv --out scores.csv --runner DirectRunner
"""


def score(
    pairs: Annotated[Path, Argument(help="CSV file left,right[,genuine].")],
    out: Annotated[Path, Option(help="CSV file to write.")],
    beam: BeamOptions = None,
    root: Annotated[
        str | None,
        Option(
            parser=path,
            help="Folder of the photos named in PAIRS. [default: the folder of PAIRS]",
        ),
    ] = None,
    bundle: Bundle = "default",
    threshold: Threshold = None,
    max_fmr: MaxFmr = None,
    prior: Prior = 0.5,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Score a list of pairs of photos.

    Compares the most prominent face of each photo; reads each photo once, whatever the number of
    its pairs. OUT has the rows of PAIRS with score, probability, decision, faces and hints. Run the
    same command again to continue after an interruption.

    Exit codes: 0 done, 1 done but some pairs could not be scored, 2 an error. With the extra beam,
    --root may be a gs://, s3:// or hdfs:// place.
    """
    from facepairs.bundles.error_profile import check_prior
    from facepairs.verification.provenance import check_scores_file
    from facepairs.verification.score_list import score_list
    from facepairs.verification.verifier import Verifier

    check_scores_file(out)
    check_prior(prior)
    verifier = Verifier.load(bundle, threads=1)
    point = verifier.operating_point(threshold, max_fmr)
    if uses_beam(runner, beam, root):
        from facepairs.beam.score_list import score_list_at

        report = score_list_at(verifier, pairs, out, point, root, runner, beam or [], prior)
    else:
        report = score_list(verifier, pairs, out, point, Path(root) if root else None, prior)
    for line in _report_warnings(report, pairs, out, bundle):
        log(line)
    print_result(json, report, _report_rows(report))
    log(f"written: {out}, and the origin of the scores: {out}.json")
    raise typer.Exit(NEGATIVE if report.failed else OK)


def _report_warnings(report: "PairsReport", pairs: Path, out: Path, bundle: str) -> Iterator[str]:
    """Yield the warnings about the scores."""
    if report.failed:
        counts = f"{report.failed:,} of {report.pairs:,} pairs"
        advice = f"; --root names the folder of the photos that {pairs} lists"
        advice = advice if report.images == report.images_failed else ""
        yield (
            f"warning: {counts} could not be scored, first: {report.first_error} (column error of "
            f"{out}){advice}"
        )
    if report.same_content:
        yield (
            f"warning: {counted(report.same_content, 'pair')} of a photo and itself or a copy "
            "(hint same-content), so a match says nothing"
        )
    if report.pairs_with_known_people:
        yield (
            f"warning: {counted(report.pairs_with_known_people, 'pair')} with people that {bundle} "
            "was trained or calibrated on; expect more errors with other people"
        )


def _report_rows(report: "PairsReport") -> list[tuple[str, str]]:
    """Return the counts of a scored list of pairs."""
    from facepairs.bundles.error_profile import describe_prior
    from facepairs.verification.verdict import error_rows, threshold_text

    rows = [("pairs", f"{report.pairs:,}"), ("images", f"{report.images:,}, each read once")]
    if report.same is not None:
        rows.append(("same person", f"{report.same:,}"))
    return [
        *rows,
        ("failed", f"{report.failed:,}"),
        ("several faces", f"{counted(report.several_faces, 'image')}: the most prominent was used"),
        ("threshold", threshold_text(report.point)),
        *error_rows(report.point),
        ("probability", f"at {describe_prior(report.prior)}"),
    ]
