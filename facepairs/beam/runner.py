"""Run a pass over many items as an Apache Beam pipeline, in place of `parallel.thread_map`.

Work, items and results travel through files of one scratch folder, so that neither the size limit
of a pipeline (Dataflow: 10 MB) nor the memory of this machine limits a pass:

    SCRATCH/work            the work itself, pickled
    SCRATCH/items           all items, pickled one after the other
    SCRATCH/results-00000   the results of one element, in the order of its items

An element of the pipeline is a range of items. Beam may retry an element, or run it twice at the
same time: the same items give the same results under the same file name.
"""

import contextlib
import io
import logging
import pickle
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeVar

from facepairs.beam.paths import BeamPath, beam_module, parse_place, reading, remove, writing
from facepairs.errors import BadConfig, BadData, BadRun, FacepairsError
from facepairs.support.atomic import scratch_folder
from facepairs.support.parallel import thread_map

T = TypeVar("T")
R = TypeVar("R")

MAX_ELEMENTS = 4096  # of a pipeline; with more items an element holds several
LOCAL_RUNNERS = (  # their workers see this machine's own temporary folder
    "BundleBasedDirectRunner",
    "FnApiRunner",
    "PrismRunner",
)


class OrderedMap(Protocol):
    """What does the work of a pass: `thread_map` or a `BeamMap`."""

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield work(item) for each item, in order; `work`, items and results can be pickled."""
        ...


class Element(NamedTuple):
    """Consecutive items: the element's number, and where its bytes are in the file of items."""

    number: int
    offset: int
    length: int


def choose_map(runner: str | None, options: Sequence[str]) -> OrderedMap:
    """Return what does the work of a pass: threads, or Beam if a runner is named.

    Args:
        runner: Name of a Beam runner, or None.
        options: Beam's own options, as on its command line.

    Raises:
        BadConfig: Beam is not installed or does not know the runner or an option, or there are
            options without a runner.
    """
    if runner is None:
        if options:
            raise BadConfig(f"{' '.join(options)}: unexpected, unless --runner names a Beam runner")
        return thread_map
    return BeamMap(runner, options)


class BeamMap:
    """Does the work of a pass on a Beam runner; an `OrderedMap`.

    Args:
        runner: Name of a Beam runner, or the full name of its class.
        options: Beam's own options, as on its command line.

    Raises:
        BadConfig: Beam is not installed or does not know the runner or an option.
    """

    def __init__(self, runner: str, options: Sequence[str] = ()) -> None:
        self._beam = beam_module("", f"--runner {runner}")
        self._name = runner
        self._runner = _make_runner(runner)
        portable = beam_module(".runners.portability.portable_runner", "a runner")
        self._options = _parse(options, isinstance(self._runner, portable.PortableRunner))
        location = self._options.get_all_options()["temp_location"]
        if not location and type(self._runner).__name__ not in LOCAL_RUNNERS:
            raise BadConfig(
                f"{runner}: its workers need a folder that this machine can read, too; name it "
                "after all other options: -- --temp_location gs://bucket/tmp"
            )
        self._shared = BeamPath(str(parse_place(location))) if location else None

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield work(item) for each item, in order, once the pipeline has finished.

        Raises:
            BadRun: The pipeline failed.
            BadData: The folder for temporary files cannot be used.
            FacepairsError: What `work` raises.
        """
        with self._scratch() as scratch:
            elements = _write(scratch, work, items)
            if elements:
                self._execute(scratch, elements)
            for element in elements:
                yield from _read_results(scratch, element.number)

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[BeamPath]:
        if self._shared is None:
            with scratch_folder("facepairs-beam") as local:
                yield BeamPath(str(local))
            return
        folder = self._shared / f"facepairs-{uuid.uuid4().hex}"
        try:
            yield folder
        except OSError as error:
            raise BadData(f"{folder}: {error.strerror}; give another --temp_location") from None
        finally:
            with contextlib.suppress(OSError):
                remove(folder)

    def _execute(self, scratch: BeamPath, elements: list[Element]) -> None:
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
            lines = str(error).strip().splitlines() or [type(error).__name__]
            if lines[-1].startswith("KeyboardInterrupt"):  # reported as a failure of the worker
                raise KeyboardInterrupt from None
            raise BadRun(f"{self._name}: the pipeline failed: {lines[-1]}") from error
        if state not in ("DONE", None):
            raise BadRun(f"{self._name}: the pipeline ended {state}; see the runner's own log")


def _make_runner(name: str) -> Any:
    try:
        runner = beam_module(".runners.runner", name).create_runner(name)
    except ImportError as error:
        raise BadConfig(f"--runner {name}: {error}") from None
    except (ValueError, AttributeError):
        options = beam_module(".options.pipeline_options", name).StandardOptions
        known = ", ".join(options.KNOWN_RUNNER_NAMES)
        raise BadConfig(f"--runner is {name!r}; Beam knows {known}") from None
    if type(runner).__name__ == "SwitchingDirectRunner":
        # It uses FnApiRunner for batch work, or else tries to download Prism first.
        return beam_module(".runners.portability.fn_api_runner", name).FnApiRunner()
    return runner


def _parse(options: Sequence[str], portable: bool) -> Any:
    """Parse Beam's options; only the job server of a `portable` runner knows all of its options."""
    printed, before = io.StringIO(), logging.root.manager.disable
    logging.disable(logging.WARNING)  # what Beam warns about is an error below
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            parsed = beam_module(".options.pipeline_options", "").PipelineOptions(list(options))
            known = parsed.get_all_options()
            given = parsed.get_all_options(retain_unknown_options=True)
    except SystemExit:
        last_line = (printed.getvalue().strip().splitlines() or [""])[-1]
        reason = last_line.partition(": error: ")[2] or " ".join(options)
        raise BadConfig(f"{reason}; see Beam's own documentation") from None
    finally:
        logging.disable(before)
    unknown = sorted(set(given) - set(known))
    stray = [word for word in options[:1] if not word.startswith("--")]
    if stray or (unknown and not portable):
        names = ", ".join(stray or [f"--{name}" for name in unknown])
        raise BadConfig(f"{names}: Beam knows no such option; see Beam's own documentation")
    return parsed


def _write(scratch: BeamPath, work: Callable[[T], R], items: Iterable[T]) -> list[Element]:
    """Write the work and its items, and divide the items among elements."""
    with writing(scratch / "work") as handle:
        pickle.dump(work, handle)
    ends = [0]
    with writing(scratch / "items") as handle:
        for item in items:
            data = pickle.dumps(item)
            handle.write(data)
            ends.append(ends[-1] + len(data))
    count = len(ends) - 1
    elements = min(count, MAX_ELEMENTS)
    cuts = [ends[number * count // max(elements, 1)] for number in range(elements + 1)]
    return [Element(n, cuts[n], cuts[n + 1] - cuts[n]) for n in range(elements)]


def do_element(scratch: BeamPath, element: Element) -> None:
    """Do the work on one element's items, on a worker, and write the results to a file.

    A FacepairsError ends the file instead of failing the pipeline: a retry would not help.
    """
    work = _read_work(scratch)
    with reading(scratch / "items") as handle:
        handle.seek(element.offset)
        data = handle.read(element.length)
    results = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in threads; what is wrong is part of the results
        for item in _unpickle(io.BytesIO(data)):
            try:
                pickle.dump(work(item), results)
            except FacepairsError as error:
                pickle.dump(error, results)
                break
    with writing(scratch / f"results-{element.number:05d}") as target:
        target.write(results.getbuffer())


@lru_cache(maxsize=1)
def _read_work(scratch: BeamPath) -> Callable[[Any], Any]:
    """Read the work, once per process: it may contain a network."""
    with reading(scratch / "work") as handle:
        work: Callable[[Any], Any] = pickle.load(handle)  # noqa: S301 - written by us
    return work


def _read_results(scratch: BeamPath, number: int) -> Iterator[Any]:
    with reading(scratch / f"results-{number:05d}") as handle:
        for result in _unpickle(handle):
            if isinstance(result, FacepairsError):
                raise result
            yield result


def _unpickle(handle: Any) -> Iterator[Any]:
    """Yield the objects that were pickled to a file one after the other."""
    while True:
        try:
            yield pickle.load(handle)  # noqa: S301 - written by us, in the scratch folder
        except EOFError:
            return
