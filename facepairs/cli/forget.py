"""`facepairs forget`."""

from facepairs.cli.shared.options import Json
from facepairs.cli.shared.output import print_result

EXAMPLE = "Example: facepairs forget"


def forget(json: Json = False) -> None:
    """Delete what is remembered of photos.

    Commands that read many photos remember the positions of faces, and embeddings, so that they are
    faster next time. Galleries, scores and bundles stay.
    """
    from facepairs.photos.photo_cache import PhotoCache, cache_file

    file = cache_file()
    deleted = PhotoCache(file).forget()
    values = {"photo_cache": str(file), "deleted": deleted}
    print_result(json, values, [("deleted" if deleted else "nothing at", str(file))])
