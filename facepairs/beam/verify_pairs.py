"""`score` with photos on any storage, or the work on Beam."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from facepairs.beam.paths import BeamPath, parse_place, remote_errors
from facepairs.beam.runner import choose_map
from facepairs.bundles.calibration import EQUAL_PRIORS
from facepairs.bundles.rates import OperatingPoint
from facepairs.images.photo import Photo, open_photo, read_checked
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.pairs.bulk import PhotoFolder
from facepairs.verification.pairs.verify_pairs import PairsReport, local_photos, pairs_run
from facepairs.verification.verifier import Verifier


@dataclass(frozen=True)
class RemotePhotos(PhotoFolder):
    """The photos below a remote folder.

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


def verify_pairs_at(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    root: str | None = None,
    resume: bool = False,
    progress: ProgressFactory = ignore_phases,
    runner: str | None = None,
    beam_options: Sequence[str] = (),
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score a list of pairs as `verification.pairs.verify_pairs` does.

    Args:
        verifier: Scores the pairs; it should have one thread.
        pairs, out, point, resume, progress, prior: As for `verify_pairs`.
        root: The folder of the photos: a local path, or one of `scheme://…`.
        runner: Name of the Beam runner that does the work, or None for threads.
        beam_options: Beam's own options, as on its command line.

    Raises:
        BadConfig: Beam is needed and missing, or does not know the runner or an option.
        FacepairsError: What `verify_pairs` raises.
    """
    ordered_map = choose_map(runner, beam_options)
    folder = pairs.parent if root is None else parse_place(root)
    photos = local_photos(pairs, folder) if isinstance(folder, Path) else RemotePhotos(folder)
    with (
        remote_errors(folder),
        pairs_run(verifier, pairs, out, point, photos, resume, prior) as run,
    ):
        return run.finish(ordered_map(run.scorer.work, run.items()), progress)
