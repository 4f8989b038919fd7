"""Finds the photos of scored pairs below a folder, and makes the small pictures of the page."""

from dataclasses import dataclass
from pathlib import Path

from facepairs.errors import BadData, BadImage
from facepairs.evaluation.scores import ScoreTable
from facepairs.faces.align import align_and_keep
from facepairs.images.crop import Crop, CropSpec, crop_photo
from facepairs.images.photo import open_photo
from facepairs.support.html import data_url

WHOLE = CropSpec(frame_px=144, crop_px=144)  # a face's frame, or the centre square of a photo
QUALITY = 80


@dataclass(frozen=True)
class PhotoFinder:
    """Photos by name; `missing` are names without a file below the folder."""

    root: Path
    found: dict[str, Path]
    missing: tuple[str, ...]

    @classmethod
    def below(cls, data: Path | None, scores: ScoreTable) -> "PhotoFinder | None":
        """Find the photos of scored pairs; None without a folder, or without names.

        A name that leads out of the folder counts as missing: a scores file from elsewhere must not
        bring other files of this machine into a report.

        Raises:
            BadData: The folder, or every photo, is missing.
        """
        if data is None or not scores.has_names:
            return None
        if not data.is_dir():
            raise BadData(f"{data}: no such folder; give the one that the scores' names are below")
        root = data.resolve()
        paths = {name: _find(root, name) for name in sorted({*scores.left, *scores.right})}
        found = {name: path for name, path in paths.items() if path is not None}
        missing = tuple(name for name in paths if name not in found)
        if not found:
            raise BadData(
                f"{data}: holds none of the photos that the scores name, such as {missing[0]}; "
                "give the folder that these names are below"
            )
        return cls(data, found, missing)

    def paths(self) -> dict[str, Path]:
        """Return the paths of all photos by name.

        Raises:
            BadData: A photo is missing.
        """
        if self.missing:
            raise BadData(
                f"{len(self.missing):,} of {len(self.found) + len(self.missing):,} photos are not "
                f"below {self.root}, such as {self.missing[0]}"
            )
        return self.found


def _find(root: Path, name: str) -> Path | None:
    """Return the file of a name, or None where there is none below the folder."""
    try:
        path = root / name.replace("\\", "/")
        inside = root in path.parents and ".." not in path.parts
        return path if inside and path.resolve().is_file() else None
    except (OSError, ValueError):
        return None


def open_crop(path: Path, spec: CropSpec, aligned: bool) -> tuple[Crop, float]:
    """Read what a network sees of a photo.

    Args:
        path: The photo.
        spec: What the network sees.
        aligned: Cut it out of the frame of the most prominent face instead of the whole photo.

    Returns:
        uint8[crop_px, crop_px, 3], and the side of this square in the photo in pixels.

    Raises:
        BadImage: The photo cannot be read, or no face is found.
    """
    photo = open_photo(path)
    if not aligned:
        return crop_photo(photo, spec), spec.side_px(photo.width_px, photo.height_px)
    found = align_and_keep(photo, spec)
    assert found.to_crop is not None
    return found.crop, spec.crop_px / found.to_crop.scale


def photo_url(path: Path, aligned: bool) -> str | None:
    """Return a photo, or its face, as a `data:` URL of a small JPEG; None if it cannot be read.

    Encoded again from its pixels alone, so metadata such as the place of the photo is left out.
    """
    try:
        pixels, _ = open_crop(path, WHOLE, aligned)
    except BadImage:
        return None
    return data_url(pixels, "JPEG", quality=QUALITY, optimize=True)
