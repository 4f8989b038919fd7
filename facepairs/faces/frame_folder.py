"""`data frame`: write aligned copies of a folder of photos, Person/photo.jpg."""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData, BadImage
from facepairs.faces.align import AlignedFace, align_and_keep
from facepairs.faces.alignment import FRAME_PX
from facepairs.images.crop import CropSpec
from facepairs.images.jpeg import write_jpeg
from facepairs.images.photo import open_photo
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import thread_map
from facepairs.support.places import check_output_folder
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.support.words import command_line, counted

WHOLE_FRAME = CropSpec(FRAME_PX, FRAME_PX)
JPEG_QUALITY = 95
SCHEMA = 2


class LeftOut(NamedTuple):
    """Something in the folder that was not framed: its path below the folder, and why."""

    path: str
    error: str


@dataclass(frozen=True)
class FramedFolder:
    """The result of framing a folder.

    Attributes:
        out: The folder of frames.
        framed: Photos whose face was aligned.
        several_faces: Photos with several faces, of which the most prominent was used.
        left_out: Everything else below the folder: photos without a face or with too small a one,
            files that cannot be read or are no photos.
    """

    out: Path
    framed: int
    several_faces: tuple[str, ...]
    left_out: tuple[LeftOut, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict for `json.dumps`."""
        left_out = [photo._asdict() for photo in self.left_out]
        return {**asdict(self), "out": str(self.out), "left_out": left_out, "schema": SCHEMA}


def frame_folder(
    photos: Path,
    out: Path,
    progress: ProgressCallback = ignore_progress,
) -> FramedFolder:
    """Align the most prominent face of every photo into OUT/Person/photo.jpg, 250 x 250 pixels.

    Photos without a face, and whatever else cannot be used, are left out and listed.

    Args:
        photos: A folder Person/photo.jpg.
        out: A new or empty folder outside of `photos`; it appears complete or not at all.
        progress: Called with photos done and in all.

    Raises:
        BadData: A folder cannot be used, two photos would get the same name, or no face is found
            in any photo.
    """
    index = FaceIndex.scan(photos)
    check_output_folder(out, inputs=index.root)
    targets = [str(Path(name).with_suffix(".jpg")) for name in index.names()]
    _check_distinct(targets)
    several: list[str] = []
    left_out = [
        LeftOut(path, f"not a photo of a person ({reason.replace('_', ' ')})")
        for path, reason in index.skipped
    ]
    with atomic_folder(out) as temporary:

        def frame(image: int) -> AlignedFace | BadImage:
            try:
                face = align_and_keep(open_photo(index.path(image)), WHOLE_FRAME)
            except BadImage as error:
                return error
            target = temporary / targets[image]
            target.parent.mkdir(exist_ok=True)
            write_jpeg(target, face.crop, JPEG_QUALITY)
            return face

        framed = 0
        for image, result in enumerate(thread_map(frame, range(len(index)))):
            if isinstance(result, BadImage):
                left_out.append(LeftOut(index.name(image), str(result)))
            else:
                framed += 1
                several += [index.name(image)] if (result.faces or 0) > 1 else []
            progress(image + 1, len(index))
        if not framed:
            raise BadData(
                f"{photos}: no usable face in {counted(len(index), 'photo')}; see why with: "
                + command_line("data", "check", photos)
            )
    return FramedFolder(out, framed, tuple(several), tuple(sorted(left_out)))


def _check_distinct(names: list[str]) -> None:
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise BadData(f"two photos would both become {name}; rename one")
