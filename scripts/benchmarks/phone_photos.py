"""Compose photos of phone and camera size from a folder of small ones, to measure decoding.

    facepairs data synth --out faces --people 60 --photos 4        # or LFW's own photos
    python scripts/benchmarks/phone_photos.py faces --out phone
    facepairs bench phone

Each photo of 1 to 12 megapixels shows one face, 6 to 30 % of the picture's shorter side wide, at a
random place in a scene; noise gives the JPEGs the bytes per pixel that cameras write. Of the
photos, 30 % are stored turned, as phones do, with the orientation in EXIF. The same arguments give
the same photos.
"""

import argparse
import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from facepairs.data.index import FaceIndex
from facepairs.support.parallel import thread_map

SIDES = ((1280, 960), (1600, 1200), (2048, 1536), (2592, 1944), (3264, 2448), (4000, 3000))
FACE_SHARES = (0.06, 0.30)  # of the shorter side
FACE_OF_SOURCE = 0.36  # width of the face in a source photo framed like LFW's
NOISE = 3.5  # standard deviation in grey levels, of a sensor in indoor light
QUALITY, SUBSAMPLING_420 = 90, 2
TURNED, ORIENTATION = 0.3, 0x0112
STORED_BY_ORIENTATION = {6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}


def compose(source: Image.Image, rng: np.random.Generator) -> tuple[Image.Image, int]:
    """Return a scene that shows the source photo, as stored, and its EXIF orientation."""
    width, height = SIDES[rng.integers(len(SIDES))]
    if rng.random() < 0.5:
        width, height = height, width
    scene = source.resize((width, height), Image.Resampling.BICUBIC, (20, 20, 60, 60))
    side = round(min(width, height) * rng.uniform(*FACE_SHARES) / FACE_OF_SOURCE)
    left, top = (int(rng.integers(max(1, length - side + 1))) for length in (width, height))
    mask = Image.new("L", source.size, 0)
    mask.paste(255, tuple(round(length * k) for k in (0.04, 0.96) for length in source.size))
    mask = mask.filter(ImageFilter.GaussianBlur(source.width / 40)).resize((side, side))
    scene.paste(source.resize((side, side), Image.Resampling.LANCZOS), (left, top), mask)
    tile = rng.normal(0, NOISE, (height, width)).astype(np.float32)
    pixels = np.asarray(scene, np.float32) + tile[:, :, None]
    scene = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    if rng.random() >= TURNED:
        return scene, 1
    orientation = int(rng.choice(list(STORED_BY_ORIENTATION)))
    return scene.transpose(STORED_BY_ORIENTATION[orientation]), orientation


def encode(scene: Image.Image, orientation: int) -> bytes:
    """Return a photo as a JPEG of a phone."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    with io.BytesIO() as file:
        scene.save(file, "JPEG", quality=QUALITY, subsampling=SUBSAMPLING_420, exif=exif)
        return file.getvalue()


def main() -> None:
    """Write the photos."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of Person_Name/photo.jpg")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--photos", type=int, default=4, help="of each person")
    options = parser.parse_args()
    index = FaceIndex.scan(options.data)
    people = np.flatnonzero(index.image_counts >= options.photos)[: options.people]
    images = (index.first[people][:, None] + np.arange(options.photos)).ravel()

    def write(image: int) -> int:
        with Image.open(index.path(image)) as source:
            photo = encode(*compose(source.convert("RGB"), np.random.default_rng([7, image])))
        path = options.out / Path(index.name(image)).with_suffix(".jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo)
        return len(photo)

    sizes = list(thread_map(write, images.tolist()))
    print(f"{len(sizes)} photos of {len(people)} people, {sum(sizes) / 1e6:,.0f} MB: {options.out}")


if __name__ == "__main__":
    main()
