"""Finds the photos of scored pairs below a folder, and makes the small pictures of the page."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from facepairs.errors import BadData, BadImage
from facepairs.evaluation.scores import ScoreTable
from facepairs.images.crop import CropSpec, load_crop

WHOLE = CropSpec(frame_px=144, crop_px=144)  # the whole centre square, at 144 pixels
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


def data_uri(path: Path) -> str | None:
    """Return a photo as a `data:` URI of a small JPEG, or None where it cannot be read.

    Encoded again from its pixels alone, so metadata such as the place of the photo is left out.
    """
    try:
        pixels = load_crop(path, WHOLE)
    except BadImage:
        return None
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode("ascii")
