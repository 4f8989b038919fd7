"""`verify --pairs` with the list, the photos and the scores on any storage."""

from collections.abc import Sequence
from pathlib import Path

from facepairs.beam.paths import BeamPath, copy_from, copy_to, parse_place, remove
from facepairs.beam.remote_index import remote_errors
from facepairs.beam.runner import choose_map
from facepairs.bundles.calibration import EQUAL_PRIORS
from facepairs.bundles.operating_point import OperatingPoint
from facepairs.errors import BadConfig
from facepairs.support.atomic import scratch_folder
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.pairs.verify_pairs import PairsReport, verify_pairs
from facepairs.verification.provenance import provenance_path
from facepairs.verification.verifier import Verifier


def verify_pairs_at(
    verifier: Verifier,
    pairs: str,
    out: str,
    point: OperatingPoint,
    root: str | None = None,
    resume: bool = False,
    progress: ProgressFactory = ignore_phases,
    runner: str | None = None,
    beam_options: Sequence[str] = (),
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score a list of pairs as `verification.pairs.verify_pairs` does.

    A remote list is downloaded first; remote scores are uploaded when they are complete.

    Args:
        verifier: Scores the pairs; it should have one thread.
        pairs, out, root: A local path each, or one of `scheme://…`.
        point, resume, progress: As for `verify_pairs`.
        runner: Name of the Beam runner that does the work, or None for threads.
        beam_options: Beam's own options, as on its command line.
        prior: As for `verify_pairs`.

    Raises:
        BadConfig: Beam is needed and missing, or does not know the runner or an option; or
            `resume` is set and `out` is remote.
        FacepairsError: What `verify_pairs` raises.
    """
    ordered_map = choose_map(runner, beam_options)
    source, target = parse_place(pairs), parse_place(out)
    folder = source.parent if root is None else parse_place(root)
    if resume and isinstance(target, BeamPath):
        raise BadConfig(f"{out}: --resume needs an --out on this machine, where work is kept")
    read_file = folder.read_file if isinstance(folder, BeamPath) else None
    settings = (point, str(folder), resume, progress, ordered_map, read_file, prior, pairs)
    if isinstance(source, Path) and isinstance(target, Path) and isinstance(folder, Path):
        return verify_pairs(verifier, source, target, *settings)
    with remote_errors(source, target, folder), scratch_folder("facepairs-pairs") as scratch:
        list_file = source if isinstance(source, Path) else scratch / "pairs.csv"
        scores = target if isinstance(target, Path) else scratch / "out" / target.name
        if isinstance(source, BeamPath):
            copy_from(source, list_file)
        report = verify_pairs(verifier, list_file, scores, *settings)
        if isinstance(target, BeamPath):
            _upload(scores, target)
    return report


def _upload(scores: Path, target: BeamPath) -> None:
    """Copy scores, then their provenance; a kill in between leaves none, never an old one."""
    provenance = provenance_path(scores)
    remove(target.parent / provenance.name)
    copy_to(scores, target)
    copy_to(provenance, target.parent / provenance.name)
