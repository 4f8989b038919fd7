"""`facepairs verify`: two photos, a list of pairs, or one photo against a folder."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from facepairs.cli.output import NEGATIVE, OK, UNDECIDED, print_json, print_rows, say, ticker
from facepairs.cli.runner import BeamOptions, Runner
from facepairs.cli.runner import path as as_typed

if TYPE_CHECKING:
    from facepairs.bundles.thresholds import OperatingPoint
    from facepairs.verification.against import Ranking
    from facepairs.verification.batch import BatchReport
    from facepairs.verification.verifier import Verdict

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
FAILURES_SHOWN = 5


class Faces(StrEnum):
    """Which faces of a photo are compared."""

    LARGEST = "largest"
    ALL = "all"


def verify(
    left: Annotated[str | None, typer.Argument(metavar="[A]", help="One photo.")] = None,
    right: Annotated[str | None, typer.Argument(metavar="[B]", help="The other photo.")] = None,
    beam: BeamOptions = None,
    model: Annotated[
        str,
        typer.Option(
            help="Bundle made by `facepairs train`, or a TOML that describes another embedder; the "
            "word default is the bundle of the package.",
            envvar="FACEPAIRS_MODEL",
        ),
    ] = "default",
    threshold: Annotated[
        float | None, typer.Option(help="Accept at this score and above, not at the bundle's own.")
    ] = None,
    max_fmr: Annotated[
        float | None,
        typer.Option(help="Take the bundle's threshold for this false match rate: 0.001."),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            parser=as_typed, help="Score many pairs: CSV left,right[,genuine]; needs --out."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(parser=as_typed, help="CSV file to write, with --pairs or --against."),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            parser=as_typed,
            help="Folder that the paths in PAIRS count from.  [default: that of PAIRS]",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted --pairs run.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare A with every photo below this folder, best first."),
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="How many to print with --against.  [default: 10]")
    ] = None,
    framing: Annotated[
        bool,
        typer.Option(
            " /--no-framing",
            help="Take photos as they are, framed as LFW is; else faces are found, levelled and "
            "framed, and images of 250x250 pixels or the model's frame are left as they are.",
        ),
    ] = True,
    face: Annotated[
        Faces, typer.Option(help="Compare the largest faces, or all of A with all of B.")
    ] = Faces.LARGEST,
    show: Annotated[
        Path | None,
        typer.Option(help="Draw both photos, the faces compared and the verdict: verdict.png."),
    ] = None,
    runner: Runner = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Tell whether two photos show one person; or score many pairs, or one photo against many.

    Faces are found and framed first; what makes a photo hard to judge is said on stderr. With
    --face all the best of all comparisons decides. In JSON, faces tells for left and right whether
    it was framed, its box [left, top, side] in pixels, by how many degrees it was levelled, how
    many faces there were, and hints; comparisons lists all of --face all.

    Two photos: exit code 0: the same person, 1: different people, 2: an error, 3: no threshold to
    decide by. --pairs and --against: 0: done, 1: done, but some pairs or photos could not be used.
    With facepairs[beam] --pairs, --root and --out may be gs://, s3:// or hdfs:// places.
    """
    every = True if face is Faces.ALL else None
    wanted = threshold, max_fmr
    words = [word for word in (left, right, *(beam or ())) if word is not None]
    if pairs is not None:
        _refuse("--pairs", against=against, top=top, show=show, face=every)
        if out is None:
            raise typer.BadParameter("--pairs needs --out, the CSV file to write")
        if runner is None:
            _refuse("--pairs", A=left, B=right)
        files = Files(pairs, out, root)
        _pairs(model, files, resume, wanted, framing, (runner, words), json)
        return
    if len(words) > 2:
        raise typer.BadParameter(f"unexpected: {' '.join(words[2:])}")
    if against is not None:
        _refuse("--against", B=right, root=root, resume=resume or None, show=show, face=every)
        _refuse("--against", runner=runner)
        if left is None:
            raise typer.BadParameter("--against needs the photo to compare: verify A --against DIR")
        place = None if out is None else Path(out)
        _against(model, Path(left), against, place, top or 10, wanted, framing, json)
    else:
        if left is None or right is None:
            raise typer.BadParameter("give two photos, or --pairs, or a photo and --against")
        _refuse("two photos", out=out, root=root, resume=resume or None, top=top, runner=runner)
        look = framing, bool(every)
        _two(model, Path(left), Path(right), wanted, look, show, json)


class Files(NamedTuple):
    """What --pairs reads and writes, as it was typed."""

    pairs: str
    out: str
    root: str | None


Wanted = tuple[float | None, float | None]  # threshold, max_fmr
Look = tuple[bool, bool]  # framing, every face


def _refuse(mode: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            option = name if name.isupper() else f"--{name}"
            raise typer.BadParameter(f"{option} does not go with {mode}")


def _two(
    model: str, left: Path, right: Path, wanted: Wanted, look: Look, show: Path | None, json: bool
) -> None:
    from facepairs.bundles.thresholds import operating_point
    from facepairs.verification.verifier import Verifier

    if show is not None:
        from facepairs.faces.overlay import check_out, write_overlay

        check_out(show)
    verifier = Verifier.load(model, quick=True)
    point = operating_point(verifier.bundle, *wanted)
    framing, every = look
    verdicts = verifier.verify_every(left, right, *wanted, framing, every)
    best = max(verdicts, key=lambda verdict: verdict.score)
    if show is not None:
        write_overlay(show, left, right, best)
    _say_hints(best, left, right)
    if json:
        print_json(
            {
                "same": best.same,
                "probability": best.probability,
                "score": best.score,
                **point.to_json(),
                "left": str(left),
                "right": str(right),
                "model": model,
                "schema": 1,
                "faces": best.faces_json(),
                **({"comparisons": [_comparison(one) for one in verdicts]} if every else {}),
            }
        )
    else:
        print_rows([*_rows(best), *_rate(point), *_framing_rows(best)])
        if len(verdicts) > 1:
            print_rows(_every_face(verdicts))
    raise typer.Exit(_EXITS[best.same])


def _say_hints(verdict: "Verdict", left: Path, right: Path) -> None:
    for path, portrait in ((left, verdict.left), (right, verdict.right)):
        for hint in portrait.hints if portrait else ():
            say(f"warning: {path}: {hint.text}")


def _framing_rows(verdict: "Verdict") -> list[tuple[str, str]]:
    sides = (("A", verdict.left), ("B", verdict.right))
    return [(name, portrait.told()) for name, portrait in sides if portrait]


def _comparison(verdict: "Verdict") -> dict[str, Any]:
    return {
        "same": verdict.same,
        "probability": verdict.probability,
        "score": verdict.score,
        "faces": verdict.faces_json(),
    }


def _every_face(verdicts: "list[Verdict]") -> list[tuple[str, str]]:
    """Say which faces were compared, by the left edge and top of their boxes, best first."""
    rows = []
    for verdict in sorted(verdicts, key=lambda one: -one.score):
        probability = "" if verdict.probability is None else f"{verdict.probability:.3f}  "
        same = "" if verdict.same is None else _WORDS[verdict.same]
        where = " and ".join(
            portrait.place() for portrait in (verdict.left, verdict.right) if portrait
        )
        rows.append((f"{verdict.score:7.4f}", f"{probability}{same:<16}  {where}"))
    return rows


_WORDS = {True: "same person", False: "different people", None: "none: no threshold given"}
_EXITS = {True: OK, False: NEGATIVE, None: UNDECIDED}


def _rows(verdict: "Verdict") -> list[tuple[str, str]]:
    probability = "none: no calibration given"
    if verdict.probability is not None:
        probability = f"{verdict.probability:.3f} (calibrated, at equal priors)"
    threshold = "" if verdict.threshold is None else f" (threshold {verdict.threshold:.4f})"
    return [
        ("verdict", _WORDS[verdict.same]),
        ("probability", probability),
        ("score", f"{verdict.score:.4f}{threshold}"),
    ]


def _rate(point: "OperatingPoint") -> list[tuple[str, str]]:
    return [("rate", point.told())] if point.max_fmr is not None else []


def _threshold(point: "OperatingPoint") -> list[tuple[str, str]]:
    told = "none" if point.threshold is None else f"{point.threshold:.4f}"
    return [("threshold", told), *_rate(point)]


def _pairs(
    model: str,
    files: Files,
    resume: bool,
    wanted: Wanted,
    framing: bool,
    runner: tuple[str | None, list[str]],
    json: bool,
) -> None:
    from facepairs.beam.places import place
    from facepairs.beam.runner import choose_run
    from facepairs.beam.verify import verify_pairs_anywhere
    from facepairs.bundles.thresholds import operating_point
    from facepairs.verification.verifier import Verifier

    verifier = Verifier.load(model, threads=1)
    point = operating_point(verifier.bundle, *wanted)
    run, out = choose_run(*runner), files.out
    root = None if files.root is None else place(files.root)
    try:
        report = verify_pairs_anywhere(
            verifier, place(files.pairs), place(out), point, root, resume, ticker, framing, run
        )
    except KeyboardInterrupt:
        if runner[0] is None:
            say("stopped and saved; go on with the same command and --resume")
        raise
    if report.failed:
        counts = f"{report.failed:,} of {report.pairs:,} pairs"
        say(f"warning: {counts} could not be scored; see column error of {out}")
    if json:
        told = {**vars(report), **point.to_json()}
        print_json({**told, "out": out, "model": model, "schema": 1})
    else:
        print_rows([*_counts(report), *_threshold(point), ("scores", out)])
    raise typer.Exit(NEGATIVE if report.failed else OK)


def _counts(report: "BatchReport") -> list[tuple[str, str]]:
    rows = [("pairs", f"{report.pairs:,}"), ("images", f"{report.images:,}, each read once")]
    if report.same is not None:
        rows.append(("same person", f"{report.same:,}"))
    rows.append(("failed", f"{report.failed:,}"))
    return [*rows, ("seconds", f"{report.seconds:.1f}")]


def _against(
    model: str,
    photo: Path,
    folder: Path,
    out: Path | None,
    top: int,
    wanted: Wanted,
    framing: bool,
    json: bool,
) -> None:
    from facepairs.bundles.thresholds import operating_point
    from facepairs.verification.against import verify_against
    from facepairs.verification.verifier import Verifier

    verifier = Verifier.load(model, threads=1)
    point = operating_point(verifier.bundle, *wanted)
    tick = ticker("comparing photos")
    ranking = verify_against(verifier, photo, folder, point, tick, framing)
    if out is not None:
        ranking.write(out)
    if json:
        print_json(
            {
                **ranking.to_json(top),
                **point.to_json(),
                "folder": str(folder),
                "model": model,
                "schema": 1,
            }
        )
    else:
        print_rows(_table(ranking, top))
        print_rows(_threshold(point))
        _say_failures(ranking)
    raise typer.Exit(NEGATIVE if ranking.failed else OK)


def _table(ranking: "Ranking", top: int) -> list[tuple[str, str]]:
    rows = []
    for name, verdict in list(zip(ranking.names, ranking.verdicts, strict=True))[:top]:
        probability = "" if verdict.probability is None else f"{verdict.probability:.3f}  "
        same = "" if verdict.same is None else _WORDS[verdict.same]
        rows.append((f"{verdict.score:7.4f}", f"{probability}{same:<16}  {name}"))
    return rows


def _say_failures(ranking: "Ranking") -> None:
    if not ranking.failed:
        return
    count = len(ranking.failed)
    say(f"warning: {count:,} of {count + len(ranking.names):,} photos could not be used:")
    for _, error in ranking.failed[:FAILURES_SHOWN]:
        say(f"  {error}")
    if count > FAILURES_SHOWN:
        say(f"  and {count - FAILURES_SHOWN:,} more; --json and --out list them all")
