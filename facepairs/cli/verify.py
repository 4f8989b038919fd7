"""`facepairs verify`: two photos, a list of pairs, or one photo against a folder."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from facepairs.choices import FaceChoice
from facepairs.cli import verify_output
from facepairs.cli.options import BeamOptions, Json, Runner, path
from facepairs.cli.output import (
    NEGATIVE,
    OK,
    UNDECIDED,
    log,
    print_json,
    print_rows,
    progress_display,
)

EXAMPLE = """\b
Examples:
  facepairs verify a.jpg b.jpg
  facepairs verify a.jpg b.jpg --max-fmr 0.001 --json
  facepairs verify a.jpg group.jpg --face all
  facepairs verify a.jpg b.jpg --show verdict.png
  facepairs verify --pairs pairs.csv --out scores.csv
  facepairs verify --pairs pairs.csv --out scores.csv --resume
  facepairs verify --pairs pairs.csv --out scores.csv --runner DirectRunner
  facepairs verify a.jpg --against photos/ --top 5
"""
SCHEMA = 1
EXIT_CODES = {True: OK, False: NEGATIVE, None: UNDECIDED}
DEFAULT_TOP = 10


class Settings(NamedTuple):
    """What all three modes need."""

    bundle: str
    threshold: float | None
    max_fmr: float | None
    framing: bool
    json: bool


def verify(
    left: Annotated[str | None, typer.Argument(metavar="[A]", help="One photo.")] = None,
    right: Annotated[str | None, typer.Argument(metavar="[B]", help="The other photo.")] = None,
    beam: BeamOptions = None,
    bundle: Annotated[
        str,
        typer.Option(
            "--bundle",
            "--model",
            help="Bundle made by `facepairs train`, a TOML file that describes another embedder, "
            "or the word default: the packaged bundle.",
            envvar=["FACEPAIRS_BUNDLE", "FACEPAIRS_MODEL"],
        ),
    ] = "default",
    threshold: Annotated[
        float | None,
        typer.Option(help="Accept at this score and above. [default: the bundle's threshold]"),
    ] = None,
    max_fmr: Annotated[
        float | None,
        typer.Option(help="Use the bundle's threshold for this false match rate, such as 0.001."),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(parser=path, help="Score a CSV file left,right[,genuine]; needs --out."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(parser=path, help="CSV file to write, with --pairs or --against."),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            parser=path,
            help="Folder that the paths in PAIRS are relative to. [default: that of PAIRS]",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted --pairs run.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare A with every photo below this folder, best first."),
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Matches to print with --against. [default: 10]")
    ] = None,
    framing: Annotated[
        bool,
        typer.Option(
            " /--no-framing",
            help="Use photos as they are, already framed as LFW is. By default faces are found, "
            "rotated upright and framed; images of 250x250 pixels or of the model's frame are "
            "used as they are.",
        ),
    ] = True,
    face: Annotated[
        FaceChoice, typer.Option(help="Compare the largest faces, or all of A with all of B.")
    ] = "largest",
    show: Annotated[
        Path | None,
        typer.Option(help="Picture to write: both photos, the faces compared, and the verdict."),
    ] = None,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Decide whether two photos show the same person; or score many pairs, or one against many.

    Faces are found and framed first; photos that are hard to judge get a warning. With --face all,
    the best of all comparisons decides. In JSON, `faces` has for left and right whether the face
    was framed, its box [left, top, side] in pixels, its rotation in degrees, the number of faces,
    and hints; `comparisons` lists all of --face all.

    Exit codes for two photos: 0 the same person, 1 different people, 2 an error, 3 no threshold.
    For --pairs and --against: 0 done, 1 done but some pairs or photos could not be used. With
    facepairs[beam], --pairs, --root and --out may be gs://, s3:// or hdfs:// places.
    """
    settings = Settings(bundle, threshold, max_fmr, framing, json)
    every = face == "all"
    words = [word for word in (left, right, *(beam or ())) if word is not None]
    if pairs is not None:
        _refuse("--pairs", against=against, top=top, show=show, face=every)
        if out is None:
            raise typer.BadParameter("--pairs needs --out, the CSV file to write")
        if runner is None:
            _refuse("--pairs", A=left, B=right)
        _verify_pairs(settings, pairs, out, root, resume, runner, words)
        return
    if len(words) > 2:
        raise typer.BadParameter(f"unexpected: {' '.join(words[2:])}")
    if against is not None:
        _refuse("--against", B=right, root=root, resume=resume, show=show, face=every)
        _refuse("--against", runner=runner)
        if left is None:
            raise typer.BadParameter("--against needs the photo to compare: verify A --against DIR")
        target = None if out is None else Path(out)
        _verify_against(settings, Path(left), against, target, top or DEFAULT_TOP)
    else:
        if left is None or right is None:
            raise typer.BadParameter("give two photos, or --pairs, or a photo and --against")
        _refuse("two photos", out=out, root=root, resume=resume, top=top, runner=runner)
        _verify_two(settings, Path(left), Path(right), every, show)


def _refuse(mode: str, **options: Any) -> None:
    """Raise for an option that was given and that the mode does not have."""
    for name, value in options.items():
        if value is not None and value is not False:
            option = name if name.isupper() else f"--{name}"
            raise typer.BadParameter(f"{option} does not go with {mode}")


def _verify_two(
    settings: Settings, left: Path, right: Path, every: bool, show: Path | None
) -> None:
    from facepairs.bundles.thresholds import operating_point
    from facepairs.verification.verifier import Verifier

    if show is not None:
        from facepairs.faces.overlay import check_out, write_overlay

        check_out(show)
    bundle, threshold, max_fmr, framing, json = settings
    verifier = Verifier.load(bundle, quick=True)
    point = operating_point(verifier.bundle, threshold, max_fmr)
    verdicts = verifier.verify_every(left, right, threshold, max_fmr, framing, every)
    best = max(verdicts, key=lambda verdict: verdict.score)
    if show is not None:
        write_overlay(show, left, right, best)
    for line in verify_output.warnings_of(best, left, right):
        log(line)
    if json:
        comparisons = [verify_output.verdict_json(one) for one in verdicts]
        print_json(
            {
                **verify_output.verdict_json(best),
                **point.to_json(),
                "left": str(left),
                "right": str(right),
                "model": bundle,
                "schema": SCHEMA,
                **({"comparisons": comparisons} if every else {}),
            }
        )
    else:
        print_rows(verify_output.verdict_rows(best, point))
        if len(verdicts) > 1:
            print_rows(verify_output.comparison_rows(verdicts))
    raise typer.Exit(EXIT_CODES[best.same])


def _verify_pairs(
    settings: Settings,
    pairs: str,
    out: str,
    root: str | None,
    resume: bool,
    runner: str | None,
    beam_options: list[str],
) -> None:
    from facepairs.beam.verify_pairs import verify_pairs_at
    from facepairs.bundles.thresholds import operating_point
    from facepairs.verification.verifier import Verifier

    bundle, threshold, max_fmr, framing, json = settings
    verifier = Verifier.load(bundle, threads=1)
    point = operating_point(verifier.bundle, threshold, max_fmr)
    try:
        report = verify_pairs_at(
            verifier,
            pairs,
            out,
            point,
            root,
            resume,
            progress=progress_display(json),
            framing=framing,
            runner=runner,
            beam_options=beam_options,
        )
    except KeyboardInterrupt:
        if runner is None:
            log("stopped and saved; continue with the same command and --resume")
        raise
    if report.failed:
        counts = f"{report.failed:,} of {report.pairs:,} pairs"
        log(f"warning: {counts} could not be scored; see column error of {out}")
    if json:
        values = {**vars(report), **point.to_json()}
        print_json({**values, "out": out, "model": bundle, "schema": SCHEMA})
    else:
        print_rows(verify_output.batch_rows(report, point, out))
    raise typer.Exit(NEGATIVE if report.failed else OK)


def _verify_against(
    settings: Settings, photo: Path, folder: Path, out: Path | None, top: int
) -> None:
    from facepairs.bundles.thresholds import operating_point
    from facepairs.verification.ranking import verify_against
    from facepairs.verification.verifier import Verifier

    bundle, threshold, max_fmr, framing, json = settings
    verifier = Verifier.load(bundle, threads=1)
    point = operating_point(verifier.bundle, threshold, max_fmr)
    progress = progress_display(json)("comparing photos")
    ranking = verify_against(verifier, photo, folder, point, progress, framing)
    if out is not None:
        ranking.write(out)
    if json:
        values = {**ranking.to_json(top), **point.to_json()}
        print_json({**values, "folder": str(folder), "model": bundle, "schema": SCHEMA})
    else:
        print_rows(verify_output.ranking_rows(ranking, top))
        print_rows(verify_output.threshold_rows(point))
        for line in verify_output.ranking_warnings(ranking):
            log(line)
    raise typer.Exit(NEGATIVE if ranking.failed else OK)
