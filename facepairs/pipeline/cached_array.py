"""Arrays kept in `.npy` files from one run to the next, with a sum that vouches for every byte.

The CRC-32 of all that precedes it stands behind the array, where NumPy does not look: the file is
still one that `numpy.load` reads. Reading it costs a third of a second for a gigabyte.
"""

import contextlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.support.atomic import temporary_beside

WORD = b"\nfacepairs crc32 "
TRAILER_BYTES = len(WORD) + 9
READ_BYTES = 4 << 20
Array = npt.NDArray[Any]


def cached_array(
    path: Path,
    shape: tuple[int, ...],
    kind: npt.DTypeLike,
    fill: Callable[[Array], None],
    say: Callable[[str], None] = lambda line: None,
) -> Array:
    """Map the array at `path`, which `fill` makes first where it is missing or not whole.

    The array is copied on write: TensorFlow takes writable memory only, and nobody writes. `say`
    is told of a file that was there and could not be used. Raises BadData for a `path` that cannot
    be written.
    """
    why = damage(path, shape, kind)
    if why:
        if os.path.lexists(path):
            say(f"{path}: {why}; it is made anew")
        with _new_array(path, shape, kind) as array:
            fill(array)
    mapped: Array = np.load(path, mmap_mode="c", allow_pickle=False)
    return mapped


def damage(path: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> str:
    """Say why `path` is not a whole array of this shape and dtype; "" where it is one."""
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(stored, np.memmap) or stored.shape != shape or stored.dtype != kind:
            return "an array of another kind or size"
        end = stored.offset + stored.nbytes
        del stored
        return _sum_problem(path, end)
    except OSError as error:
        return error.strerror or str(error)
    except Exception:  # noqa: BLE001 - NumPy's parser meets damage with errors of many kinds
        return "damaged, no array can be read"


def _sum_problem(path: Path, end: int) -> str:
    with open(path, "rb") as handle:
        found = _crc32(handle, end)
        trailer = handle.read(TRAILER_BYTES + 1)
    if not trailer.startswith(WORD):
        return "its checksum is missing"
    return "" if trailer == _trailer(found) else "damaged (its checksum does not fit)"


def _trailer(crc: int) -> bytes:
    return WORD + f"{crc:08x}\n".encode()


def _crc32(handle: Any, size: int) -> int:
    """Give the CRC-32 of the next `size` bytes; read, not mapped: a bad disk must not kill us."""
    block = memoryview(bytearray(READ_BYTES))
    crc = 0
    while size > 0:
        count = handle.readinto(block[: min(size, READ_BYTES)])
        if not count:
            break
        crc = zlib.crc32(block[:count], crc)
        size -= count
    return crc


@contextlib.contextmanager
def _new_array(path: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> Iterator[Array]:
    """Yield a memory-mapped array that becomes `path` when the block ends well."""
    with temporary_beside(path) as temporary:
        array = np.lib.format.open_memmap(temporary, "w+", kind, shape)
        # Blocks are set aside first: a full disk would otherwise kill the process (SIGBUS).
        with open(temporary, "r+b") as handle:
            os.posix_fallocate(handle.fileno(), 0, os.fstat(handle.fileno()).st_size)
        yield array
        array.flush()
        with open(temporary, "r+b") as handle:
            crc = _crc32(handle, os.fstat(handle.fileno()).st_size)
            handle.seek(0, os.SEEK_END)
            handle.write(_trailer(crc))
