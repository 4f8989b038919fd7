"""`facepairs gallery add | identify | list | rename | remove | migrate`."""

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from facepairs.cli.app import App
from facepairs.cli.shared.options import Bundle, Json, Threshold
from facepairs.cli.shared.output import (
    MATCH,
    MAX_SHOWN,
    NEGATIVE,
    OK,
    VERDICT_CODES,
    log,
    log_first,
    percent,
    print_json,
    print_result,
    print_rows,
)
from facepairs.errors import MissingExtra, NotEnough
from facepairs.support.places import refuse_input
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.evaluation.migration import ModelsCompared
    from facepairs.gallery.enrol import Enrolment
    from facepairs.gallery.gallery import Gallery as OpenGallery
    from facepairs.gallery.identification import Identification

app = App(
    help="Enrol known people, and identify them in photos.",
    epilog="Example: facepairs gallery identify known.gallery photo.jpg",
    no_args_is_help=True,
)
NEW = """\b
Examples:
  facepairs gallery add known.gallery photos/
  facepairs gallery add known.gallery --name Ann ann1.jpg ann2.jpg
  facepairs gallery add known.gallery --name Visitor visitor.jpg --forget-after 7
"""
Place = Annotated[
    str,
    Argument(
        metavar="GALLERY",
        help="File of enrolled people, or a database: postgresql://USER@HOST/NAME.",
    ),
]
Name = Annotated[str, Argument(help="Name of the person.")]
Photo = Annotated[str, Argument(help="One photo.")]


def _open(place: str, bundle: str, write: bool = False, encrypt: bool = False) -> "OpenGallery":
    from facepairs.gallery.encryption import VARIABLE, Passphrase
    from facepairs.gallery.gallery import Gallery
    from facepairs.verification.verifier import Verifier

    passphrase: Passphrase = _ask()
    if encrypt:
        passphrase = os.environ.get(VARIABLE) or _ask(confirm=True)()
    verifier = Verifier.load(bundle, threads=1 if write else None)
    return Gallery(place, verifier, write, passphrase)


def _ask(confirm: bool = False) -> Callable[[], str]:
    """Return a function that asks for the passphrase in a terminal, and returns "" elsewhere."""

    def ask() -> str:
        if not sys.stdin.isatty():
            return ""
        text = "passphrase of the gallery"
        return str(typer.prompt(text, hide_input=True, confirmation_prompt=confirm, err=True))

    return ask


@app.command(epilog=NEW)
def add(
    gallery: Place,
    photos: Annotated[
        list[str],
        Argument(
            metavar="PHOTO...",
            help="Folder of Person_Name/photo.jpg, or photos of one person with --name.",
        ),
    ],
    name: Annotated[
        str | None, Option(help="Name of the person. [default: the names of the folders]")
    ] = None,
    bundle: Bundle = "default",
    forget_after: Annotated[
        float | None, Option(metavar="DAYS", help="Forget these photos after this many days.")
    ] = None,
    any_quality: Annotated[
        bool,
        Option("--any-quality", help="Also take dark, blurred or small photos, and profiles."),
    ] = False,
    unnamed: Annotated[
        bool,
        Option("--unnamed", help="Also take people whom group found and who have no name yet."),
    ] = False,
    encrypt: Annotated[
        bool, Option("--encrypt", help="Encrypt a new gallery; asks for a passphrase.")
    ] = False,
    json: Json = False,
) -> None:
    """Enrol people; create the gallery if it is missing.

    Several photos, in different light and from different days, make errors rarer. Photos that are
    already enrolled are skipped: run the same command again to continue after an interruption. In a
    folder written by group, people without a name (person_0004) are left out; people who were
    enrolled without a name get that of the renamed folder. Photos without a usable face are listed,
    and the exit code is then 1.
    """
    if name is None and (len(photos) > 1 or not Path(photos[0]).is_dir()):
        raise typer.BadParameter("name the person, or give a folder", param_hint="--name")
    with _open(gallery, bundle, write=True, encrypt=encrypt) as known:
        if name is None:
            enrolment = known.add_folder(photos[0], forget_after, any_quality, unnamed)
        else:
            enrolment = known.add(name, photos, forget_after, any_quality)
    _print_enrolment(enrolment, json)


def _print_enrolment(enrolment: "Enrolment", json: bool) -> None:
    """Print the enrolled and refused photos, and exit with 1 if some were refused."""
    log_first([f"not enrolled: {photo.error}" for photo in enrolment.refused])
    people = counted(enrolment.people, "person", "people")
    rows = [
        ("enrolled", counted(enrolment.enrolled, "photo")),
        ("already there", f"{enrolment.known:,}"),
        ("not enrolled", f"{len(enrolment.refused):,}"),
        ("gallery", f"{people}, {counted(enrolment.photos, 'photo')}"),
    ]
    if enrolment.unnamed:
        left_out = counted(enrolment.unnamed, "person", "people")
        rows.append(
            ("left out", f"{left_out} without a name; rename their folders, or give --unnamed")
        )
    rows += [("renamed", f"{old}: {new}") for old, new in enrolment.renamed.items()]
    print_result(json, enrolment, rows)
    raise typer.Exit(NEGATIVE if enrolment.refused else OK)


@app.command(
    epilog="""\b
Examples:
  facepairs gallery identify known.gallery photo.jpg
  facepairs gallery identify known.gallery photo.jpg --max-fpir 0.05 --json
"""
)
def identify(
    gallery: Place,
    photo: Photo,
    max_fpir: Annotated[
        float | None,
        Option(help="Share of strangers who may be mistaken for known people.  [default: 0.01]"),
    ] = None,
    threshold: Threshold = None,
    bundle: Bundle = "default",
    json: Json = False,
) -> None:
    """Identify each face in a photo: a person of the gallery, or unknown.

    The threshold rises with the size of the gallery, because every photo in it is another chance
    for a stranger to match. The command refuses a rate for which the model's errors were measured
    on too few pairs, and says which rates they support. The rate holds for main faces, not for
    small and blurred ones in the background. In JSON, `faces` lists all faces, with numbers from 1
    for the most prominent.

    Exit codes: 0 a known person, 1 unknown, 2 an error such as no face, 3 no verdict (only faces of
    less than 24 pixels, or a model without known errors).
    """
    with _open(gallery, bundle) as known:
        found = known.identify_faces(photo, max_fpir, threshold)
        place = known.place
    _warn_of_faces(photo, found)
    if json:
        from facepairs.gallery.identification import PhotoIdentification

        print_json(PhotoIdentification(photo=photo, gallery=place, faces=found))
    elif len(found) == 1:
        _print_candidates(found[0])
    else:
        _print_faces(found)
    is_known = None if found[0].known is None else any(face.known for face in found)
    raise typer.Exit(VERDICT_CODES[is_known])


def _warn_of_faces(path: str, found: "list[Identification]") -> None:
    several = len(found) > 1
    log_first(
        [
            f"warning: {path}{f', face {one.face.number}' if several else ''}: {hint.text}"
            for one in found
            for hint in one.face.hints
        ]
    )


def _print_candidates(found: "Identification") -> None:
    print_rows(found.rows())
    print()
    table = [
        [str(one.rank), f"{one.score:.4f}", MATCH[one.match], one.name] for one in found.candidates
    ]
    print_rows([["rank", "score", "match", "name"], *table])


def _print_faces(found: "list[Identification]") -> None:
    from facepairs.gallery.identification import BACKGROUND

    rows = found[0].error_rows()
    if found[0].fpir is not None:
        rows.append(("background", BACKGROUND))
    print_rows([*rows, ("photo", counted(len(found), "face"))])
    print()
    table = [
        [
            str(one.face.number),
            "{0},{1} {2}x{2}".format(*one.face.box or ()),
            f"{one.candidates[0].score:.4f}",
            one.words,
        ]
        for one in found
    ]
    print_rows([["face", "box", "score", "person"], *table])


@app.command("list", epilog="Example: facepairs gallery list known.gallery")
def list_people(gallery: Place, json: Json = False) -> None:
    """List the people of a gallery with their photos and dates.

    Also checks the file for damage, and that other users cannot read it: exit code 1 for a problem,
    2 if it cannot be opened.
    """
    from facepairs.gallery.gallery import Gallery

    with Gallery(gallery, passphrase=_ask()) as known:
        problems = known.check()
        people, model = known.people(), known.model
    for problem in problems:
        log(f"error: {gallery}: {problem}")
    if json:
        import msgspec  # costs some ms at every start

        identity = vars(model) if model else None
        values = {"people": msgspec.to_builtins(people), "model": identity, "problems": problems}
        print_json({**values, "gallery": known.place})
    else:
        cells = [
            [one.name, str(one.photos), str(one.added.date()),
             one.expires.isoformat() if one.expires else "never"]
            for one in people
        ]  # fmt: skip
        print_rows([["name", "photos", "added", "forgotten"], *cells])
    raise typer.Exit(NEGATIVE if problems else OK)


@app.command(epilog="Example: facepairs gallery rename known.gallery person_0004 Ann")
def rename(
    gallery: Place,
    name: Annotated[str, Argument(metavar="OLD", help="Name of the person.")],
    to: Annotated[str, Argument(metavar="NEW", help="The new name.")],
    json: Json = False,
) -> None:
    """Rename a person, or merge them into the person who has the new name."""
    from facepairs.gallery.gallery import Gallery

    with Gallery(gallery, write=True, passphrase=_ask(), create=False) as known:
        renamed = known.rename(name, to)
    values = {"name": to, "former": name, "photos": renamed, "gallery": known.place}
    rows = [("renamed", f"{name}: {to}, {counted(renamed, 'photo')}")]
    print_result(json, values, rows)


@app.command(epilog="Example: facepairs gallery remove known.gallery Ann")
def remove(gallery: Place, name: Name, json: Json = False) -> None:
    """Remove a person: name, embeddings and hashes are overwritten in the file.

    A database deletes them, and overwrites them when it needs the space.
    """
    from facepairs.gallery.gallery import Gallery

    with Gallery(gallery, write=True, passphrase=_ask(), create=False) as known:
        removed = known.remove(name)
    values = {"name": name, "photos": removed, "gallery": known.place}
    print_result(json, values, [("removed", f"{name}, {counted(removed, 'photo')}")])


@app.command(
    epilog="Example: facepairs gallery migrate old.db new.db --bundle sface --photos photos/"
)
def migrate(
    gallery: Annotated[str, Argument(metavar="OLD", help="The gallery; it stays as it is.")],
    to: Annotated[str, Argument(metavar="NEW", help="Gallery to write.")],
    bundle: Annotated[str, Option(help="The new model: bundle, TOML file or fetched network.")],
    photos: Annotated[Path, Option(help="Folder of the photos, at any depth.")],
    json: Json = False,
) -> None:
    """Enrol the people of a gallery again, with another model.

    Finds the enrolled photos by their content, whatever their names, and tells whom it could not
    enrol: no photo, or no face. Compares the errors of both models on the same pairs of these
    people (that requires the measure extra: pip install '.[measure]'). Run it again to continue
    after an interruption. Embeddings of two models never share a gallery. An encrypted gallery
    stays encrypted, under the same passphrase. Exit code 1 if something could not be enrolled.
    """
    import msgspec  # costs some ms at every start

    from facepairs.bundles.error_profile import identification_point
    from facepairs.evaluation.migration import compare_models
    from facepairs.gallery.encryption import VARIABLE
    from facepairs.gallery.enrol import DEFAULT_FPIR
    from facepairs.gallery.gallery import Gallery
    from facepairs.gallery.migration import check_migration, migrate_gallery
    from facepairs.verification.verifier import Verifier

    compared, reason = None, ""
    refuse_input(to, [gallery])
    ask = cache(_ask())
    with Gallery(gallery, passphrase=ask) as old:
        verifier = Verifier.load(bundle, threads=1)
        check_migration(old, verifier.model, photos)
        passphrase = (os.environ.get(VARIABLE) or ask()) if old.store.is_encrypted else ask
        with Gallery(to, verifier, True, passphrase) as new:
            result = migrate_gallery(old, new, photos)
            try:
                compared = compare_models(old, new)
            except (NotEnough, MissingExtra) as error:
                reason = str(error)
    lines = [f"no photo: {name}: {counted(n, 'photo')}" for name, n in result.without_photo.items()]
    log_first([*lines, *(f"not enrolled: {photo.error}" for photo in result.refused)])
    try:
        identification_point(verifier.model.profile, DEFAULT_FPIR, result.photos or 1)
    except NotEnough as error:
        log(f"warning: identify cannot keep its default rate: {error.message}")
    if compared and compared.difference.interval[1] < 0:
        log(f"warning: {bundle} misses more genuine pairs, by more than chance")
    values = {**msgspec.to_builtins(result), "errors": msgspec.to_builtins(compared)}
    people = counted(result.people, "person", "people")
    rows = [
        ("enrolled", counted(result.enrolled, "photo")),
        ("already there", f"{result.known:,}"),
        ("no photo found", f"{sum(result.without_photo.values()):,}"),
        ("not enrolled", f"{len(result.refused):,}"),
        ("people lost", ", ".join(result.lost[:MAX_SHOWN]) or "none"),
        ("gallery", f"{people}, {counted(result.photos, 'photo')}"),
        *(_comparison_rows(compared) if compared else [("errors", f"not compared: {reason}")]),
    ]
    print_result(json, values, rows)
    raise typer.Exit(NEGATIVE if result.without_photo or result.refused else OK)


def _comparison_rows(compared: "ModelsCompared") -> list[tuple[str, str]]:
    """Tell how many genuine pairs both models miss, on the same pairs."""
    people = counted(compared.people, "person", "people")
    of = f"{compared.genuine_pairs:,} genuine pairs of {people}"
    both = zip(("old", "new"), compared.fnmr, compared.intervals, strict=True)
    missed = (
        f"{name} {percent(rate)} ({percent(a)} to {percent(b)})" for name, rate, (a, b) in both
    )
    less, (low, high) = compared.difference.difference, compared.difference.interval
    gap = f"{0 - 100 * less:+.3g} % ({0 - 100 * high:+.3g} to {0 - 100 * low:+.3g})"
    gap += ", which may be chance" if low <= 0 <= high else ", more than chance"
    return [
        ("errors", f"of {of}, missed where {percent(compared.fmr)} of strangers pass:"),
        ("", ", ".join(missed)),
        ("difference", gap),
    ]
