"""What the commands that compare faces share: exit codes and warnings."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.cli.shared.output import NEGATIVE, OK, UNDECIDED, log

if TYPE_CHECKING:
    from facepairs.faces.hints import Hint
    from facepairs.verification.verifier import Verifier

Rows = list[tuple[str, str]]
SCHEMA = 3
EXIT_CODES = {True: OK, False: NEGATIVE, None: UNDECIDED}
MATCH = {True: "yes", False: "no", None: ""}


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


def warn_of_face(photo: Path, faces: int, hints: "Iterable[Hint]", advice: str) -> None:
    """Warn of a face that may be the wrong one of several, or is hard to judge.

    Args:
        photo: Where it is.
        faces: How many faces the photo shows.
        hints: What makes the face hard to judge.
        advice: How to take another face; "" where the user has chosen this one.
    """
    if faces > 1 and advice:
        log(f"warning: {photo}: {faces} faces: perhaps not the one you mean; {advice}")
    for hint in hints:
        log(f"warning: {photo}: {hint.text}")
