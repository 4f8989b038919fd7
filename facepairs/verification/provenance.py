"""Where scores come from: NAME.json beside a scores file, with the SHA-256 of the scores.

Whoever measures the scores later then knows the model, its threshold, and which people of the pairs
the model was trained or calibrated on.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.manifest import Identities, read_regular_file
from facepairs.bundles.model import Model
from facepairs.bundles.rates import Errors, OperatingPoint
from facepairs.errors import BadBundle, BadData
from facepairs.photos.face_sample import FaceSample
from facepairs.support.atomic import atomic_file
from facepairs.support.places import check_output_file, file_sha256
from facepairs.support.validation import validate
from facepairs.version import __version__

MAX_PROVENANCE_BYTES = 64_000_000  # 3 million people


FaceNumbers = tuple[float, float, float, float]
"""Size in pixels, sharpness, and how far a face is turned (yaw) and rotated (degrees)."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """How the scores of a file were made; None stands for what is not known.

    Attributes:
        schema: The version of this format.
        facepairs: The version that wrote it.
        scores_sha256: SHA-256 (hex) of the scores file; empty until it is written.
        model: The model's name on the command line: a path, or `default`.
        embedder_sha256: Of its network and how it is used; None where several made the scores.
        manifest_sha256: Of the bundle's manifest, which has its thresholds; None for other models.
        alignment: As in a bundle's manifest.
        pairs: Which pairs: the file or folder that they come from, or a protocol in words.
        protocol: The protocol's name, such as `view2`; None without one.
        operating_point: The threshold that decides, without its errors.
        calibration: From a score to a probability at equal priors; its threshold is the balanced
            one.
        prior: For which prior a column `probability` holds; None without such a column.
        identities: Hashes of the people that the model was trained and calibrated on.
        failures: Why photos of the pairs could not be used, by their names, such as `no_face`.
        photos_sha256: SHA-256 of the contents of the photos, see `with_photos`; None where they
            were not read.
        faces: What is known of the faces, by the names of the photos; None where it was not asked.
    """

    schema: Literal[1] = 1
    facepairs: str = __version__
    scores_sha256: str = ""
    model: str
    embedder_sha256: str | None = None
    manifest_sha256: str | None = None
    alignment: str | None = None
    pairs: str
    protocol: str | None = None
    operating_point: OperatingPoint | None = None
    calibration: Calibration | None = None
    prior: float | None = None
    identities: Identities | None = None
    failures: dict[str, str] | None = None
    photos_sha256: str | None = None
    faces: dict[str, FaceNumbers] | None = None


def provenance_of(
    model: Model,
    pairs: str,
    point: OperatingPoint | None,
    *,
    protocol: str | None = None,
    prior: float | None = None,
) -> Provenance:
    """Describe scores that one model gives.

    Args:
        model: The model.
        pairs: The file or folder that the pairs come from, or a protocol in words.
        point: The threshold that decides; None where nothing of the model itself does.
        protocol: The protocol's name.
        prior: For which prior a column `probability` holds.

    Raises:
        BadBundle: A file of the model cannot be read.
    """
    curve = model.profile.calibration if point else None
    if point is not None:
        bare = {"errors": Errors(), "own_errors": None}
        point = None if point.threshold is None else msgspec.structs.replace(point, **bare)
    return Provenance(
        model=model.place,
        embedder_sha256=model.network.embedder_sha256,
        manifest_sha256=model.manifest_sha256,
        alignment=model.alignment,
        pairs=pairs,
        protocol=protocol,
        operating_point=point,
        calibration=curve and Calibration(curve.scale, curve.offset, curve.lookalikes),
        prior=prior,
        identities=model.origin.identities if model.origin.lists_training else None,
    )


def with_photos(origin: Provenance, samples: Mapping[str, FaceSample]) -> Provenance:
    """Return an origin that says which photos were read, and which of them could not be used.

    Its `photos_sha256` is the SHA-256 of what `sha256sum` prints for the photos, sorted by name.

    Args:
        origin: What made the scores.
        samples: The faces of all photos of the pairs, by the photos' names.
    """
    lines = (f"{samples[name].digest.hex()}  {name}\n" for name in sorted(samples))
    sums = hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()
    failures = {name: sample.error.problem for name, sample in samples.items() if sample.error}
    return msgspec.structs.replace(origin, photos_sha256=sums, failures=failures)


def provenance_path(scores: Path) -> Path:
    """Return the path of the provenance of a scores file."""
    return scores.with_name(f"{scores.name}.json")


def check_scores_file(out: Path) -> None:
    """Check that scores and their provenance may be written, as `check_output_file` does."""
    check_output_file(out)
    check_output_file(provenance_path(out), b'"scores_sha256"')


@contextmanager
def scores_file(target: Path, provenance: Provenance | None) -> Iterator[IO[Any]]:
    """Open a scores file to write, as `atomic_file` does, and write its provenance afterwards.

    What lay beside an older file is removed first: a kill in between leaves scores of unknown
    origin, never of a wrong one.

    Raises:
        BadData: A file cannot be written or removed.
    """
    check_scores_file(target)
    with atomic_file(target) as handle:
        yield handle
        handle.flush()
        beside = provenance_path(target)
        try:
            beside.unlink(missing_ok=True)
        except OSError as error:
            raise BadData(f"cannot replace {beside}: {error.strerror}; remove it") from None
    if provenance is not None:
        complete = msgspec.structs.replace(provenance, scores_sha256=file_sha256(target))
        text = msgspec.json.encode(complete, order="deterministic")
        with atomic_file(beside, "wb") as handle:
            handle.write(msgspec.json.format(text) + b"\n")


def read_provenance(scores: Path) -> Provenance | None:
    """Return the provenance of a scores file from NAME.json; None if that file is missing.

    Raises:
        BadData: It cannot be read, or was written for other scores than the file holds.
    """
    path = provenance_path(scores)
    if not path.exists():
        return None
    advice = f"write {scores.name} again, or remove {path.name} to measure it without its origin"
    try:
        values = msgspec.json.decode(read_regular_file(path, MAX_PROVENANCE_BYTES))
        sha256 = file_sha256(scores)
    except OSError as error:
        raise BadData(f"{scores}: {error.strerror}; choose a file that can be read") from None
    except (BadBundle, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    provenance = validate(values, Provenance, str(path), BadData, advice)
    if provenance.scores_sha256 != sha256:
        raise BadData(f"{path}: belongs to other scores than those in {scores.name}; {advice}")
    return provenance
