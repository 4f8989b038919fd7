"""Open untrusted photos: limits on size and memory, damage, and arrays of any kind.

Every photo comes through `open_photo`, in training as in verification.
"""

import errno
import io
import logging
import math
import os
import stat
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFile, PngImagePlugin, UnidentifiedImageError

from facepairs.choices import MAX_MEGAPIXELS
from facepairs.errors import LONGEST, BadConfig, FacepairsError, ImageProblem
from facepairs.photos.formats import find_hazard, pillow_format, without_metadata

MAX_PIXELS = 52_000_000  # some 730 MB at worst while an image is decoded; phones take 50.3
COSTLY = ("WEBP", "AVIF", "HEIF")  # whose decoders hold four copies
SLOW_CODECS, MAX_SLOW_PIXELS = ("bmp_rle", "ppm"), 1_000_000  # Pillow's decoders in Python
# Limit of a file's size: 16 bits a channel with alpha, plus profiles, previews or a short film.
# Training holds the files of a whole batch in memory.
BYTES_PER_PIXEL, EXTRA_BYTES = 8, 8_000_000
MAX_TIFF_PIECE_BYTES = 200_000_000  # a strip or tile, which is held beside the pixels
MAX_BYTES, TOO_LARGE = 256 * 2**20, "over 256 MB"
TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)
TILE_WIDTH, TILE_HEIGHT, ROWS_PER_STRIP, BITS, SAMPLES = 322, 323, 278, 258, 277  # TIFF 6.0 tags
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY  # a long text is not damage
logging.getLogger("PIL").addHandler(logging.NullHandler())  # Pillow would repeat errors on stderr

_loading, _warnings_lock = threading.Lock(), threading.Lock()
T = TypeVar("T")
Pixels = npt.NDArray[np.uint8]


def max_pixels(default: int = MAX_PIXELS) -> int:
    """Return how many pixels an image may have: what the user allows, else `default`.

    Raises:
        BadConfig: The limit is not a whole number of megapixels.
    """
    millions = os.environ.get(MAX_MEGAPIXELS, "")
    if not millions:
        return default
    if not millions.isdecimal() or not int(millions):
        number = f"a limit of {millions!r} megapixels; give a whole number from 1 on"
        raise BadConfig(f"{number} ({MAX_MEGAPIXELS})", "max_megapixels")
    return 1_000_000 * int(millions)


def check_size(size: tuple[int, int], name: str, limit: int | None = None) -> None:
    """Check the size of an image.

    Args:
        size: Width and height in pixels.
        name: What messages call the image.
        limit: How many pixels are allowed; by default `max_pixels`.

    Raises:
        ImageProblem: It has no pixels, or more than `limit`.
    """
    pixels, limit = size[0] * size[1], limit or max_pixels()
    if pixels > limit:
        raise too_many_pixels(name, f" ({size[0]} x {size[1]})", limit)
    if not pixels:
        reason = f"no pixels ({size[0]} x {size[1]}); choose another image"
        raise ImageProblem(name, "unreadable", reason)


def too_many_pixels(name: str, size: str = "", limit: int | None = None) -> ImageProblem:
    """Return the error for an image of more than `limit` pixels.

    Args:
        name: What the message calls the image.
        size: The size in words, or "".
        limit: How many pixels are allowed; by default `max_pixels`.
    """
    most = (limit or max_pixels()) // 1_000_000
    allow = f"allow more megapixels (--max-megapixels or {MAX_MEGAPIXELS})"
    reason = f"over {most} megapixels{size}; use a smaller image, or {allow}"
    return ImageProblem(name, "too_large", reason)


def array_pixels(array: npt.NDArray[Any], name: str) -> Pixels:
    """Convert an array to uint8[H, W, 3].

    Args:
        array: [H, W] or [H, W, 1, 3 or 4] of uint8, uint16 (the high byte is used) or floats in
            [0, 1].
        name: What messages call it.

    Raises:
        ImageProblem: The array has another shape, dtype or range, or too many pixels or none.
    """
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))):
        use = "use [height, width] or [height, width, 1, 3 or 4]"
        raise ImageProblem(name, "unsupported", f"array of shape {array.shape}; {use}")
    check_size((array.shape[1], array.shape[0]), name)
    array = _to_eight_bits(array, name)
    colour = array[..., :3] if array.ndim == 3 else array[..., None]
    return np.ascontiguousarray(np.broadcast_to(colour, (*array.shape[:2], 3)))


def _to_eight_bits(array: npt.NDArray[Any], name: str) -> Pixels:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    if not np.issubdtype(array.dtype, np.floating):
        reason = f"array of {array.dtype}; use uint8, uint16 or floats in [0, 1]"
        raise ImageProblem(name, "unsupported", reason)
    if not (array.min() >= 0 and array.max() <= 1):  # false for NaN too
        reason = "floats outside [0, 1]; divide by 255, or use uint8"
        raise ImageProblem(name, "unsupported", reason)
    return np.round(array * 255).astype(np.uint8)


@dataclass(eq=False)
class Photo:
    """An image that was read but not decoded.

    Attributes:
        content: The file, or the image itself.
        name: What messages call it.
        width_px: Width as stored.
        height_px: Height as stored.
        opened: An encoded image with its header read by Pillow; it can be decoded once.
        upright_px: Width and height of the upright photo; zeros until it was decoded.
        kept: What `decode.upright` returned last, if it is small.
    """

    content: bytes | Image.Image = field(repr=False)
    name: str
    width_px: int
    height_px: int
    opened: ImageFile.ImageFile | None = field(default=None, repr=False)
    upright_px: tuple[int, int] = (0, 0)
    kept: tuple[Image.Image, int] | None = field(default=None, repr=False)


ImageSource = str | os.PathLike[str] | bytes | IO[bytes] | Image.Image | npt.NDArray[Any] | Photo


def open_photo(source: ImageSource, name: str | None = None) -> Photo:
    """Read an image up to its header, which gives the size.

    Args:
        source: A path, an encoded image as bytes or an open binary file, a Pillow image, or an
            array; see `load_crop`. A photo is returned as it is.
        name: What messages call it; a path's default is the path.

    Raises:
        ImageProblem: The image cannot be read, or is beyond the limits of this module.
    """
    if isinstance(source, Photo):
        return source
    if isinstance(source, str | os.PathLike):
        name = name or os.fspath(source)
    name = name or "image"
    if isinstance(source, bytearray | memoryview):
        source = bytes(source)
    if isinstance(source, np.ndarray):
        source = Image.fromarray(array_pixels(source, name))
    if isinstance(source, Image.Image):
        check_size(source.size, name)
        return Photo(source, name, *source.size)
    if not isinstance(source, bytes | str | os.PathLike) and not hasattr(source, "read"):
        use = "use a path, bytes, a binary file, a Pillow image or a NumPy array"
        reason = f"{type(source).__name__} is not an image; {use}"
        raise ImageProblem(name, "not_image", reason)
    data = read_checked(source, content_of, name)
    opened = open_header(data, name)
    return Photo(data, name, *opened.size, opened)


def undecoded(photo: Photo) -> Image.Image:
    """Return the image of a photo, of which Pillow has read the header alone if it is encoded.

    Raises:
        ImageProblem: The photo is damaged.
    """
    image = photo.content
    if isinstance(image, bytes):
        opened = photo.opened
        return opened if opened and opened.tile else open_header(image, photo.name)
    with _loading:  # threads may share an image that Pillow has not read yet
        if getattr(image, "fp", image) is None and getattr(image, "tile", None):
            raise ImageProblem(photo.name, "unreadable", "was closed; call its load() first")
        image.load()
        image.getexif()
    return image


@contextmanager
def damage_as_bad_image(name: str) -> Iterator[None]:
    """Turn whatever Pillow raises on damaged files into ImageProblem.

    Raises:
        ImageProblem: The block raised an exception.
    """
    try:
        yield
    except FacepairsError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile bytes make Pillow raise nearly anything
        why = " ".join(str(error).split()) or type(error).__name__
        reason = f"damaged or truncated ({why}); replace the file"
        raise ImageProblem(name, "unreadable", reason) from None


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Suppress Pillow's warnings (large images, odd EXIF); the errors raised here say enough.

    `catch_warnings` changes the whole process in Python before 3.14, hence the lock; only short
    steps run inside, never a decode.
    """
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def open_header(data: bytes, name: str) -> ImageFile.ImageFile:
    """Read the header of an encoded image and check its limits.

    Raises:
        ImageProblem: The image is damaged, of another format or beyond the limits.
    """
    kind = pillow_format(data, name)
    hazard = find_hazard(data)
    if hazard:
        raise _too_slow(name, hazard)
    Image.preinit()  # else Pillow loads every plugin for the less common formats
    with damage_as_bad_image(name):
        try:
            with quiet_pillow():
                image = Image.open(io.BytesIO(without_metadata(data)), formats=(kind,))
        except Image.DecompressionBombError:
            raise too_many_pixels(name) from None
        except UnidentifiedImageError:
            raise ValueError("its header is invalid") from None
        check_size(image.size, name, max_pixels(MAX_PIXELS // 2 if kind in COSTLY else MAX_PIXELS))
        most = BYTES_PER_PIXEL * math.prod(image.size) + EXTRA_BYTES
        if len(data) > most:
            holds = f"{len(data):,} bytes for {image.width} x {image.height} pixels, above {most:,}"
            raise ImageProblem(name, "too_large", f"{holds}; save the image without other data")
        slow = any(tile.codec_name in SLOW_CODECS for tile in image.tile)  # a WebP has no tile
        if slow and math.prod(image.size) > MAX_SLOW_PIXELS:
            hazard = f"a {kind} of over {MAX_SLOW_PIXELS:,} pixels in a slow compression"
            raise _too_slow(name, hazard)
        if kind == "TIFF":
            _check_tiff_pieces(image, name)
    return image


def _too_slow(name: str, hazard: str) -> ImageProblem:
    reason = f"would take too long to read ({hazard}); replace the file"
    return ImageProblem(name, "too_large", reason)


def _check_tiff_pieces(image: Any, name: str) -> None:
    """Refuse a TIFF whose strips or tiles take far more memory than its pixels."""
    tags = image.tag_v2
    columns = int(tags.get(TILE_WIDTH, image.width))
    rows = int(tags.get(TILE_HEIGHT, image.height))
    if TILE_WIDTH not in tags:
        rows = min(int(tags.get(ROWS_PER_STRIP, rows)), rows)
    bits = [int(value) for value in tags.get(BITS, (8,))]
    size = columns * rows * max(sum(bits), bits[0] * int(tags.get(SAMPLES, 1))) // 8
    if size > MAX_TIFF_PIECE_BYTES:
        reason = f"a TIFF in strips or tiles of {size / 1e6:,.0f} MB; save it with smaller ones"
        raise ImageProblem(name, "too_large", reason)


def read_image_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; raise OSError unless it is a regular one within MAX_BYTES."""
    status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):  # opening a pipe or a device could block
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise OSError(errno.EINVAL, what)
    if status.st_size > MAX_BYTES:
        raise OSError(errno.EFBIG, TOO_LARGE)
    return Path(path).read_bytes()


def read_below(root: Path, name: str) -> bytes:
    """Return the content of a file by its path below a folder, as `read_image_file` does."""
    return read_image_file(root / name)


def read_checked(file: T, read_file: Callable[[T], bytes], name: str = "image") -> bytes:
    """Read a file that should be an image.

    Args:
        file: The file's path, or whatever `read_file` takes.
        read_file: Returns the content of the file; may raise OSError.
        name: What messages call it.

    Raises:
        ImageProblem: The file cannot be read, is empty or has over 256 MB.
        OSError: Too many files are open.
    """
    if len(str(name)) > LONGEST:  # the image itself, such as a data: URL
        name = f"a text of {len(str(name)):,} characters"
    try:
        data = read_file(file)
        if len(data) > MAX_BYTES:
            raise OSError(errno.EFBIG, TOO_LARGE)
    except PermissionError:
        reason = "may not be read; grant yourself read permission"
        raise ImageProblem(name, "no_permission", reason) from None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in TOO_MANY_OPEN:
            raise  # which says nothing of the photo
        why = getattr(error, "strerror", None) or error
        if why == TOO_LARGE:
            raise ImageProblem(name, "too_large", f"{why}; use a smaller image") from None
        raise ImageProblem(name, "unreadable", f"{why}; choose a readable image file") from None
    if not data:
        raise ImageProblem(name, "zero_byte", "empty (0 bytes); replace the file")
    return data


def content_of(source: bytes | str | os.PathLike[str] | IO[bytes]) -> bytes:
    """Return the content of a file, or bytes as they are; for `read_checked`."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        return read_image_file(source)
    try:
        with _loading:
            data = _read_all(source)
            if not data and source.seekable():  # it was written or read just before
                source.seek(0)
                data = _read_all(source)
    except Exception as error:  # noqa: BLE001 - no file, or one of any library
        raise ValueError(f"its read() failed ({type(error).__name__}: {error})") from None
    if not isinstance(data, bytes):
        raise ValueError("opened as text, not in binary mode ('rb')")
    return data


def _read_all(source: IO[bytes]) -> bytes:
    """Read a file to its end, or just beyond MAX_BYTES; that of a socket gives a part a call."""
    data = source.read(MAX_BYTES + 1)
    while len(data) <= MAX_BYTES and (more := source.read(MAX_BYTES + 1 - len(data))):
        data += more
    return data
