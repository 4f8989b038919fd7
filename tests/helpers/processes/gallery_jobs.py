"""Add random embeddings to a gallery in a process of its own, and print what is on disk.

python gallery_jobs.py GALLERY FIRST COUNT
"""

import hashlib
import sys

import numpy as np

from facepairs.gallery.identity import ModelIdentity
from facepairs.gallery.stores import open_store
from facepairs.gallery.stores.base import NewFace

WIDTH = 16
MODEL = ModelIdentity("0" * 64, "tiny", "landmarks-5", WIDTH)


def photo(number: int, person: str | None = None) -> NewFace:
    """Return photo `number`, always with the same embedding of length 1."""
    vector = np.random.default_rng(number).normal(size=WIDTH).astype(np.float32)
    digest = hashlib.sha256(str(number).encode()).digest()
    return NewFace(person or f"P{number}", digest, vector / np.linalg.norm(vector))


def main(path: str, first: str, count: str) -> None:
    store = open_store(path, write=True)
    store.set_model(MODEL)
    for number in range(int(first), int(first) + int(count)):
        store.put([photo(number)], None)
        print(number, flush=True)  # acknowledged
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
