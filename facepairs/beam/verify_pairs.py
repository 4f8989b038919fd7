"""`verify --pairs` where the list, the photos and the scores may lie anywhere."""

from contextlib import nullcontext
from pathlib import Path

from facepairs.beam.paths import BeamPath, Place, copy_from, copy_to, remove
from facepairs.bundles.thresholds import OperatingPoint
from facepairs.errors import BadConfig, BadData
from facepairs.support.atomic import scratch_folder
from facepairs.support.checksum import checksum_of
from facepairs.support.parallel import OrderedMap, thread_map
from facepairs.verification.verifier import Verifier
from facepairs.verification.verify_pairs import BatchReport, Ticker, no_ticker, verify_pairs


def verify_pairs_anywhere(
    verifier: Verifier,
    pairs: Place,
    out: Place,
    point: OperatingPoint,
    root: Place | None = None,
    resume: bool = False,
    ticker: Ticker = no_ticker,
    framing: bool = True,
    ordered_map: OrderedMap = thread_map,
) -> BatchReport:
    """Score a list of pairs as `verification.batch.verify_pairs` does, on local copies of files.

    A list that lies elsewhere is fetched first, scores that go elsewhere are sent when they are
    whole. Raises what `verify_pairs` does, and BadConfig for `resume` with an `out` elsewhere.
    """
    if resume and not isinstance(out, Path):
        raise BadConfig(f"{out}: --resume needs an --out on this machine, where work is kept")
    root = pairs.parent if root is None else root
    here = isinstance(pairs, Path) and isinstance(out, Path)
    with nullcontext(Path()) if here else scratch_folder("facepairs-pairs") as folder:
        local_pairs = _fetched(pairs, folder / "pairs.csv")
        local_out = out if isinstance(out, Path) else folder / "out" / out.name
        report = verify_pairs(
            verifier, local_pairs, local_out, point, root, resume, ticker, framing, ordered_map
        )
        if not isinstance(out, Path):
            try:
                _send(local_out, out)
            except OSError as error:
                raise BadData(f"{out}: {error.strerror}; choose another --out") from None
    return report


def _send(local: Path, out: BeamPath) -> None:
    """Copy scores, then their checksum: a kill in between leaves none, never another's."""
    beside = checksum_of(local)
    remove(out.parent / beside.name)
    copy_to(local, out)
    copy_to(beside, out.parent / beside.name)


def _fetched(where: Place, local: Path) -> Path:
    if isinstance(where, Path):
        return where
    try:
        copy_from(where, local)
    except OSError as error:
        raise BadData(f"{where}: {error.strerror}; give a CSV file with left,right") from None
    return local
