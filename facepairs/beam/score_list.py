"""`score` with photos on any storage, or the work on Beam."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from facepairs.beam.paths import BeamPath, parse_place, remote_errors
from facepairs.beam.runner import make_ordered_map
from facepairs.bundles.measured import EQUAL_PRIORS
from facepairs.bundles.rates import OperatingPoint
from facepairs.photos.photo_cache import photo_cache
from facepairs.photos.reader import PhotoFolder
from facepairs.verification.score_list import PairsReport, local_photos, score_list
from facepairs.verification.verifier import Verifier


@dataclass(frozen=True)
class RemotePhotos(PhotoFolder):
    """The photos below a remote folder.

    Attributes:
        root: The folder that names count from.
    """

    root: BeamPath

    def read(self, name: str) -> bytes:
        """Return the content of a photo; may raise OSError."""
        return self.root.read_file(name)

    def title(self, name: str) -> str:
        """Return the name of a photo in messages."""
        return f"{self.root}/{name}"


def score_list_at(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    root: str | None = None,
    runner: str | None = None,
    beam_options: Sequence[str] = (),
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score a list of pairs as `verification.score_list` does.

    With a runner nothing is kept: where its workers are is not known here.

    Args:
        verifier: Scores the pairs; it should have one thread.
        pairs, out, point, prior: As for `score_list`.
        root: The folder of the photos: a local path, or one of `scheme://…`.
        runner: Name of the Beam runner that does the work, or None for threads.
        beam_options: Beam's own options, as on its command line.

    Raises:
        BadConfig: Beam is needed and missing, or does not know the runner or an option.
        FacepairsError: As `score_list`.
    """
    ordered_map = make_ordered_map(runner, beam_options)
    folder = pairs.parent if root is None else parse_place(root)
    photos = local_photos(pairs, folder) if isinstance(folder, Path) else RemotePhotos(folder)
    cache = photo_cache() if runner is None else None
    with remote_errors(folder):
        return score_list(
            verifier, pairs, out, point, photos, prior, ordered_map=ordered_map, cache=cache
        )
