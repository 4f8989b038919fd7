"""One process at a time: a lock file that holds the number of the working process.

The kernel's lock on the file decides. It ends with its process, so a killed process blocks no
other, and network file systems share it between machines. `filelock` hides the differences between
systems; this module adds the process number and the removal of the file.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from facepairs.errors import BadRun, FacepairsError
from facepairs.support.places import hidden_beside


def lock_beside(target: Path) -> Path:
    """Return the lock file of an output that is renamed into place: hidden, beside it."""
    return hidden_beside(target, "lock")


@contextlib.contextmanager
def held(lock: Path, what: Path, error: type[FacepairsError] = BadRun) -> Iterator[None]:
    """Hold the file `lock` during the block and remove it afterwards, with a folder made for it.

    The folder stays if the block wrote something there.

    Args:
        lock: The lock file.
        what: The protected file or folder, for messages.
        error: The exception that is raised.

    Raises:
        error: Another process or thread holds the lock (the message gives its process number), or
            the lock file cannot be written.
    """
    from filelock import FileLock, Timeout  # costs some ms, and few commands lock anything

    guard = FileLock(lock, blocking=False, thread_local=False)
    is_new = not lock.parent.exists()
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        guard.acquire()
    except Timeout:
        holder = _holder(lock) or "that has just begun"
        raise error(f"{what} is in use by process {holder}; wait for it or stop it") from None
    except (OSError, NotImplementedError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"cannot write {what}: {reason}; choose another place") from None
    try:
        if _holder(lock) != os.getpid():
            with contextlib.suppress(OSError):  # Windows: a locked file cannot be written
                lock.write_text(f"{os.getpid()}\n")
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file; the next holder uses it
            lock.unlink()  # before the lock is released, so that no process locks a removed file
        guard.release()
        if is_new:
            with contextlib.suppress(OSError):  # it holds what the block wrote
                lock.parent.rmdir()


def _holder(lock: Path) -> int:
    """Return the process number in a lock file, 0 when there is none."""
    try:
        return int(lock.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
