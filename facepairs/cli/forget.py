"""`facepairs forget`."""

from facepairs.cli.shared.options import Json
from facepairs.cli.shared.output import print_result

EXAMPLE = "Example: facepairs forget"


def forget(json: Json = False) -> None:
    """Delete what is remembered of photos.

    All commands remember the places of faces, and embeddings, to be faster next time. Galleries,
    scores and bundles stay.
    """
    from facepairs.photos.photo_cache import PhotoCache, cache_file

    file = cache_file()
    deleted = PhotoCache(file).forget()
    values = {"photo_cache": str(file), "deleted": deleted, "schema": 1}
    print_result(json, values, [("deleted" if deleted else "nothing at", str(file))])
