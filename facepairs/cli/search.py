"""`facepairs search`: where is a person among the photos of a folder?"""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from facepairs.cli.shared.options import Bundle, Json, Threshold
from facepairs.cli.shared.output import (
    NEGATIVE,
    OK,
    log,
    print_result,
    print_rows,
)
from facepairs.cli.shared.verdicts import (
    SCHEMA,
    note_source,
    photo_path,
    ranking_rows,
    ranking_table,
    ranking_warnings,
    warn_of_known,
)
from facepairs.support.places import check_output_file

EXAMPLE = """\b
Examples:
  facepairs search a.jpg photos/
  facepairs search a.jpg photos/ --top 50 --out matches.csv
"""


def search(
    photo: Annotated[str, Argument(metavar="A", help="A photo of the person to find.")],
    folder: Annotated[Path, Argument(help="Folder of photos, searched in full depth.")],
    bundle: Bundle = "default",
    threshold: Threshold = None,
    top: Annotated[int, Option(min=1, help="Photos to print.")] = 10,
    out: Annotated[Path | None, Option(help="CSV file to write, with all photos.")] = None,
    json: Json = False,
) -> None:
    """Find a person in a folder of photos.

    The best matches come first. The most prominent face of A is compared with every face of every
    photo; of each photo, the most similar face counts. The more faces, the more strangers match by
    chance: the result says how many to expect, and unless a threshold is given, it is raised until
    at most one is expected.

    Exit codes: 0 done, 1 done but some photos could not be used, 2 an error.
    """
    from facepairs.verification.ranking import rank_folder
    from facepairs.verification.verifier import Verifier

    path = photo_path(photo)
    if out is not None:
        check_output_file(out)
    verifier = Verifier.load(bundle, threads=1)
    point = None if threshold is None else verifier.operating_point(threshold)
    ranking = rank_folder(verifier, path, folder, point)
    if out is not None:
        ranking.write(out)
    warn_of_known(verifier, bundle, [folder / one.path for one in ranking.compared])
    for line in ranking_warnings(ranking):
        log(line)
    values = {"folder": str(folder), "model": bundle, "schema": SCHEMA}
    print_result(json, {**ranking.to_json(top), **values}, ranking_rows(ranking))
    if not json:
        print()
        print_rows(ranking_table(ranking, top))
    note_source(verifier, json)
    if out is not None:
        log(f"written: {out}")
    raise typer.Exit(NEGATIVE if ranking.failed else OK)
