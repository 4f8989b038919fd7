"""The job that enrols people in a gallery."""

from pathlib import Path

from facepairs.gallery.stores.sqlite import SqliteStore
from stress.jobs import PHOTOS, Broken, Job
from stress.processes import Work, command_line


def gallery_job(base: Path) -> Job:
    """Enrol a folder; the photos that were enrolled before a kill are still there."""

    def work(place: Path) -> Work:
        return command_line("gallery", "add", place / "known.gallery", base / "faces",
                            "--any-quality")  # fmt: skip

    def people(place: Path) -> object:
        store = SqliteStore(place / "known.gallery", write=True)
        try:
            if problems := store.problems():
                raise Broken(problems[0])
            return [(one.name, one.photos) for one in store.people()]
        finally:
            store.close()

    def is_complete(place: Path) -> bool:
        if not (place / "known.gallery").exists():
            return False
        return people(place) == [(path.name, PHOTOS) for path in sorted((base / "faces").iterdir())]

    return Job("gallery", ("known.gallery*",), work, is_complete, people)
