"""Large arrays: in memory, or in `.npy` files that later runs reuse, with a checksum of every byte.

The CRC-32 of the `.npy` content is appended to the file, where NumPy does not look, so
`numpy.load` still reads it. Checking it takes a third of a second per gigabyte.
"""

import math
import mmap
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from facepairs.support import console
from facepairs.support.atomic import temporary_beside
from facepairs.support.platform import reserve_space

MARK = b"\nfacepairs crc32 "
TRAILER_BYTES = len(MARK) + 9
READ_BYTES = 4 << 20
Array = npt.NDArray[Any]


def cached_array(
    path: Path | None,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    fill: Callable[[Array], None],
) -> Array:
    """Return the array stored at `path`; compute and store it first if it is missing or damaged.

    Args:
        path: The `.npy` file. None: the array is computed in memory.
        shape: Shape of the array.
        dtype: Its dtype.
        fill: Computes the array: sets the values of the zeros it receives.

    Returns:
        An array that TensorFlow can use without copying it: aligned to a memory page, as it crashes
        on less than 64 bytes, and writable. A file is mapped copy-on-write; it does not change.

    Raises:
        BadData: The file cannot be written.
    """
    if path is None:
        memory = mmap.mmap(-1, math.prod(shape) * np.dtype(dtype).itemsize)
        array: Array = np.frombuffer(memory, dtype).reshape(shape)
        fill(array)
        return array
    damage = find_damage(path, shape, dtype)
    if damage:
        if os.path.lexists(path):
            console.log(f"{path}: {damage}; it is built again")
        with temporary_beside(path) as temporary:
            _write_array(temporary, shape, dtype, fill)
    mapped: Array = np.load(path, mmap_mode="c", allow_pickle=False)
    return mapped


def find_damage(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> str:
    """Return why a file is not an intact array, or "" when it is one.

    Args:
        path: The `.npy` file.
        shape: The shape it must have.
        dtype: The dtype it must have.
    """
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(stored, np.memmap) or stored.shape != shape or stored.dtype != dtype:
            return "an array of another kind or size"
        end = stored.offset + stored.nbytes
        del stored
        return _checksum_problem(path, end)
    except OSError as error:
        return error.strerror or str(error)
    except Exception:  # noqa: BLE001 - NumPy's parser raises many kinds of errors on damaged files
        return "damaged, no array can be read"


def _checksum_problem(path: Path, end: int) -> str:
    """Compare the checksum of the first `end` bytes with the one stored after them."""
    with open(path, "rb") as handle:
        expected = _trailer(_crc32(handle, end))
        trailer = handle.read(TRAILER_BYTES + 1)
    if not trailer.startswith(MARK):
        return "its checksum is missing"
    return "" if trailer == expected else "damaged (its checksum does not fit)"


def _trailer(crc: int) -> bytes:
    return MARK + f"{crc:08x}\n".encode()


def _crc32(handle: IO[bytes], size: int) -> int:
    """Return the CRC-32 of the next `size` bytes.

    They are read, not mapped: a disk error in mapped memory kills the process.
    """
    crc = 0
    while size > 0 and (block := handle.read(min(size, READ_BYTES))):
        crc = zlib.crc32(block, crc)
        size -= len(block)
    return crc


def _write_array(
    path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, fill: Callable[[Array], None]
) -> None:
    """Write a new array and its checksum."""
    array = np.lib.format.open_memmap(path, "w+", dtype, shape)
    with open(path, "r+b") as handle:
        # Reserve the space first: writing mapped memory on a full disk kills the process (SIGBUS).
        reserve_space(handle.fileno(), path.stat().st_size)
        fill(array)
        array.flush()
        crc = _crc32(handle, path.stat().st_size)
        handle.seek(0, os.SEEK_END)
        handle.write(_trailer(crc))
