"""`score` with photos on any storage, or the work on Beam."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from facepairs.beam.paths import parse_place, remote_errors
from facepairs.beam.runner import make_ordered_map
from facepairs.bundles.error_profile import EQUAL_PRIORS
from facepairs.bundles.rates import OperatingPoint
from facepairs.bundles.scorer import BATCH_CROPS
from facepairs.photos.photo_cache import photo_cache
from facepairs.support.parallel import batches
from facepairs.verification.score_list import (
    PairsReport,
    folder_of_photos,
    read_list,
    read_listed,
    write_scores,
)
from facepairs.verification.verifier import Verifier


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

    With a runner no photo is remembered: its workers may be on other machines.

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
    listed = read_list(pairs)
    if isinstance(folder, Path):
        read_file: Callable[[str], bytes] = partial(read_listed, folder_of_photos(pairs, folder))
        photos = [(str(Path(folder, name)), name) for name in listed.photos]
    else:
        read_file = folder.read_file
        photos = [(f"{folder}/{name}", name) for name in listed.photos]
    cache = photo_cache() if runner is None else None
    reader = replace(verifier.reader(), cache=cache, open=read_file)
    with remote_errors(folder):
        read = ordered_map(reader.read, batches(photos, BATCH_CROPS))
        return write_scores(verifier, listed, read, out, point, prior)
