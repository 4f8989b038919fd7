"""Run a pass over many items as an Apache Beam pipeline, in place of `parallel.thread_map`.

Work, items and results travel through files of one scratch folder, so that neither the size limit
of a pipeline (Dataflow: 10 MB) nor the memory of this machine limits a pass:

    SCRATCH/work        the work itself, pickled
    SCRATCH/items       all items, pickled one after the other
    SCRATCH/results-0   the results of the element that begins at this byte, in the items' order

An element of the pipeline is a range of items. Beam may retry an element, or run it twice at the
same time: the same items give the same results under the same file name.
"""

import contextlib
import io
import pickle
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

from facepairs.beam.paths import BeamPath, beam_module, parse_place, reading, remove, writing
from facepairs.errors import BadConfig, BadRun, FacepairsError
from facepairs.support.parallel import thread_map

Work = Callable[[Any], Any]
OrderedMap = Callable[[Work, Iterable[Any]], Iterator[Any]]
"""Yields work(item) for each item, in order; `work`, items and results can be pickled."""

MAX_ELEMENTS = 4096  # of a pipeline; with more items an element holds several
# Their workers see this machine's own temporary folder.
LOCAL_RUNNERS = ("BundleBasedDirectRunner", "FnApiRunner", "PrismRunner")


class Element(NamedTuple):
    """Consecutive items: where their bytes are in the file of items."""

    start: int
    end: int


def make_ordered_map(runner: str | None, options: Sequence[str]) -> OrderedMap:
    """Return the map that does the work of a pass: threads, or Beam if a runner is named.

    Args:
        runner: Name of a Beam runner, or None.
        options: Beam's own options, as on its command line.

    Raises:
        BadConfig: Beam is not installed or does not know the runner or an option, or options are
            given without a runner.
    """
    if runner is None:
        if options:
            raise BadConfig(f"{' '.join(options)}: unexpected without a Beam runner", "runner")
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
        self._beam = beam_module("", f"runner {runner}")
        self._runner = _make_runner(runner)
        is_local = type(self._runner).__name__ in LOCAL_RUNNERS
        self._options = _parse(options, is_local)
        place = self._options.get_all_options()["temp_location"]
        if not place and not is_local:
            raise BadConfig(
                f"{runner}: its workers need a folder that this machine can also read; give Beam's "
                "option temp_location, such as gs://bucket/tmp"
            )
        self._place = BeamPath(str(parse_place(place or tempfile.gettempdir())))

    def __call__(self, work: Work, items: Iterable[Any]) -> Iterator[Any]:
        """Yield work(item) for each item, in order, once the pipeline has finished.

        Raises:
            BadRun: The pipeline failed.
            OSError: The folder for temporary files cannot be used.
            FacepairsError: From `work`.
        """
        scratch = self._place / f"facepairs-{uuid.uuid4().hex}"
        try:
            elements = _write(scratch, work, items)
            if elements:
                self._run(scratch, elements)
            for element in elements:
                yield from _read_results(scratch, element)
        finally:
            with contextlib.suppress(OSError):
                remove(scratch)

    def _run(self, scratch: BeamPath, elements: list[Element]) -> None:
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
                job.wait_until_finish()
            except KeyboardInterrupt:
                job.cancel()
                raise
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            if lines[-1].startswith("KeyboardInterrupt"):  # reported as a failure of the worker
                raise KeyboardInterrupt from None
            raise BadRun(f"the Beam pipeline failed: {lines[-1]}") from error


def _make_runner(name: str) -> Any:
    # Beam's DirectRunner uses this one for batch work, or else tries to download another first.
    wanted = "FnApiRunner" if name == "DirectRunner" else name
    try:
        return beam_module(".runners.runner", name).create_runner(wanted)
    except (ImportError, ValueError, AttributeError) as error:
        raise BadConfig(f"{name}: {error}", "runner") from None


def _parse(options: Sequence[str], is_local: bool) -> Any:
    """Parse Beam's options; a runner elsewhere may know more of them than Beam does here."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            parsed = beam_module(".options.pipeline_options", "").PipelineOptions(list(options))
            known = parsed.get_all_options().keys()
            unknown = parsed.get_all_options(retain_unknown_options=True).keys() - known
    except SystemExit:
        reason = printed.getvalue().strip().rpartition(": error: ")[2] or " ".join(options)
        raise BadConfig(f"{reason}; see Beam's documentation") from None
    wrong = [word for word in options[:1] if not word.startswith("--")]
    if is_local:
        wrong += sorted(unknown)
    if wrong:
        raise BadConfig(f"{wrong[0]}: unknown option of Beam; see Beam's documentation")
    return parsed


def _write(scratch: BeamPath, work: Work, items: Iterable[Any]) -> list[Element]:
    """Write the work and its items, and divide the items among elements."""
    with writing(scratch / "work") as handle:
        pickle.dump(work, handle)
    ends = [0]
    with writing(scratch / "items") as handle:
        for item in items:
            data = pickle.dumps(item)
            handle.write(data)
            ends.append(ends[-1] + len(data))
    step = -(-(len(ends) - 1) // MAX_ELEMENTS) or 1
    return [Element(*bounds) for bounds in pairwise([*ends[:-1:step], ends[-1]])]


def do_element(scratch: BeamPath, element: Element) -> None:
    """Do the work on one element's items, on a worker, and write the results to a file.

    A FacepairsError ends the file instead of failing the pipeline: a retry would not help.
    """
    work, results = _read_work(scratch), io.BytesIO()
    with reading(scratch / "items") as handle:
        handle.seek(element.start)
        items = io.BytesIO(handle.read(element.end - element.start))
    try:
        for item in _unpickle(items):
            pickle.dump(work(item), results)
    except FacepairsError as error:
        pickle.dump(error, results)
    with writing(scratch / f"results-{element.start}") as target:
        target.write(results.getvalue())


@lru_cache(maxsize=1)
def _read_work(scratch: BeamPath) -> Work:
    """Read the work, once per process: it may contain a network."""
    with reading(scratch / "work") as handle:
        work: Work = pickle.load(handle)  # noqa: S301 - written by us
    return work


def _read_results(scratch: BeamPath, element: Element) -> Iterator[Any]:
    with reading(scratch / f"results-{element.start}") as handle:
        for result in _unpickle(handle):
            if isinstance(result, FacepairsError):
                raise result
            yield result


def _unpickle(handle: Any) -> Iterator[Any]:
    """Yield the objects that were pickled to a file one after the other."""
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(handle)  # noqa: S301 - written by us, in the scratch folder
