"""A PostgreSQL server of the distribution's packages, on a socket in a folder of its own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

PACKAGED = "/usr/lib/postgresql"  # Debian's place; elsewhere the programs are on the PATH
SETTINGS = ("listen_addresses=", "shared_buffers=1MB", "max_connections=20", "fsync=off")


class PostgresServer:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        initdb = shutil.which("initdb", path=_search_path())
        if not initdb:
            pytest.skip("needs a PostgreSQL server: install postgresql")
        self._databases = 0
        self.folder, self._programs = folder, Path(initdb).resolve().parent
        # It refuses to run as root.
        self._user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if self._user:
            try:
                shutil.chown(folder, "postgres", "postgres")
            except LookupError:
                pytest.skip("needs another user than root: postgres")
        self._run("initdb", "--no-sync", "--auth=trust", "--username=tester", "-E", "UTF8")

    def _run(self, program: str, *words: str) -> None:
        command = [self._programs / program, "-D", self.folder / "data", *words]
        subprocess.run(
            command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.folder, **self._user,
        )  # fmt: skip

    def start(self) -> None:
        settings = [*SETTINGS, f"unix_socket_directories={self.folder}"]
        options = " ".join(f"-c {setting}" for setting in settings)
        self._run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"), "-o", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        self._databases += 1
        name = f"gallery{self._databases}"
        self.run_sql(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def run_sql(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def url(self, database: str = "postgres", user: str = "tester") -> str:
        return f"postgresql://{user}:geheim@/{database}?host={quote(str(self.folder), safe='')}"


def _search_path() -> str:
    packaged = sorted(Path(PACKAGED).glob("*/bin"), reverse=True)
    return os.pathsep.join([*map(str, packaged), os.environ.get("PATH", "")])


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server; skip the test where there is none."""
    if os.name != "posix":
        pytest.skip("needs a socket of Unix")
    # A socket's path must be short, and commands in this process have folders of their own.
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # the user that the server runs as looks into it
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
