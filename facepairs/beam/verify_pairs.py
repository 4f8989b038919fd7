"""`verify --pairs` with the list, the photos or the scores on any storage, or the work on Beam."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from facepairs.beam.paths import BeamPath, copy_from, copy_to, parse_place, remove
from facepairs.beam.remote_index import remote_errors
from facepairs.beam.runner import choose_map
from facepairs.bundles.calibration import EQUAL_PRIORS
from facepairs.bundles.operating_point import OperatingPoint
from facepairs.errors import BadConfig
from facepairs.images.photo import Photo, open_photo, read_checked
from facepairs.support.atomic import scratch_folder
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.pairs.verify_pairs import PairsReport, local_photos, pairs_run
from facepairs.verification.provenance import provenance_path
from facepairs.verification.verifier import Verifier


@dataclass(frozen=True)
class RemotePhotos:
    """The photos below a remote folder; a `PhotoFolder`.

    Attributes:
        root: The folder that names count from.
    """

    root: BeamPath

    def __str__(self) -> str:
        return str(self.root)

    def open(self, name: str) -> Photo:
        """Open a photo; raises BadImage."""
        path = f"{self.root}/{name}"
        return open_photo(read_checked(name, self.root.read_file, path), path)

    def stamp(self, name: str) -> str:
        """Return "": not every storage tells when a file was written."""
        return ""

    def same_content(self, one: str, other: str) -> bool:
        """Return False: to know, both would have to be read again."""
        return False


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
    photos = local_photos(pairs, folder) if isinstance(folder, Path) else RemotePhotos(folder)
    if resume and isinstance(target, BeamPath):
        raise BadConfig(f"{out}: --resume needs an --out on this machine, where work is kept")
    with remote_errors(source, target, folder), scratch_folder("facepairs-pairs") as scratch:
        listed = source if isinstance(source, Path) else scratch / "pairs.csv"
        scores = target if isinstance(target, Path) else scratch / "out" / target.name
        if isinstance(source, BeamPath):
            copy_from(source, listed)
        with pairs_run(verifier, listed, scores, point, photos, resume, prior) as run:
            run.origin = msgspec.structs.replace(run.origin, pairs=pairs)
            report = run.finish(ordered_map(run.scorer.work, run.items()), progress)
        if isinstance(target, BeamPath):
            _upload(scores, target)
    return report


def _upload(scores: Path, target: BeamPath) -> None:
    """Copy scores, then their provenance; a kill in between leaves none, never an old one."""
    provenance = provenance_path(scores)
    remove(target.parent / provenance.name)
    copy_to(scores, target)
    copy_to(provenance, target.parent / provenance.name)
