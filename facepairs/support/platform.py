"""Differences between Linux, macOS and Windows, all in one place.

On a system without the needed feature, a function does nothing, or the closest thing possible.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8  # malloc.h
BATCH_BYTES = 32 * 2**20  # the largest threshold that glibc takes


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def keep_freed_memory() -> None:
    """Let glibc reuse the memory of large buffers instead of fetching new pages from the kernel.

    By default glibc returns every freed batch of images and asks for zeroed pages for the next one,
    which costs about a quarter of the decoding time. It also keeps up to eight arenas per core, and
    each grows to the size of a batch. One more arena than cores is as fast as that; as many arenas
    as cores took a tenth longer. Only glibc can do this.

    References:
        mallopt(3)
    """
    mallopt = _glibc("mallopt")
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, BATCH_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(M_TOP_PAD, 2 * BATCH_BYTES)
        mallopt(M_ARENA_MAX, cores() + 1)


def return_freed_memory() -> None:
    """Return freed memory to the system: glibc keeps some for each thread. Only glibc can do this.

    References:
        malloc_trim(3)
    """
    trim = _glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _glibc(name: str) -> "ctypes._NamedFuncPointer | None":
    """Return a function of the C library; None outside Linux, or if musl lacks it."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), name, None)


def kill_with_children(process: "subprocess.Popen[str]") -> None:
    """Kill a process that was started with `start_new_session=True`, and its children."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def sync_file(path: Path) -> None:
    """Flush a file to disk."""
    with open(path, "r+b") as handle:  # Windows refuses to flush a file opened to read
        os.fsync(handle.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk; Windows cannot open folders and does it by itself."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def keep_for_ever(value: object) -> None:
    """Never destroy an object, even when the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
