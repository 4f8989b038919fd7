"""How the index and the sampler grow: a listing of a million invented paths, no files.

    python scripts/index_bench.py [IMAGES]

Prints seconds to build the index, memory it adds, and the time of one sampler block at growing
numbers of images.
"""

import sys
import time
from collections.abc import Iterator

import numpy as np
import psutil

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler

BLOCK_PAIRS, REPEATS = 1024, 200


def listing(images: int) -> Iterator[str]:
    """Yield sorted names as LFW has them; a person has 1 to 5 photos."""
    person = image = 0
    while image < images:
        count = min(1 + person * 7 % 5, images - image)
        for number in range(1, count + 1):
            yield f"Person_{person:07d}/Person_{person:07d}_{number:04d}.jpg"
        image += count
        person += 1


def block_ms(index: FaceIndex) -> float:
    """Give the median time of a block of 1,024 pairs in milliseconds."""
    sampler = PairSampler(index.first, range(len(index.people)), seed=0)
    times = []
    for block in range(REPEATS):
        started = time.perf_counter()
        sampler.block(0, block, BLOCK_PAIRS)
        times.append(time.perf_counter() - started)
    return 1000 * float(np.median(times))


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    process = psutil.Process()
    sizes = sorted({max(1000, most // factor) for factor in (100, 10, 1)})
    print(f"{'images':>10} {'people':>9} {'build s':>8} {'memory MB':>10} {'block ms':>9}")
    for images in sizes:
        before = process.memory_info().rss
        started = time.perf_counter()
        index = FaceIndex.from_listing(listing(images))
        took = time.perf_counter() - started
        memory = (process.memory_info().rss - before) / 1e6
        row = f"{images:>10,} {len(index.people):>9,} {took:>8.2f} {memory:>10.0f}"
        print(f"{row} {block_ms(index):>9.3f}", flush=True)
    print(f"peak memory of the process: {process_peak_mb():,.0f} MB")


def process_peak_mb() -> float:
    """Give the largest resident size of this process so far, in MB (10^6 bytes)."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
