"""Find the faces of a photo and cut out the aligned crops that a network knows.

Training, evaluation and verification share these steps: the photo is turned upright, its faces and
their landmarks are found, and the crop is cut where the canonical frame of `alignment` lies. A
model of alignment `lfw-frame` takes the centre square of the whole image instead, of any image.
"""

from dataclasses import dataclass
from typing import Any

from facepairs.errors import NoFace, TooSmallFace
from facepairs.faces.alignment import to_crop
from facepairs.faces.detector import Face, find_faces
from facepairs.faces.hints import Hint, photo_hints
from facepairs.images import jpeg
from facepairs.images.crop import Crop, CropSpec, crop_photo
from facepairs.images.decode_budget import decode_budget, decode_cost_px
from facepairs.images.photo import ImageSource, Photo, load_upright, open_photo
from facepairs.images.warp import Similarity, warp

SEARCH_PX = 1600  # longer side of the copy in which faces are searched
MIN_FACE_PX = 24  # from the brows to the chin; smaller faces give no verdict


@dataclass(frozen=True, eq=False)
class AlignedFace:
    """One face as the network sees it, and where it comes from.

    Attributes:
        crop: uint8[crop_px, crop_px, 3].
        size_px: Width and height of the upright photo.
        face: The face in pixels of the upright photo; None where the whole image was used.
        faces: Number of faces found, None where nobody looked for them.
        hints: What makes the photo hard to judge.
    """

    crop: Crop
    size_px: tuple[int, int]
    face: Face | None = None
    faces: int | None = None
    hints: tuple[Hint, ...] = ()

    def describe(self) -> str:
        """Return in words what the network sees."""
        if self.face is None:
            return "the whole image: this model takes photos framed like LFW's"
        side, roll_deg = round(self.face.side_px), round(self.face.roll_deg)
        turned = f", turned by {abs(roll_deg)} degrees" if roll_deg else ""
        others = f", the most prominent of {self.faces}" if (self.faces or 0) > 1 else ""
        return f"face of {side} x {side} pixels{turned}{others}"

    @property
    def box(self) -> list[int] | None:
        """The square around the face, from the brows to the chin: left, top and side in pixels."""
        if self.face is None:
            return None
        side = self.face.side_px
        left, top = self.face.centre - side / 2
        return [round(value) for value in (left, top, side)]

    def describe_box(self) -> str:
        """Return in words where the face is."""
        return "{0},{1} {2}x{2}".format(*self.box) if self.box else "the whole image"

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict: box [left, top, side], landmarks, score, roll_deg, faces, hints."""
        face = self.face
        return {
            "box": self.box,
            "landmarks": face and face.landmarks.round(1).tolist(),
            "score": face and round(face.score, 3),
            "roll_deg": face and round(face.roll_deg, 1),
            "faces": self.faces,
            "hints": [hint._asdict() for hint in self.hints],
        }


def align_faces(
    source: ImageSource,
    spec: CropSpec,
    name: str | None = None,
    every: bool = False,
    hints: bool = True,
) -> list[AlignedFace]:
    """Find and align the most prominent face of an image.

    Args:
        source: An image, see `load_crop`.
        spec: Which crop of the canonical frame the network sees.
        name: What messages call the image.
        every: Align every face found, the most prominent first.
        hints: Look for what makes the photo hard to judge.

    Returns:
        At least one face.

    Raises:
        BadImage: The image cannot be read.
        NoFace: No face is found.
        TooSmallFace: The face, or every face, is smaller than MIN_FACE_PX.
    """
    photo = open_photo(source, name)
    found = search_photo(photo, every)
    large = usable_faces(found, photo.name)
    return [_align(photo, spec, face, len(found), hints) for face in large[: None if every else 1]]


def search_photo(photo: Photo, every: bool = False) -> list[Face]:
    """Find the faces of a photo, in pixels of the upright photo; see `find_faces`."""
    # Formats other than JPEG are decoded at full size and held until their faces are found.
    is_jpeg = isinstance(photo.content, bytes) and photo.content.startswith(jpeg.SIGNATURE)
    pixels = photo.width_px * photo.height_px
    with decode_budget.acquire(0 if is_jpeg else decode_cost_px(photo.content, pixels, pixels)):
        image, scale = load_upright(photo, SEARCH_PX)
        return [face.scaled(1 / scale) for face in find_faces(image, every)]


def usable_faces(found: list[Face], name: str) -> list[Face]:
    """Return the faces that are large enough, the most prominent first.

    Raises:
        NoFace: There are no faces.
        TooSmallFace: The most prominent one is smaller than MIN_FACE_PX.
    """
    if not found:
        raise NoFace(f"{name}: no face found; use a photo in which the face is seen well")
    if found[0].side_px < MIN_FACE_PX:
        raise TooSmallFace(
            f"{name}: its face measures {found[0].side_px:.0f} pixels from the brows to the chin, "
            f"too few for a verdict; use a photo that shows it with {MIN_FACE_PX} or more"
        )
    return [face for face in found if face.side_px >= MIN_FACE_PX]


def unaligned_face(photo: Photo, spec: CropSpec, hints: bool = True) -> AlignedFace:
    """Return the centre square of a whole image, for models of alignment `lfw-frame`.

    Args:
        photo: What `open_photo` returned.
        spec: Which square.
        hints: Look for what makes the photo hard to judge.

    Raises:
        BadImage: The photo is damaged.
    """
    crop = crop_photo(photo, spec)
    size = (photo.width_px, photo.height_px)
    found = photo_hints(crop, spec.side_px(*size)) if hints else ()
    return AlignedFace(crop, size, hints=found)


def _align(photo: Photo, spec: CropSpec, face: Face, faces: int, hints: bool) -> AlignedFace:
    to_square = to_crop(face.to_frame, spec)
    crop = warp_photo(photo, to_square, spec.crop_px)
    found = photo_hints(crop, spec.crop_px / to_square.scale, face) if hints else ()
    return AlignedFace(crop, (photo.width_px, photo.height_px), face, faces, found)


def warp_photo(photo: Photo, to_square: Similarity, side_px: int) -> Crop:
    """Stand-in until images.crop has it."""
    shrink = max(1, int(1 / to_square.scale))
    image, scale = load_upright(photo, -(-max(photo.width_px, photo.height_px) // shrink))
    return warp(image, to_square.of_scaled_image(scale), side_px)
