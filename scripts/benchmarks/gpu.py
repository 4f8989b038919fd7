"""Train with Keras' `fit` from different input pipelines, and sample how busy the GPU is.

    python scripts/benchmarks/gpu.py [PHOTOS] [--out gpu.json]
    KERAS_BACKEND=jax python scripts/benchmarks/gpu.py [PHOTOS]

PHOTOS is a folder of Person_Name/photo.jpg; without it, people are drawn. Each model is trained
from every row for some seconds, on any backend of Keras. Printed are pairs per second, the GPU's
mean utilisation by NVML (`pip install nvidia-ml-py`), and the speed as a share of that on a
constant batch, which needs no input. The JSON file is written anew after every row. With the
defaults it ends within eight minutes: rows that time does not suffice for are left out.

Where TensorFlow is not installed, `files` is read by threads with Pillow and `memory` by NumPy, and
the rows that need `tf.data` are left out. Batches are resized by the model and nothing is
augmented, so a step is as short as can be.
"""

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from facepairs import EmbeddingLoss, build_keras
from facepairs.bench import pillow
from facepairs.bench.job import Job
from facepairs.bench.rows import Settings, Spec
from facepairs.data.pairs import PairList
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.errors import FacepairsError
from facepairs.models.resnet import face_resnet
from facepairs.photos.photo import open_photo
from facepairs.support.atomic import atomic_file
from facepairs.support.console import showing
from facepairs.support.parallel import thread_map
from facepairs.support.platform import keep_freed_memory
from facepairs.support.words import align_columns

MODELS = {"difference": 64, "siamese": 64, "resnet": 150}  # side of the input in pixels
CONSTANT = "constant"
TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
CROP_PX, PEOPLE, PHOTOS = 128, 250, 8
WARM_UP_STEPS, FIRST_STEP, LEAST_STEPS = 10, 5, 20  # FIRST_STEP: from here on, steps are counted
SAMPLE_S = 0.1  # between two looks at the GPU


@dataclass
class Result:
    """What training from a row gave; None where it was not measured.

    Attributes:
        model: Name of the model.
        row: Name of the input pipeline.
        pairs_per_s: Pairs per second, after the warm-up.
        utilisation: Mean share of the time in which the GPU computed, 0 to 1.
        share: `pairs_per_s` as a share of that on a constant batch.
        steps: Steps that were measured.
        skipped: Why it could not run, or "".
    """

    model: str
    row: str
    pairs_per_s: float | None = None
    utilisation: float | None = None
    share: float | None = None
    steps: int = 0
    skipped: str = ""


# Input pipelines: a function of the job that returns what `fit` takes, without end.


def pil(job: Job) -> Iterator[Any]:
    """The generator that tutorials write first: Pillow, whole images, one after another."""
    return ((batch.images, batch.genuine) for batch in pillow.pil(job))


def article(job: Job) -> Any:
    """The tutorials' article: `from_generator` a pair at a time, serial map; our batch size."""
    from facepairs.bench.usual import article_dataset

    return article_dataset(job, job.batch_size, None)


def files(job: Job) -> Any:
    """Our store `files`; without TensorFlow, crops cut by threads with Pillow."""
    if not TENSORFLOW:
        return (_batch(job, pairs) for pairs in job.batches())
    from facepairs.pipeline.dataset import make_dataset
    from facepairs.pipeline.files import FileStore

    return make_dataset(FileStore(job.index, job.plan), job.blocks, job.batch_size)


def tfrecord(job: Job) -> Any:
    """Our cache of pairs."""
    from facepairs.bench.stores import build
    from facepairs.pipeline.records.store import RecordStore

    if not job.cache.exists():
        build(job)
    return RecordStore.open(job.cache).batches(job.batch_size, 0)


def memory(job: Job) -> Any:
    """Our store `memory`; without TensorFlow, rows of an array, gathered by NumPy."""
    if not TENSORFLOW:
        crops = _crops(job, range(len(job.paths)))
        return (((crops[p.left], crops[p.right]), p.genuine) for p in job.batches())
    from facepairs.pipeline.dataset import make_dataset
    from facepairs.pipeline.memory import MemoryStore

    return make_dataset(MemoryStore.build(job.index, job.plan), job.blocks, job.batch_size)


def constant(job: Job) -> Any:
    """One batch of crops, again and again."""
    batch = _batch(job, next(job.batches()))
    if not TENSORFLOW:
        return (batch for _ in itertools.count())  # Keras takes generators, no other iterators
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)


def _batch(job: Job, pairs: PairList) -> tuple[Any, Any]:
    return (_crops(job, pairs.left), _crops(job, pairs.right)), pairs.genuine


def _crops(job: Job, images: Iterable[int]) -> Any:
    """Cut crops as verification does: uint8[images, CROP_PX, CROP_PX, 3]."""

    def crop(image: int) -> Any:
        return job.plan.crop(open_photo(job.paths[image]), image)

    return np.stack(list(thread_map(crop, images)))


ROWS: dict[str, tuple[Callable[[Job], Any], bool]] = {  # the pipeline; does it need TensorFlow?
    CONSTANT: (constant, False),
    "pil": (pil, False),
    "article": (article, True),
    "files": (files, False),
    "tfrecord-jpeg": (tfrecord, True),
    "tfrecord-raw": (tfrecord, True),
    "memory": (memory, False),
}


def build_model(name: str, crop_px: int) -> keras.Model:
    """Return a compiled model of crops of both sides, as they come: uint8, or float32."""
    network = _network(name, MODELS[name])
    sides = [keras.Input((crop_px, crop_px, 3), name=side) for side in ("left", "right")]
    resize = keras.layers.Resizing(MODELS[name], MODELS[name])
    model = keras.Model(sides, network([resize(side) for side in sides]), name=name)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile("adam", loss if name == "difference" else EmbeddingLoss())
    return model


def _network(name: str, side_px: int) -> keras.Model:
    """Return float32[B, side_px, side_px, 3] twice, in [0, 255] → a logit, or both embeddings."""
    if name != "resnet":
        return build_keras(name, side_px)
    sides = [keras.Input((side_px, side_px, 3)) for _ in range(2)]
    both = keras.layers.Rescaling(1 / 255)(keras.ops.concatenate(sides, axis=0))
    embeddings = face_resnet(side_px)(both)
    return keras.Model(sides, keras.ops.stack(keras.ops.split(embeddings, 2), axis=1))


class Gpu:
    """The first GPU as NVML sees it; `sample` returns its mean utilisation during a block."""

    def __init__(self) -> None:
        self.name, self._handle = "", None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
            self.name = str(pynvml.nvmlDeviceGetName(self._handle))
        except ModuleNotFoundError:
            self.reason = "utilisation needs NVML: pip install nvidia-ml-py"
        except pynvml.NVMLError as error:
            self.reason = f"no utilisation: {error}"

    @contextlib.contextmanager
    def sample(self) -> Iterator[list[float]]:
        """Yield a list that shares of busy time are added to, until the block ends."""
        shares: list[float] = []
        done = threading.Event()

        def look() -> None:
            while not done.wait(SAMPLE_S):
                rates = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
                shares.append(rates.gpu / 100)

        thread = threading.Thread(target=look, daemon=True)
        if self._handle is not None:
            thread.start()
        yield shares
        done.set()
        if self._handle is not None:
            thread.join()


class Clock(keras.callbacks.Callback):
    """Counts steps until the time is over, and times them until the device has computed all.

    Keras calls it in a thread of its own with the logs of finished steps, so nothing waits for it.
    """

    async_safe = True

    def __init__(self, model: keras.Model, seconds: float) -> None:
        super().__init__()
        self._trained = model  # `self.model` would fetch all weights from JAX
        self._seconds, self._started, self.steps, self.elapsed_s = seconds, 0.0, 0, 0.0

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if batch + 1 == FIRST_STEP:
            self._started = time.perf_counter()
        elif batch + 1 > FIRST_STEP:
            self.steps = batch + 1 - FIRST_STEP
            self.elapsed_s = time.perf_counter() - self._started
            enough = self.elapsed_s >= self._seconds and self.steps >= LEAST_STEPS
            self._trained.stop_training = self._trained.stop_training or enough


def measure(model: keras.Model, batches: Any, batch_size: int, seconds: float, gpu: Gpu) -> Result:
    """Train for some steps to compile and warm up, then as long as asked."""
    words = {"epochs": 1, "verbose": 0, "shuffle": False}
    model.fit(batches, steps_per_epoch=WARM_UP_STEPS, **words)
    clock = Clock(model, seconds)
    with gpu.sample() as shares:
        model.fit(batches, steps_per_epoch=10**6, callbacks=[clock], **words)
    return Result(
        model.name,
        "",
        pairs_per_s=batch_size * clock.steps / clock.elapsed_s,
        utilisation=statistics.mean(shares) if shares else None,
        steps=clock.steps,
    )


def run(options: argparse.Namespace, folder: str) -> Iterator[Result]:
    """Yield the result of every model and row."""
    gpu, until = Gpu(), time.monotonic() + options.limit
    print(
        f"{keras.backend.backend()} on {gpu.name or 'the CPU'}", gpu.reason if not gpu.name else ""
    )
    photos = options.photos
    if photos is None:
        photos = Path(folder) / "faces"
        write_synthetic_faces(photos, options.people, PHOTOS, seed=1)
    settings = Settings(
        str(photos), {}, batch_size=options.batch_size, crop_px=CROP_PX, most_images=4000
    )
    Job(Spec(settings, folder)).prepare()
    for name in options.models:
        model, ceiling = build_model(name, CROP_PX), None
        for row in options.rows:
            pipeline, needs_tensorflow = ROWS[row]
            if needs_tensorflow and not TENSORFLOW:
                yield Result(name, row, skipped="needs tf.data, and TensorFlow is not installed")
                continue
            if time.monotonic() > until:
                yield Result(name, row, skipped="no time left")
                continue
            batches = pipeline(Job(Spec(settings, folder, row)))
            found = measure(model, batches, options.batch_size, options.seconds, gpu)
            found.row = row
            ceiling = found.pairs_per_s if row == CONSTANT else ceiling
            found.share = found.pairs_per_s / ceiling if ceiling else None
            yield found


def to_text(results: list[Result]) -> list[str]:
    """Return the results as a table."""
    table = [["model", "row", "pairs/s", "GPU busy", "of constant"]]
    for one in results:
        cells = [one.skipped]
        if one.pairs_per_s is not None:
            shares = [f"{x:.0%}" if x is not None else "" for x in (one.utilisation, one.share)]
            cells = [f"{one.pairs_per_s:,.0f}", *shares]
        table.append([one.model, one.row, *cells])
    return align_columns(table, right=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, nargs="?", help="folder of Person_Name/photo.jpg")
    parser.add_argument("--models", type=_some_of(MODELS), default=list(MODELS))
    parser.add_argument("--rows", type=_some_of(ROWS), default=list(ROWS))
    parser.add_argument("--seconds", type=float, default=6.0, help="of training per row")
    parser.add_argument("--batch-size", type=int, default=128, help="pairs per step")
    parser.add_argument("--people", type=int, default=PEOPLE, help="to draw, without photos")
    parser.add_argument("--limit", type=float, default=420, help="start no row after these seconds")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    keep_freed_memory()
    if TENSORFLOW and keras.backend.backend() != "tensorflow":
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")  # it would take the memory of the GPU
    results: list[Result] = []
    say = showing(lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="facepairs-gpu-") as folder, say:
        for result in run(options, folder):
            results.append(result)
            print(" ".join(to_text([result])[-1].split()), flush=True)
            if options.out:
                _write(options, results)
    print("\n" + "\n".join(to_text(results)))


def _some_of(known: Any) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r}; use some of {', '.join(known)}")
        return names

    return parse


def _write(options: argparse.Namespace, results: list[Result]) -> None:
    """Write what is known so far, so that a killed run leaves it."""
    report = {
        "backend": keras.backend.backend(),
        "device": Gpu().name or "CPU",
        "cores": os.cpu_count(),
        "batch_size": options.batch_size,
        "seconds": options.seconds,
        "photos": str(options.photos) if options.photos else f"{options.people} drawn people",
        "results": [asdict(result) for result in results],
    }
    with atomic_file(options.out) as handle:
        json.dump(report, handle, indent=1, allow_nan=False)


if __name__ == "__main__":
    try:
        main()
    except FacepairsError as error:
        sys.exit(f"error: {error}")
