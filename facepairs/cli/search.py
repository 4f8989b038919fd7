"""`facepairs search`: find a person in a folder of photos."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from facepairs.cli.shared.options import Bundle, Json, Threshold
from facepairs.cli.shared.output import (
    MATCH,
    MAX_SHOWN,
    NEGATIVE,
    OK,
    log,
    log_first,
    print_result,
    print_rows,
    warn_of_known,
)
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.verification.ranking import Ranking

EXAMPLE = """\b
Examples:
  facepairs search a.jpg photos/
  facepairs search a.jpg photos/ --json
"""


def search(
    photo: Annotated[str, Argument(metavar="A", help="A photo of the person to find.")],
    folder: Annotated[Path, Argument(help="Folder of photos, searched with all its subfolders.")],
    bundle: Bundle = "default",
    threshold: Threshold = None,
    json: Json = False,
) -> None:
    """Find a person in a folder of photos.

    Compares the most prominent face of A with every face in the photos; the most similar face of
    each photo counts. The best 20 matches are printed, all with --json. Small faces of large group
    photos may be missed. The more faces, the more strangers match by chance: the result says how
    many to expect. Without --threshold, the threshold is raised until at most one is expected.

    Exit codes: 0 done, 1 done but some photos could not be used, 2 an error.
    """
    from facepairs.verification.ranking import rank_folder
    from facepairs.verification.verifier import Verifier

    verifier = Verifier.load(bundle, threads=1)
    point = None if threshold is None else verifier.operating_point(threshold)
    ranking = rank_folder(verifier, Path(photo), folder, point)
    warn_of_known(verifier, bundle, [folder / match.path for match in ranking.photos])
    face = ranking.face
    if (face.faces or 0) > 1:
        log(
            f"warning: {photo}: shows {face.faces} faces, the most prominent was used; crop the "
            "photo to choose"
        )
    for hint in face.hints:
        log(f"warning: {photo}: {hint.text}")
    log_first([f"unusable: {failure.error}" for failure in ranking.failed])
    print_result(json, ranking, _ranking_rows(ranking))
    if not json:
        rows = [
            [str(one.rank), f"{one.score:.4f}", MATCH[one.match], one.path, one.describe_face()]
            for one in ranking.photos[:MAX_SHOWN]
        ]
        print()
        print_rows([["rank", "score", "match", "photo", "face"], *rows])
    raise typer.Exit(NEGATIVE if ranking.failed else OK)


def _ranking_rows(ranking: "Ranking") -> list[tuple[str, str]]:
    """Return the counts of photos and matches, and of matches to expect by chance."""
    from facepairs.verification.verdict import threshold_text

    photos, faces = counted(len(ranking.photos), "photo"), counted(ranking.faces, "face")
    rows = [("searched", f"{faces} in {photos}")]
    if ranking.matches is not None:
        rows.append(("matches", counted(ranking.matches, "photo")))
    rows.append(("false matches", ranking.describe_expected()))
    return [*rows, ("threshold", threshold_text(ranking.point))]
