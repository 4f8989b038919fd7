"""Storage of galleries: a file, or a PostgreSQL database."""

import re
from pathlib import Path

from facepairs.gallery.encryption import Passphrase
from facepairs.gallery.stores.base import SqlStore
from facepairs.gallery.stores.sqlite import SqliteStore
from facepairs.support.extras import require_extra
from facepairs.support.places import refuse_url

# As SQLAlchemy has it, too, with a driver.
_DATABASE = re.compile(r"postgres(?:ql)?(\+\w+)?:/+(.*)", re.IGNORECASE | re.DOTALL)


def open_store(
    place: Path | str, write: bool = False, passphrase: Passphrase = None, create: bool = True
) -> SqlStore:
    """Open a gallery's file, or its database; see `SqliteStore` and `PostgresStore`.

    Raises:
        BadData: The gallery is missing or damaged, is not a gallery, has another passphrase, or
            cannot be opened.
        BadConfig: The URL is malformed, or the passphrase of a new gallery is empty.
        MissingExtra: A required package is not installed.
    """
    if database := _DATABASE.match(str(place)):
        require_extra("postgres", "a gallery in PostgreSQL")
        from facepairs.gallery.stores.postgres import PostgresStore

        return PostgresStore(f"postgresql://{database[2]}", write, passphrase, create)
    refuse_url(place)
    return SqliteStore(Path(place), write, passphrase, create)
