"""What the commands that compare faces share: their photos, notes, and the row of the threshold."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.cli.shared.output import NEGATIVE, OK, UNDECIDED, log
from facepairs.errors import BadData

if TYPE_CHECKING:
    from facepairs.bundles.rates import OperatingPoint
    from facepairs.verification.verifier import Verifier

Rows = list[tuple[str, str]]
SCHEMA = 3
EXIT_CODES = {True: OK, False: NEGATIVE, None: UNDECIDED}
MATCH = {True: "yes", False: "no", None: ""}


def photo_path(word: str) -> Path:
    """Return the path of a photo; raise BadData for what is none but is often tried."""
    if word == "-":
        raise BadData("-: standard input is not read; save the photo and give its file")
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", word):
        raise BadData(f"{word}: not a file of this machine; download the photo and give its file")
    if Path(word).is_dir():
        raise BadData(
            f"{word}: a folder; give a photo, or look for a person in all photos of the folder: "
            f"facepairs search A.jpg {word}"
        )
    return Path(word)


def note_source(verifier: "Verifier", json: bool) -> None:
    """Tell people, not programs, how to have errors that were measured on photos like theirs."""
    from facepairs.verification.loading import model_name, source_note

    note = source_note(verifier.bundle, model_name(verifier.bundle))
    if note and not json:
        log(note)


def warn_of_known(verifier: "Verifier", bundle: str, photos: Iterable[Path]) -> None:
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


def threshold_rows(point: "OperatingPoint", errors: bool = True) -> Rows:
    """Return the threshold, and the errors to expect there."""
    from facepairs.verification.verdict import error_rows

    threshold = "none" if point.threshold is None else f"{point.threshold:.4f} ({point.label})"
    return [("threshold", threshold), *(error_rows(point) if errors else [])]
