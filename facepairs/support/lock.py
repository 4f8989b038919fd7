"""One process at a time: a file that names the process which works on something.

The kernel's own lock on the file (flock) decides: it goes with its process, so that nothing a kill
leaves bars anybody, and network file systems pass it on to other machines. On a file system without
such locks the number in the file does, as long as a process of that number lives here.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from facepairs.errors import BadRun, FacepairsError
from facepairs.support.atomic import process_is_gone


def lock_beside(target: Path) -> Path:
    """Give the lock file of an output that is renamed into place: hidden, beside it."""
    return target.with_name(f".{target.name}.lock")


@contextlib.contextmanager
def held(
    lock: Path,
    what: Path,
    error: type[FacepairsError] = BadRun,
    otherwise: str = "choose another --out",
) -> Iterator[None]:
    """Hold the file `lock` for work on `what`; it is removed afterwards.

    Raises `error`: with the other's process number where another process or thread holds it, and
    with `otherwise` where the file cannot be written.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = _take(lock, what, error)
    except OSError as failure:
        raise error(f"cannot write {what}: {failure.strerror}; {otherwise}") from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)  # before it is let go: nobody must take a file that goes
        os.close(handle)


def _take(lock: Path, what: Path, error: type[FacepairsError]) -> int:
    """Open and lock the file, and give its handle; raises `error` where somebody has it."""
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o644)
        with contextlib.ExitStack() as unless_taken:
            unless_taken.callback(os.close, handle)
            if not _is_free(handle):
                holder = _holder(handle) or "that has just begun"
                raise error(f"{what} is in use by process {holder}; wait for it or stop it")
            if _is_there(handle, lock):  # else its holder removed it: a new file counts
                os.truncate(handle, 0)
                os.pwrite(handle, b"%d\n" % os.getpid(), 0)
                unless_taken.pop_all()
                return handle


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without such locks
        holder = _holder(handle)
        return not holder or process_is_gone(holder)
    return True


def _is_there(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False


def _holder(handle: int) -> int:
    try:
        return int(os.pread(handle, 32, 0))
    except ValueError:
        return 0
