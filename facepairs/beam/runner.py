"""A pass as a Beam pipeline, on any of its runners; it stands where `parallel.in_order` does.

What goes to the workers and comes back lies in files of one scratch folder, so that neither the
size of a pipeline (Dataflow: 10 MB) nor this machine's memory bounds a pass:

    SCRATCH/work            the work itself, pickled
    SCRATCH/items           all items, pickled one after the other
    SCRATCH/results-00000   the results of one run of items, in their order

The pipeline's elements are runs of items. Beam may try one again, or twice at a time: the same
items give the same results under the same name.
"""

import contextlib
import io
import logging
import pickle
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from facepairs.beam.places import Place, beam_module, place, reading, remove, writing
from facepairs.errors import BadConfig, BadData, BadRun, FacepairsError
from facepairs.support.atomic import scratch_folder
from facepairs.support.parallel import Run, in_order

T = TypeVar("T")
R = TypeVar("R")

MOST_ELEMENTS = 4096  # of a pipeline; more items than that go several to an element
LOCAL = (  # runners whose workers see this machine's own temporary folder
    "BundleBasedDirectRunner",
    "FnApiRunner",
    "PrismRunner",
)


class Element(NamedTuple):
    """Some items that follow one another: where they begin among all, and how many bytes."""

    number: int
    offset: int
    length: int


def choose_run(runner: str | None, options: Sequence[str]) -> Run:
    """Give what does the work: threads of this machine, or Beam where a runner is named.

    `options` are Beam's own, as on a command line. Raises BadConfig for a runner or an option that
    Beam does not know, and where Beam is not installed.
    """
    if runner is None:
        if options:
            raise BadConfig(f"{' '.join(options)}: unexpected, unless --runner names a Beam runner")
        return in_order
    return BeamRun(runner, options)


class BeamRun:
    """Does the work of passes on a Beam runner; call it as `parallel.in_order`.

    Raises BadConfig as `choose_run` does; when called what the work raises, and BadRun where the
    pipeline fails.
    """

    def __init__(self, runner: str, options: Sequence[str] = ()) -> None:
        self._beam = beam_module("", f"--runner {runner}")
        self._name = runner
        self._runner = _runner(runner)
        self._options = _parsed(options, isinstance(self._runner, _portable()))
        self._shared = self._shared_folder()

    def _shared_folder(self) -> Place | None:
        """Give the folder that all workers see; None where they are processes of this machine."""
        options = self._options.get_all_options()
        if options["temp_location"]:
            return place(options["temp_location"])
        if type(self._runner).__name__ not in LOCAL:
            raise BadConfig(
                f"{self._name}: its workers need a folder that this machine sees, too; name it "
                "behind all other options: -- --temp_location gs://bucket/tmp"
            )
        return None

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield work(item) for each item, in their order, once the pipeline is through."""
        with self._scratch() as scratch:
            elements = _write(scratch, work, items)
            self._execute(scratch, elements)
            for element in elements:
                yield from _results(scratch, element.number)

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Place]:
        if self._shared is None:
            with scratch_folder("facepairs-beam") as local:
                yield local
            return
        folder = self._shared / f"facepairs-{uuid.uuid4().hex}"
        try:
            if isinstance(folder, Path):
                folder.mkdir(parents=True)
            yield folder
        except OSError as error:
            raise BadData(f"{folder}: {error.strerror}; give another --temp_location") from None
        finally:
            with contextlib.suppress(OSError):
                remove(folder)

    def _execute(self, scratch: Place, elements: list[Element]) -> None:
        if not elements:
            return
        beam = self._beam
        try:
            pipeline = beam.Pipeline(runner=self._runner, options=self._options)
            _ = (
                pipeline
                | "Items" >> beam.Create(elements)
                | "Spread" >> beam.Reshuffle()
                | "Work" >> beam.Map(partial(do_element, scratch))
            )
            job = pipeline.run()
            try:
                state = job.wait_until_finish()
            except KeyboardInterrupt:
                job.cancel()
                raise
        except Exception as error:
            told = str(error).strip().splitlines() or [type(error).__name__]
            if told[-1].startswith("KeyboardInterrupt"):  # told as the failure of what it struck
                raise KeyboardInterrupt from None
            raise BadRun(f"{self._name}: the pipeline failed: {told[-1]}") from error
        if state not in ("DONE", None):
            raise BadRun(f"{self._name}: the pipeline ended {state}; see the runner's own log")


def _runner(name: str) -> Any:
    """Make a runner by its name, or by the full name of its class."""
    try:
        runner = beam_module(".runners.runner", name).create_runner(name)
    except ImportError as error:
        raise BadConfig(f"--runner {name}: {error}") from None
    except (ValueError, AttributeError):
        options = beam_module(".options.pipeline_options", name).StandardOptions
        known = ", ".join(options.KNOWN_RUNNER_NAMES)
        raise BadConfig(f"--runner is {name!r}; Beam knows {known}") from None
    if type(runner).__name__ == "SwitchingDirectRunner":
        # What it comes down to for batches, unless it first fetches a Prism from the network.
        return beam_module(".runners.portability.fn_api_runner", name).FnApiRunner()
    return runner


def _portable() -> Any:
    return beam_module(".runners.portability.portable_runner", "a runner").PortableRunner


def _parsed(options: Sequence[str], portable: bool) -> Any:
    """Read Beam's options; those of `portable` runners are known to their job servers alone."""
    said, before = io.StringIO(), logging.root.manager.disable
    logging.disable(logging.WARNING)  # what it would warn of is an error below
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            parsed = beam_module(".options.pipeline_options", "").PipelineOptions(list(options))
            known = parsed.get_all_options()
            every = parsed.get_all_options(retain_unknown_options=True)
    except SystemExit:
        told = (said.getvalue().strip().splitlines() or [""])[-1].partition(": error: ")[2]
        raise BadConfig(f"{told or ' '.join(options)}; see Beam's own documentation") from None
    finally:
        logging.disable(before)
    unknown = sorted(set(every) - set(known))
    stray = [word for word in options[:1] if not word.startswith("--")]
    if stray or (unknown and not portable):
        names = ", ".join(stray or [f"--{name}" for name in unknown])
        raise BadConfig(f"{names}: Beam knows no such option; see Beam's own documentation")
    return parsed


def _write(scratch: Place, work: Callable[[T], R], items: Iterable[T]) -> list[Element]:
    """Write the work and its items, and cut them into elements."""
    with writing(scratch / "work") as handle:
        pickle.dump(work, handle)
    ends = [0]
    with writing(scratch / "items") as handle:
        for item in items:
            data = pickle.dumps(item)
            handle.write(data)
            ends.append(ends[-1] + len(data))
    count = len(ends) - 1
    elements = min(count, MOST_ELEMENTS)
    cuts = [ends[number * count // max(elements, 1)] for number in range(elements + 1)]
    return [Element(n, cuts[n], cuts[n + 1] - cuts[n]) for n in range(elements)]


def do_element(scratch: Place, element: Element) -> None:
    """Do the work on one element's items, on a worker, and leave the results in their file.

    An error that a user can act on is a result, too, and the last: trying again would not mend it.
    """
    work = _work(scratch)
    with reading(scratch / "items") as handle:
        handle.seek(element.offset)
        data = handle.read(element.length)
    results = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as passes in threads do: what is wrong is in the results
        for item in _pickled(io.BytesIO(data)):
            try:
                pickle.dump(work(item), results)
            except FacepairsError as error:
                pickle.dump(error, results)
                break
    with writing(scratch / f"results-{element.number:05d}") as target:
        target.write(results.getbuffer())


@lru_cache(maxsize=1)
def _work(scratch: Place) -> Callable[[Any], Any]:
    """Read the work, once a process: a network may be part of it."""
    with reading(scratch / "work") as handle:
        work: Callable[[Any], Any] = pickle.load(handle)  # noqa: S301 - our own
    return work


def _results(scratch: Place, number: int) -> Iterator[Any]:
    with reading(scratch / f"results-{number:05d}") as handle:
        for result in _pickled(handle):
            if isinstance(result, FacepairsError):
                raise result
            yield result


def _pickled(handle: Any) -> Iterator[Any]:
    """Yield what was pickled to a file one after the other."""
    while True:
        try:
            yield pickle.load(handle)  # noqa: S301 - our own, from the scratch folder
        except EOFError:
            return
