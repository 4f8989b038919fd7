"""Where faces are found in drawn photos that are clear, and in others at the edge of what is found.

`WRITE_GOLDEN=1 pytest` writes the file anew; look at what changes in it.
"""

from pathlib import Path

import numpy as np
import pytest
from drawn.scenes import Place, canvas, paste, tight_crop
from golden import assert_golden
from PIL import Image, ImageFilter

from facepairs.photos.crop import warp
from facepairs.photos.detector import find_faces, locate_faces
from facepairs.photos.frame import fit_crop
from facepairs.photos.hints import HINTS_SPEC, brightness, gray_of, hints_of_crop, sharpness
from facepairs.photos.yunet import detect

KEPT = Path(__file__).parent / "golden_detections.json"


@pytest.fixture(scope="module")
def photos(few_faces) -> list[Path]:
    return sorted(few_faces.glob("*/*.jpg"))[::3]


def scenes(photos: list[Path]) -> dict[str, Image.Image]:
    """Return photos by what is difficult in them."""
    first, second, *others = (Image.open(path).convert("RGB") for path in photos[:6])
    found = {"plain": first, "grey": second.convert("L").convert("RGB")}
    for radius in (4, 6, 8, 10):
        found[f"blurred {radius}"] = first.filter(ImageFilter.GaussianBlur(radius))
    for share in (0.4, 0.5, 0.6):
        found[f"covered {share}"] = second.copy()
        found[f"covered {share}"].paste((90, 90, 90), (0, int(250 * share), 250, 250))
    for angle in (25, 58, 75, 135, 180):
        found[f"turned {angle}"] = others[0].rotate(angle, Image.Resampling.BILINEAR)
    for side in (28, 44, 60):
        found[f"small {side}"] = paste(canvas(200, 150), photos[3], Place(110, 70, side))
    found["tight"] = tight_crop(photos[4]).convert("RGB").crop((8, 12, 84, 104))
    found["cut"] = first.crop((118, 0, 250, 250))
    found["large"] = paste(canvas(1500, 1100), photos[0], Place(600, 500, 420))
    paste(found["large"], photos[1], Place(1300, 900, 75))
    found["several"] = canvas(640, 420)
    for at, path in enumerate(photos[:6]):
        place = Place(110 + 105 * (at % 5), 120 + 180 * (at // 5), 110 + 25 * (at % 3), 9 * at - 20)
        paste(found["several"], path, place)
    return found


def rows(faces):
    """Return the score, centre, size, roll and yaw of each face."""
    return [
        [face.score, *face.centre.tolist(), face.side_px, face.roll_deg, face.yaw] for face in faces
    ]


def test_faces_are_found_where_they_were_found(photos):
    found = {}
    for name, picture in scenes(photos).items():
        faces = find_faces(picture)
        (raw,) = detect([np.asarray(picture)], 0.3)
        found[name] = [rows(faces), rows(locate_faces(picture, faces)), rows(raw[:3]), len(raw)]
        if faces:
            face = faces[0]
            square = warp(picture, fit_crop(face.landmarks, HINTS_SPEC), HINTS_SPEC.crop_px)
            gray = gray_of(square)
            hints = hints_of_crop(square, face.side_px, face)
            found[name] += [brightness(gray), sharpness(gray), [hint.kind for hint in hints]]
    assert_golden(KEPT, found, rel=2e-3, least=2e-3)
