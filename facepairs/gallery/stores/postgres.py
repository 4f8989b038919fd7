"""A gallery in a PostgreSQL database, which servers on several machines share.

Its tables are in a schema of their own, `facepairs`. The database decides when it overwrites
deleted rows. Each process searches the embeddings in its memory, as with a file, so the database
needs no extension.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict

from facepairs.errors import BadConfig, BadGallery
from facepairs.gallery.encryption import Passphrase
from facepairs.gallery.stores.base import SqlStore

# For libpq, where the URL says nothing else: a server that is gone is noticed within seconds.
PARAMETERS: dict[str, Any] = {
    "application_name": "facepairs",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
MAKING = 0x66616365  # the number of the lock under which the tables are made
EXISTS = "SELECT to_regclass('facepairs.state') IS NOT NULL"
HAS_SCHEMA = "SELECT to_regnamespace('facepairs') IS NOT NULL"
SESSION = """
SET search_path TO facepairs;
SET synchronous_commit TO on;
SET lock_timeout TO '30s';
SET idle_in_transaction_session_timeout TO '60s';
"""
# A random value changes with every change of the photos, also by other programs. A counter would be
# the same again in a gallery that was made again, or restored from a copy.
_TOUCHED = """
CREATE TRIGGER on_{0} AFTER {0} ON photos REFERENCING {1} TABLE AS touched
FOR EACH STATEMENT EXECUTE FUNCTION note_change()"""
CONTENT = (
    "ALTER TABLE state ADD COLUMN content UUID NOT NULL DEFAULT gen_random_uuid()",
    """
    CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$ BEGIN
        IF TG_OP <> 'TRUNCATE' THEN
            PERFORM FROM touched LIMIT 1;
            IF NOT FOUND THEN RETURN NULL; END IF;
        END IF;
        UPDATE state SET content = gen_random_uuid();
        RETURN NULL;
    END $$""",
    _TOUCHED.format("INSERT", "NEW"),
    _TOUCHED.format("UPDATE", "NEW"),
    _TOUCHED.format("DELETE", "OLD"),
    "CREATE TRIGGER on_truncate AFTER TRUNCATE ON photos EXECUTE FUNCTION note_change()",
)
CONTENT_NOW = "SELECT content FROM state"
UNREADABLE = (
    "the gallery's URL cannot be read; write postgresql://USER@HOST/DATABASE, and the password "
    "into PGPASSWORD"
)


class PostgresStore(SqlStore):
    """A gallery's tables in a database; it reconnects after a lost connection.

    Args:
        url: postgresql://USER@HOST/DATABASE, and the parameters of libpq. Give a password by
            PGPASSWORD or a password file: other users can see command lines.
        write: Open it for changes; expired photos are removed.
        passphrase: Of an encrypted gallery; a new one is encrypted if this is a text.
        create: With `write`, create the tables if they are missing.

    Raises:
        BadData: The database cannot be reached, has no gallery, or another passphrase.
        BadConfig: The URL is malformed, or the passphrase of a new gallery is empty.
    """

    BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
    NOW = "extract(epoch FROM now())"
    MORE_TABLES = CONTENT

    def __init__(
        self,
        url: str,
        write: bool = False,
        passphrase: Passphrase = None,
        create: bool = True,
    ) -> None:
        super().__init__(without_password(url), write, passphrase)
        self._url = url
        self._content: object = None  # when it was last looked at, or changed by this connection
        self._changes_of_others = 0
        self._connection: psycopg.Connection[Any] | None = None
        try:
            self._prepare(passphrase, create)
        except BaseException:
            self.close()
            raise

    def _exists(self) -> bool:
        self._run("SELECT pg_advisory_xact_lock(?)", MAKING)
        if not self._run(HAS_SCHEMA).fetchone()[0]:
            self._run("CREATE SCHEMA facepairs")
        return bool(self._run(EXISTS).fetchone()[0])

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()

    def version(self) -> int:
        """Return a number that changes when another connection changes the tables."""
        with self._errors_named():
            self._compare(self._run(CONTENT_NOW).fetchone()[0])
            return self._changes_of_others

    def _compare(self, content: object) -> None:
        """Count a change if the tables have changed since this connection last looked."""
        if content == self._content:
            return
        if self._stored_encryption() != self._encryption:
            raise BadGallery(f"{self.place}: was recreated with another passphrase; open it again")
        self._content = content
        self._changes_of_others += 1

    def _connected(self) -> "psycopg.Connection[Any]":
        self._check_open()
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> "psycopg.Connection[Any]":
        given = conninfo_to_dict(self._url)
        missing = {name: value for name, value in PARAMETERS.items() if name not in given}
        connection = psycopg.connect(self._url, autocommit=True, **missing)
        try:
            connection.execute(SESSION)
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self, query: str, *values: object) -> Any:
        statement = query.replace("?", "%s").encode()
        connection = self._connected()
        is_idle = connection.info.transaction_status == pq.TransactionStatus.IDLE
        try:
            return connection.execute(statement, values, binary=True)
        except psycopg.OperationalError:
            if not (connection.closed and is_idle):
                raise
        # Lost since the last query, such as by a restart of the database.
        return self._connected().execute(statement, values, binary=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            with super()._writing():
                # Others wait until this one ends.
                self._compare(self._run(f"{CONTENT_NOW} FOR UPDATE").fetchone()[0])
                yield
                content = self._run(CONTENT_NOW).fetchone()[0]
            self._content = content

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turn PostgreSQL's errors into BadGallery, with the database but not its password."""
        try:
            with self._lock:
                yield
        except errors.UndefinedTable:
            raise BadGallery(
                f"{self.place}: no gallery, or this role may not see it; create one: facepairs "
                f"gallery add {self.place} photos/"
            ) from None
        except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
            raise BadGallery(f"{self.place}: {_reason(error)}; use a permitted role") from None
        except psycopg.OperationalError as error:
            raise BadGallery(
                f"{self.place}: cannot use the database ({_reason(error)}); check that it runs, "
                "its address, and the password in PGPASSWORD"
            ) from None
        except (psycopg.Error, ValueError, TypeError) as error:
            raise self._damaged(_reason(error)) from None


def without_password(url: str) -> str:
    """Return a URL without its password, for messages.

    Raises:
        BadConfig: The URL is malformed, perhaps by a password that is not percent-encoded.
    """
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.Error:
        given = {"port": "unreadable"}
    user, host, port, database = (given.get(key, "") for key in ("user", "host", "port", "dbname"))
    if (port and not port.replace(",", "").isdigit()) or "@" in host + database:
        raise BadConfig(UNREADABLE)
    user, port = user and f"{user}@", port and f":{port}"
    if host.startswith("/"):  # the folder of a socket
        return f"postgresql://{user}{port}/{database}?host={quote(host, safe='')}"
    return f"postgresql://{user}{host}{port}/{database}"


def _reason(error: Exception) -> str:
    """Return the first line of an error, or the name of its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]
