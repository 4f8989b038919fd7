"""`data frame`: a folder Person/photo.jpg of photos as they come → one of frames to train on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData, BadImage
from facepairs.faces.framing import LFW_PX, Portrait, portraits
from facepairs.images.jpeg import write_jpeg
from facepairs.images.photo import Framing
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import in_order

WHOLE = Framing(LFW_PX, LFW_PX)  # the crop is the frame
JPEG_QUALITY = 95
SCHEMA = 1
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FramedFolder:
    """What became of a folder's photos; `left_out` are (path below the folder, error)."""

    out: Path
    framed: int
    as_they_came: int
    several_faces: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Give a plain dict for `json.dumps`."""
        return {
            "out": str(self.out),
            "framed": self.framed,
            "as_they_came": self.as_they_came,
            "several_faces": list(self.several_faces),
            "left_out": [{"path": path, "error": error} for path, error in self.left_out],
            "schema": SCHEMA,
        }


def frame_folder(
    photos: Path, out: Path, progress: Progress | None = None, workers: int | None = None
) -> FramedFolder:
    """Frame the largest face of every photo into OUT/Person/photo.jpg, 250 x 250 pixels.

    Photos without a face, or that cannot be read, are left out and listed. `progress(done, total)`
    counts photos, `workers` is a number of threads (default: one a core). `out` appears whole.

    Raises BadData for a folder that cannot be used, an `out` that is not new or empty, or that lies
    within the photos, two photos that would get one name, and where not one face is found.
    """
    index = FaceIndex.scan(photos)
    _check_out(out, index.root)
    names = [_jpeg_name(index.name(image)) for image in range(len(index))]
    _check_names(names)
    framed, came = 0, 0
    several: list[str] = []
    left_out: list[tuple[str, str]] = []

    with atomic_folder(out) as temporary:

        def work(image: int) -> Portrait | str:
            try:
                portrait = portraits(index.path(image), WHOLE)[0]
            except BadImage as error:
                return str(error)
            target = temporary / names[image]
            target.parent.mkdir(exist_ok=True)
            write_jpeg(target, portrait.crop, JPEG_QUALITY)
            return portrait

        for image, found in enumerate(in_order(work, range(len(index)), workers)):
            if isinstance(found, str):
                left_out.append((index.name(image), found))
            else:
                framed += found.framed
                came += not found.framed
                several += [index.name(image)] if (found.faces or 0) > 1 else []
            if progress:
                progress(image + 1, len(index))
        if not framed + came:
            raise BadData(f"{photos}: no face found in any of {len(index):,} photos")
    return FramedFolder(out, framed, came, tuple(several), tuple(left_out))


def _check_out(out: Path, root: Path) -> None:
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise BadData(f"{out}: exists and is not an empty folder; choose another place")
    if out.resolve().is_relative_to(root.resolve()):
        raise BadData(f"{out}: lies within the photos {root}; choose another place")


def _jpeg_name(name: str) -> str:
    return str(Path(name).with_suffix(".jpg"))


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadData(f"two photos would both become {name}; rename one")
        seen.add(name)
