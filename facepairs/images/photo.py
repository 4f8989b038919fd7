"""From any image to the crop that a network sees, with Pillow; the twin of `pipeline.decode`.

Array contract: uint8[crop_px, crop_px, 3], RGB, the centre square of the upright image. Only the
pixels count: alpha is dropped (the colour below it is kept, as TensorFlow's decoders do) and colour
profiles are ignored. Unlike training, which reads photos as stored, EXIF orientation is applied.
"""

import io
import logging
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from facepairs.errors import BadImage
from facepairs.images.bombs import endless, room, weight
from facepairs.images.orientation import quiet_pillow, turn_of, turned

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF")  # Pillow's names; nothing else is tried
MAX_PIXELS = 50_000_000  # as in training: some 700 MB at worst while it is decoded
MAX_WEBP_PIXELS = 25_000_000  # Pillow's decoder holds four copies
MAX_TIFF_PIECE_BYTES = 200_000_000  # a strip or tile, which is held beside the pixels
MAX_BYTES = 256 * 2**20
MOST_PX = 4096  # of a frame; a manifest that asks for more would have us allocate it
STRIP_PIXELS = 2**18

logging.getLogger("PIL").addHandler(logging.NullHandler())  # else errors go to stderr twice

Crop = npt.NDArray[np.uint8]
Source = str | os.PathLike[str] | bytes | IO[bytes] | Image.Image | npt.NDArray[Any]


@dataclass(frozen=True)
class Framing:
    """The centre square that stands for the face: `crop_px` of a frame of `frame_px`.

    An image of any size counts as one frame: the square's side is round(short side · crop_px /
    frame_px), and it is resized to crop_px x crop_px only where it differs. Raises ValueError
    unless 1 <= crop_px <= frame_px <= 4096.
    """

    frame_px: int
    crop_px: int

    def __post_init__(self) -> None:
        """Check the sizes."""
        whole = all(type(value) is int for value in (self.frame_px, self.crop_px))
        if not whole or not 1 <= self.crop_px <= self.frame_px <= MOST_PX:
            raise ValueError(
                f"framing needs whole numbers 1 <= crop_px <= frame_px <= {MOST_PX}, not crop_px "
                f"{self.crop_px!r} of frame_px {self.frame_px!r}"
            )

    def side_px(self, width: int, height: int) -> int:
        """Give the side of the square cut from an image of that size, at least 1 pixel."""
        # The same float expression as in training, so that halves round alike.
        return max(1, round(min(width, height) * (self.crop_px / self.frame_px)))

    def to_json(self) -> dict[str, int]:
        """Give the manifest's form."""
        return {"frame_px": self.frame_px, "crop_px": self.crop_px}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Framing":
        """Read the manifest's form; raises KeyError or ValueError."""
        return cls(value["frame_px"], value["crop_px"])


class Photo(NamedTuple):
    """An image that was read but not decoded: its content, name, and size in pixels as stored.

    `opened` is an encoded one's header as Pillow read it, good for decoding it once.
    """

    content: bytes | Image.Image | npt.NDArray[Any]
    name: str
    width_px: int
    height_px: int
    opened: Image.Image | None = None


def open_photo(source: Source, name: str | None = None) -> Photo:
    """Read any source that `load_crop` takes, so far that its size is known; raises BadImage."""
    if isinstance(source, str | os.PathLike):
        name = name or os.fspath(source)
    name = name or "image"
    if isinstance(source, np.ndarray):
        height, width = _array_size(source, name)
        return Photo(source, name, width, height)
    if isinstance(source, Image.Image):
        _check_size(source.size, name)
        return Photo(source, name, *source.size)
    data = _read(source, name)
    opened = _open(data, name)
    return Photo(data, name, *opened.size, opened)


def load_upright(photo: Photo, long_px: int | None = None) -> tuple[Crop, float]:
    """Decode a whole photo, turned as its EXIF says: uint8[H, W, 3], and its scale, at most 1.

    With `long_px` a JPEG may come at a half, a quarter or an eighth of its size (libjpeg's DCT
    scaling), the longer side still at least that. Raises BadImage.
    """
    content, name = photo.content, photo.name
    if isinstance(content, np.ndarray):
        return _colour(_eight_bits(content, name)), 1.0
    image = _open(content, name) if isinstance(content, bytes) else content
    try:
        if long_px is not None and isinstance(content, bytes):
            keep = min(1.0, long_px / max(image.size))
            width, height = image.size
            image.draft(image.mode, (math.ceil(width * keep), math.ceil(height * keep)))
        with room.take(weight(content, math.prod(image.size), photo.width_px * photo.height_px)):
            image.load()
            turn = turn_of(image)
            scale = min(1.0, max(image.size) / max(photo.width_px, photo.height_px))
            pixels = _pixels(image, name)
            del image  # no more than two copies are held
            return (turned(pixels, turn.step) if turn else pixels), scale
    except BadImage:
        raise
    except Exception as error:  # noqa: BLE001 - see `_open`
        raise _damaged(name, error) from None


def load_crop(source: Source, framing: Framing, name: str | None = None) -> Crop:
    """Read an image and cut its centre square: uint8[crop_px, crop_px, 3].

    `source` is a path, an encoded image as bytes or an open binary file (JPEG, PNG, BMP, WebP,
    TIFF, the first frame of a GIF), a Pillow image, or an array [H, W] or [H, W, 1, 3 or 4] of
    uint8, uint16 (its high byte is used) or floats in [0, 1]. `name` stands for it in errors.

    A photo whose square is over four times too large may be decoded at half, a quarter or an eighth
    of its size (libjpeg's DCT scaling), which stays within a few grey levels of the whole decode.
    Raises BadImage for what cannot be read, and for anything above 50 megapixels (a WebP: 25) or
    256 MB.
    """
    return crop_photo(open_photo(source, name), framing)


def crop_photo(photo: Photo, framing: Framing) -> Crop:
    """Do what `load_crop` does to a photo that was opened; once, see `Photo.opened`."""
    content, name = photo.content, photo.name
    if isinstance(content, np.ndarray):
        return _crop_array(content, framing, name)
    if isinstance(content, Image.Image):
        return _crop_image(content, framing, name, (1, *content.size), math.prod(content.size))
    image = photo.opened or _open(content, name)
    drafted = _shrink(image, framing, name)
    held = weight(content, math.prod(image.size), math.prod(drafted[1:]))
    return _crop_image(image, framing, name, drafted, held)


def _read(source: Any, name: str) -> bytes:
    """Read all of an encoded image; raises BadImage."""
    try:
        data = _bytes_of(source, name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadImage(f"{name}: {reason}; give a readable image file") from None
    if not data:
        raise BadImage(f"{name}: empty (0 bytes); replace the file")
    if len(data) > MAX_BYTES:
        raise _too_many_bytes(name)
    return data


def _bytes_of(source: Any, name: str) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        status = Path(source).stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe or a device could block, or worse
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise BadImage(f"{name}: {what}; give an image file")
        if status.st_size > MAX_BYTES:
            raise _too_many_bytes(name)
        return Path(source).read_bytes()
    if not hasattr(source, "read"):
        raise BadImage(
            f"{name}: {type(source).__name__} is no image; give a path, bytes, a binary file, a "
            f"Pillow image or a NumPy array"
        )
    data = source.read(MAX_BYTES + 1)
    if not isinstance(data, bytes):
        raise BadImage(f"{name}: opened as text; open it in binary mode ('rb')")
    return data


def _too_many_bytes(name: str) -> BadImage:
    return BadImage(f"{name}: over {MAX_BYTES >> 20} MB; give a smaller image")


def _open(data: bytes, name: str) -> Image.Image:
    why = endless(data)
    if why:
        raise BadImage(f"{name}: would take too long to read ({why}); replace the file")
    Image.preinit()  # else formats that are not among the most common load every plugin there is
    try:
        with quiet_pillow():
            image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError:
        raise _too_many_pixels(name) from None
    except UnidentifiedImageError:
        raise BadImage(
            f"{name}: not a JPEG, PNG, BMP, GIF, WebP or TIFF image; convert or replace it"
        ) from None
    except Exception as error:  # noqa: BLE001 - hostile bytes make Pillow raise nearly anything
        raise _damaged(name, error) from None
    _check_size(image.size, name, MAX_WEBP_PIXELS if image.format == "WEBP" else MAX_PIXELS)
    if image.format == "TIFF":
        _check_pieces(image, name)
    return image


def _check_pieces(image: Any, name: str) -> None:
    """Refuse a TIFF, Pillow's, whose strips or tiles take far more than its pixels."""
    tags = image.tag_v2
    try:
        columns, rows = int(tags.get(322, image.width)), int(tags.get(323, image.height))
        if 322 not in tags:
            rows = min(int(tags.get(278, rows)), rows)
        bits = [int(value) for value in tags.get(258, (8,))]
        size = columns * rows * max(sum(bits), bits[0] * int(tags.get(277, 1))) // 8
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise _damaged(name, error) from None
    if size > MAX_TIFF_PIECE_BYTES:
        raise BadImage(f"{name}: a TIFF in pieces of {size / 1e6:,.0f} MB; give a smaller image")


def _check_size(size: tuple[int, int], name: str, limit: int = MAX_PIXELS) -> None:
    if size[0] * size[1] > limit:
        raise _too_many_pixels(name, f" ({size[0]} x {size[1]})", limit)
    if not size[0] * size[1]:
        raise BadImage(f"{name}: no pixels ({size[0]} x {size[1]}); give another image")


def _too_many_pixels(name: str, size: str = "", limit: int = MAX_PIXELS) -> BadImage:
    return BadImage(f"{name}: over {limit // 1_000_000} megapixels{size}; give a smaller image")


def _damaged(name: str, error: Exception) -> BadImage:
    reason = " ".join(str(error).split()) or type(error).__name__
    return BadImage(f"{name}: damaged or truncated ({reason}); replace the file")


def _shrink(image: Image.Image, framing: Framing, name: str) -> tuple[int, int, int]:
    """Let libjpeg decode a huge photo at a fraction of its size; give (divisor, width, height).

    At least twice the pixels that are needed stay, so that the bilinear reduction still averages.
    """
    width, height = image.size
    side = framing.side_px(width, height)
    if side > 4 * framing.crop_px:
        keep = 2 * framing.crop_px / side
        try:
            image.draft(image.mode, (math.ceil(width * keep), math.ceil(height * keep)))
        except Exception as error:  # noqa: BLE001 - see `_open`
            raise _damaged(name, error) from None
    return max(1, round(width / image.width)), width, height


def _crop_image(
    image: Image.Image, framing: Framing, name: str, drafted: tuple[int, int, int], held: int
) -> Crop:
    divisor, width, height = drafted
    try:
        with room.take(held):
            image.load()
            if divisor == 1:
                width, height = image.size  # a TIFF comes upright out of `load`
            turn = turn_of(image)
            side = framing.side_px(width, height)
            left = _start(width, side, turn is not None and turn.reverses_x)
            top = _start(height, side, turn is not None and turn.reverses_y)
            box = (left / divisor, top / divisor, (left + side) / divisor, (top + side) / divisor)
            crop = _resized_box(image, box, framing.crop_px, name)
            return np.array(crop.transpose(turn.step) if turn else crop)
    except BadImage:
        raise
    except Exception as error:  # noqa: BLE001 - see `_open`
        raise _damaged(name, error) from None


def _pixels(image: Image.Image, name: str) -> Crop:
    """Give a loaded image as uint8[H, W, 3], strip by strip: at once it would be held thrice."""
    width, height = image.size
    pixels = np.empty((height, width, 3), np.uint8)
    rows = max(1, STRIP_PIXELS // width)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        pixels[top : top + rows] = np.asarray(_rgb(strip, name))
    return pixels


def _start(length: int, side: int, reverses: bool) -> int:
    """Give the square's offset on a stored axis, so that upright it is (length - side) // 2."""
    start = (length - side) // 2
    return length - side - start if reverses else start


def _resized_box(
    image: Image.Image, box: tuple[float, float, float, float], crop_px: int, name: str
) -> Image.Image:
    """Cut a box and bring it to crop_px; pixels beside the box never mix in, as in training."""
    left, top = math.floor(box[0]), math.floor(box[1])
    right, bottom = math.ceil(box[2]), math.ceil(box[3])
    part = _rgb(image.crop((left, top, right, bottom)), name)
    if box[2] - box[0] == crop_px:
        return part
    inner = (box[0] - left, box[1] - top, box[2] - left, box[3] - top)
    return part.resize((crop_px, crop_px), Image.Resampling.BILINEAR, box=inner)


def _rgb(image: Image.Image, name: str) -> Image.Image:
    """Convert any mode to 8-bit RGB without alpha."""
    if image.mode.startswith("I;16"):
        high_bytes = (np.asarray(image) >> 8).astype(np.uint8)  # Pillow's own conversion clips
        image = Image.fromarray(high_bytes)
    if image.mode in ("I", "F"):
        raise BadImage(f"{name}: 32 bits a pixel; convert it to 8 or 16 bits a channel")
    if image.mode != "RGB" and "transparency" in image.info:
        image = image.convert("RGBA")  # straight to RGB, Pillow would warn about what it drops
    return image if image.mode == "RGB" else image.convert("RGB")


def _crop_array(array: npt.NDArray[Any], framing: Framing, name: str) -> Crop:
    height, width = _array_size(array, name)
    side = framing.side_px(width, height)
    top, left = (height - side) // 2, (width - side) // 2
    square = _colour(_eight_bits(array[top : top + side, left : left + side], name))
    box = (0, 0, side, side)
    return np.array(_resized_box(Image.fromarray(square), box, framing.crop_px, name))


def _array_size(array: npt.NDArray[Any], name: str) -> tuple[int, int]:
    """Give height and width of an array that can be an image."""
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))):
        raise BadImage(
            f"{name}: array of shape {array.shape}; give [height, width] or [height, width, 1, 3 "
            f"or 4]"
        )
    height, width = array.shape[:2]
    _check_size((width, height), name)
    return height, width


def _colour(array: Crop) -> Crop:
    """Bring an array of 1, 3 or 4 channels, or none, to uint8[H, W, 3]."""
    colour = array[..., :3] if array.ndim == 3 else array[..., None]
    return np.ascontiguousarray(np.broadcast_to(colour, (*array.shape[:2], 3)))


def _eight_bits(array: npt.NDArray[Any], name: str) -> Crop:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    if not np.issubdtype(array.dtype, np.floating):
        raise BadImage(f"{name}: array of {array.dtype}; give uint8, uint16 or floats in [0, 1]")
    if not (array.min() >= 0 and array.max() <= 1):  # false for NaN too
        raise BadImage(f"{name}: floats outside [0, 1]; divide by 255, or give uint8")
    return np.round(array * 255).astype(np.uint8)
