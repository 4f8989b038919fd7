"""glibc's allocator, told to keep the memory of batches that are gone, in few places."""

import ctypes
import sys

from facepairs.support.machine import cores

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8  # malloc.h
BATCH_BYTES = 32 * 2**20  # the largest threshold that glibc takes


def keep_freed_memory() -> None:
    """Let big buffers come from memory that is at hand, instead of new pages from the kernel.

    By default glibc gives every freed batch of images back and asks for zeroed pages for the next,
    which costs about a quarter of the time that decoding takes. What is kept is kept by arenas:
    by default eight a core, and each comes to hold what a batch took. One more than cores is as
    fast; as many as cores took a tenth longer. Does nothing elsewhere than on Linux with glibc.
    Source: mallopt(3).
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return
    mallopt(M_MMAP_THRESHOLD, BATCH_BYTES)
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(M_TOP_PAD, 2 * BATCH_BYTES)
    mallopt(M_ARENA_MAX, cores() + 1)
