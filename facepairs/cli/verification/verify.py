"""`facepairs verify`: two photos, a list of pairs, or one photo against a folder."""

import filecmp
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from facepairs.choices import FaceChoice
from facepairs.cli.shared.options import (
    Balanced,
    BeamOptions,
    Bundle,
    Json,
    MaxFmr,
    Runner,
    Threshold,
    path,
)
from facepairs.cli.shared.output import (
    NEGATIVE,
    OK,
    UNDECIDED,
    log,
    print_result,
    print_rows,
    progress_display,
)
from facepairs.cli.verification import output
from facepairs.errors import BadData, BadImage
from facepairs.support.places import check_output_file, is_stream
from facepairs.support.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from facepairs.bundles.rates import OperatingPoint
    from facepairs.faces.align import AlignedFace
    from facepairs.verification.verifier import Verifier

EXAMPLE = """\b
Examples:
  facepairs verify a.jpg b.jpg
  facepairs verify a.jpg b.jpg --max-fmr 0.001 --json
  facepairs verify a.jpg group.jpg --face all
  facepairs verify a.jpg b.jpg --show verdict.png
  facepairs verify --pairs pairs.csv --out scores.csv
  facepairs verify --pairs pairs.csv --out scores.csv --runner DirectRunner
  facepairs verify a.jpg --against photos/ --top 5
"""
SCHEMA = 3
EXIT_CODES = {True: OK, False: NEGATIVE, None: UNDECIDED}
DEFAULT_TOP = 10
NO_WISHES = (None, None, False)


class VerifySettings(NamedTuple):
    """What all three modes need; `wishes` are threshold, max_fmr and balanced."""

    bundle: str
    wishes: tuple[float | None, float | None, bool]
    prior: float
    json: bool


def verify(
    left: Annotated[str | None, Argument(metavar="[A]", help="One photo.")] = None,
    right: Annotated[str | None, Argument(metavar="[B]", help="The other photo.")] = None,
    beam: BeamOptions = None,
    bundle: Bundle = "default",
    threshold: Threshold = None,
    max_fmr: MaxFmr = None,
    balanced: Balanced = False,
    prior: Annotated[
        float | None,
        Option(help="Share of genuine pairs among yours, for the probability. [default: 0.5]"),
    ] = None,
    pairs: Annotated[Path | None, Option(help="Score a CSV file left,right[,genuine].")] = None,
    out: Annotated[
        Path | None, Option(help="CSV file to write, with --pairs or --against.")
    ] = None,
    root: Annotated[
        str | None,
        Option(parser=path, help="Folder that paths in PAIRS count from. [default: PAIRS' own]"),
    ] = None,
    against: Annotated[
        Path | None, Option(help="Compare A with every photo below this folder.")
    ] = None,
    top: Annotated[
        int | None,
        Option(min=1, help="Rows to print. [default: 10 with --against, all with --face all]"),
    ] = None,
    face: Annotated[
        FaceChoice, Option(help="Compare the most prominent faces, or all of A with all of B.")
    ] = "prominent",
    show: Annotated[Path | None, Option(help="Picture to write: photos, faces, verdict.")] = None,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Decide whether two photos show the same person; or score many pairs, or one against many.

    The most prominent face of each photo, by size and place, is found and aligned; photos that are
    hard to judge get a warning. The errors at the threshold are part of the verdict. --against and
    --face all are searches: they say how many strangers would match by chance. In JSON, `faces` has
    for left and right the face's box [left, top, side] in pixels, its landmarks, score and rotation
    in degrees, the number of faces, and hints; `comparisons` lists all of --face all.

    Exit codes for two photos: 0 the same person, 1 different people or not confirmed, 2 an error
    such as no face, 3 no verdict: a face of less than 24 pixels, or a model without a threshold.
    For --pairs and --against: 0 done, 1 done but some pairs or photos could not be used. With
    facepairs[beam], --root may be a gs://, s3:// or hdfs:// place.
    """
    wishes = (threshold, max_fmr, balanced)
    settings = VerifySettings(bundle, wishes, 0.5 if prior is None else prior, json)
    every = face == "all"
    words = [word for word in (left, right, *(beam or ())) if word is not None]
    if pairs is not None:
        _refuse("--pairs", against=against, top=top, show=show, face=every)
        if out is None:
            raise typer.BadParameter("--pairs needs --out, the CSV file to write")
        if runner is None:
            _refuse("--pairs", A=left, B=right)
        _verify_pairs(settings, pairs, out, root, runner, words)
        return
    if len(words) > 2:
        raise typer.BadParameter(
            f"{len(words)} photos; give two, one and --against FOLDER, or a list with --pairs"
        )
    if against is not None:
        _refuse("--against", B=right, root=root, show=show, face=every)
        _refuse("--against", runner=runner, prior=prior)
        if left is None:
            raise typer.BadParameter("--against needs the photo to compare: verify A --against DIR")
        if out is not None:
            check_output_file(out)
        _verify_against(settings, photo_path(left), against, out, top or DEFAULT_TOP)
    else:
        if left is None or right is None:
            raise typer.BadParameter("give two photos, or --pairs, or a photo and --against")
        _refuse("two photos", out=out, root=root, runner=runner)
        if not every:
            _refuse("two photos without --face all", top=top)
        _verify_two(settings, photo_path(left), photo_path(right), every, top, show)


def photo_path(word: str) -> Path:
    """Return the path of a photo; raise BadData for what is none but is often tried."""
    if word == "-":
        raise BadData("-: standard input is not read; save the photo and give its file")
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", word):
        raise BadData(f"{word}: not a file of this machine; download the photo and give its file")
    if Path(word).is_dir():
        raise BadData(
            f"{word}: a folder; give a photo, or compare one with all of a folder: facepairs "
            f"verify A.jpg --against {word}"
        )
    return Path(word)


def _refuse(mode: str, **options: Any) -> None:
    """Raise for an option that was given and that the mode does not have."""
    for name, value in options.items():
        if value is not None and value is not False:
            option = name if name.isupper() else f"--{name}"
            raise typer.BadParameter(f"{option} does not go with {mode}")


def _load(settings: VerifySettings) -> "tuple[Verifier, OperatingPoint]":
    from facepairs.bundles.calibration import check_prior
    from facepairs.verification.verifier import Verifier

    check_prior(settings.prior)
    verifier = Verifier.load(settings.bundle, threads=1)
    return verifier, verifier.operating_point(*settings.wishes)


def note_source(verifier: "Verifier", json: bool) -> None:
    """Tell people, not programs, how to have errors that were measured on photos like theirs."""
    from facepairs.verification.loading import model_name, source_note

    note = source_note(verifier.bundle, model_name(verifier.bundle))
    if note and not json:
        log(note)


def _verify_two(
    settings: VerifySettings,
    left: Path,
    right: Path,
    every: bool,
    top: int | None,
    show: Path | None,
) -> None:
    from facepairs.bundles.calibration import check_prior
    from facepairs.verification.quick import QuickVerifier
    from facepairs.verification.verdict import verdict_rows

    if show is not None:
        from facepairs.verification.overlay import MARK, NoVerdict, picture_format, write_overlay

        picture_format(show)
        check_output_file(show, MARK)
    check_prior(settings.prior)
    verifier = QuickVerifier.load(settings.bundle)
    point = verifier.operating_point(*settings.wishes)
    try:
        faces = verifier.detect_both(left, right, every)
        verdicts = verifier.verify_faces(*faces, point, settings.prior)
    except BadImage as error:
        if show is not None:
            usable = _usable_face(verifier, left), _usable_face(verifier, right)
            write_overlay(show, left, right, NoVerdict(str(error), *usable))
            log(f"written: {show}")
        raise
    best = max(verdicts, key=lambda verdict: verdict.score)
    if show is not None:
        write_overlay(show, left, right, best)
    if filecmp.cmp(left, right, shallow=False):
        log(f"warning: {left} and {right} have the same content: that they match says nothing")
    _warn_of_known(verifier, settings.bundle, (left, right))
    for line in output.verdict_warnings(best, left, right):
        log(line)
    photos = {"left": str(left), "right": str(right), "model": settings.bundle}
    values = {**best.to_json(), **photos, "schema": SCHEMA}
    if every:
        from facepairs.verification.false_matches import expected_json

        values["comparisons"] = [one.to_json() for one in verdicts]
        values |= expected_json(best.expected_matches)
    print_result(settings.json, values, verdict_rows(best))
    if len(verdicts) > 1 and not settings.json:
        print()
        print_rows(output.comparison_table(verdicts, top))
    note_source(verifier, settings.json)
    if show is not None:
        log(f"written: {show}")
    raise typer.Exit(EXIT_CODES[best.same])


def _warn_of_known(verifier: "Verifier", bundle: str, photos: "Iterable[Path]") -> None:
    """Warn of people on whom the model was trained or calibrated, by their photos' folders."""
    from facepairs.data.pairs import person_name

    names = sorted({person_name(str(photo.absolute())) for photo in photos})
    known = [name for name, known in zip(names, verifier.bundle.knows(names), strict=True) if known]
    if known:
        people = " and ".join(known) if len(known) < 3 else f"{len(known):,} of these people"
        log(
            f"warning: {bundle} was trained or calibrated on {people}: with others it may make "
            "more errors"
        )


def _usable_face(verifier: "Verifier", photo: Path) -> "AlignedFace | None":
    try:
        return verifier.detect(photo, every=False)[0]
    except BadImage:
        return None


def _verify_pairs(
    settings: VerifySettings,
    pairs: Path,
    out: Path,
    root: str | None,
    runner: str | None,
    beam_options: list[str],
) -> None:
    from facepairs.beam.score_list import score_list_at
    from facepairs.bundles.calibration import describe_prior
    from facepairs.verification.provenance import check_scores_file

    check_scores_file(out)
    verifier, point = _load(settings)
    try:
        report = score_list_at(
            verifier,
            pairs,
            out,
            point,
            root,
            progress=progress_display(settings.json),
            runner=runner,
            beam_options=beam_options,
            prior=settings.prior,
        )
    except KeyboardInterrupt:
        if runner is None:
            log("stopped; what was found in photos is kept, and the same command goes on")
        raise
    if report.failed:
        counts = f"{report.failed:,} of {report.pairs:,} pairs"
        advice = f"; --root names the folder that the paths in {pairs} count from"
        advice = advice if 0 < report.images == report.images_failed else ""
        log(f"warning: {counts} could not be scored; see column error of {out}{advice}")
    if report.same_content:
        log(
            f"warning: {counted(report.same_content, 'pair')} of a photo and itself or a copy "
            "(hint same-content): that they match says nothing"
        )
    if report.pairs_with_known_people:
        log(
            f"warning: {counted(report.pairs_with_known_people, 'pair')} with people that "
            f"{settings.bundle} was trained or calibrated on: with others it may make more errors"
        )
    values = {**vars(report), "operating_point": point.to_json(), "prior": settings.prior}
    rows = output.batch_rows(report, point, describe_prior(settings.prior))
    print_result(
        settings.json, {**values, "out": str(out), "model": settings.bundle, "schema": SCHEMA}, rows
    )
    note_source(verifier, settings.json)
    log(
        f"written: {out}"
        + ("" if is_stream(out) else f", and where the scores come from: {out}.json")
    )
    raise typer.Exit(NEGATIVE if report.failed else OK)


def _verify_against(
    settings: VerifySettings, photo: Path, folder: Path, out: Path | None, top: int
) -> None:
    from facepairs.verification.ranking import rank_folder

    verifier, point = _load(settings)
    progress = progress_display(settings.json)("comparing photos")
    wished = None if settings.wishes == NO_WISHES else point
    ranking = rank_folder(verifier, photo, folder, wished, progress)
    if out is not None:
        ranking.write(out)
    _warn_of_known(verifier, settings.bundle, [folder / one.path for one in ranking.compared])
    for line in output.ranking_warnings(ranking):
        log(line)
    values = {**ranking.to_json(top), "folder": str(folder), "model": settings.bundle}
    print_result(settings.json, {**values, "schema": SCHEMA}, output.ranking_rows(ranking))
    if not settings.json:
        print()
        print_rows(output.ranking_table(ranking, top))
    note_source(verifier, settings.json)
    if out is not None:
        log(f"written: {out}")
    raise typer.Exit(NEGATIVE if ranking.failed else OK)
