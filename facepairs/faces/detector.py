"""Detect faces with OpenCV's Viola-Jones cascades, and measure their roll.

A cascade proposes boxes in a small copy of the image. Each box is then searched again, enlarged and
turned by several angles. Many neighbouring windows confirm a face there, few confirm a false
detection, and the angles with the most windows give the roll of the head.

References:
    Viola and Jones, *Rapid Object Detection using a Boosted Cascade of Simple Features*, CVPR 2001.
    Lienhart and Maydt, *An Extended Set of Haar-like Features for Rapid Object Detection*, ICIP
    2002 (the cascades). LFW was framed with a detector of this kind.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Gray = npt.NDArray[np.uint8]
FRONT, WIDE, PROFILE, EYE = "frontalface_alt2", "frontalface_default", "profileface", "eye"
PATCH_PX = 40  # side of the box in the patch that is searched again
PATCH_BOXES = 1.6  # width of that patch, in boxes
ROLLS_DEG = (-24.0, -12.0, 0.0, 12.0, 24.0)  # counter-clockwise
NEAR_ROLLS_DEG = (-12.0, 0.0, 12.0)  # for the second pass
MIN_HITS = {FRONT: 9, WIDE: 12, PROFILE: 8}
WINDOW_BOXES = {FRONT: 1.10, WIDE: 1.075, PROFILE: 1.15}  # median window on LFW's faces, in boxes
MIN_HIT_SHARE = 0.35  # of the hits of the best face; with fewer it is a false detection
CERTAIN_HITS = 25  # half of LFW's faces have 45, false detections rarely more than 20
MAX_PROPOSALS = 8  # confirmed in one search, the largest first
NEIGHBOURS = 3
SAME_FACE_IOU = 0.3
EYES_PX = 96  # side of the box in the patch where eyes are searched
MAX_EYE_ROLL_DEG = 10.0  # between the line through the eyes and the face


@dataclass(frozen=True)
class Face:
    """A detected face.

    Attributes:
        x: Centre of the box, pixels from the left.
        y: Centre of the box, pixels from the top.
        side_px: Side of the box.
        roll_deg: Roll of the head, counter-clockwise.
        hits: Number of windows that confirmed the face.
        profile: Whether only the cascade for profiles found it.
    """

    x: float
    y: float
    side_px: float
    roll_deg: float = 0.0
    hits: int = 0
    profile: bool = False


class _Search(NamedTuple):
    """One pass: the cascade, the copy's longer side, the smallest box in it, the angles tried."""

    cascade: str
    long_px: int
    min_box_px: int
    rolls_deg: tuple[float, ...] = (0.0,)


# Cheapest first; the first search that finds a face is the last. Boxes are 20 pixels at least.
SEARCHES = (
    _Search(FRONT, 320, 30),
    _Search(FRONT, 800, 22),
    _Search(FRONT, 480, 22, (-30.0, 30.0)),
    _Search(WIDE, 640, 26),
    _Search(PROFILE, 480, 24),
    _Search(FRONT, 1600, 24),
    _Search(FRONT, 960, 22, (-25.0, 25.0)),
)
FIRST_FOR_EVERY_FACE = (_Search(FRONT, 800, 22),)


class Detector:
    """Finds faces. OpenCV's cascades are not thread-safe: use one detector per thread."""

    def faces(self, gray: Gray, every: bool = False) -> list[Face]:
        """Find faces.

        Searches begin with large faces and end with the first that finds any; a second search
        follows when the first one is not certain. Small faces beside a large one may be missed.

        Args:
            gray: uint8[H, W].
            every: Find all faces from 3 % of the longer side on.

        Returns:
            The faces, the largest first.
        """
        found: list[Face] = []
        for search in (*(FIRST_FOR_EVERY_FACE if every else ()), *SEARCHES):
            found = _select([*found, *self._search(gray, search)])
            certain = any(face.hits >= CERTAIN_HITS for face in found)
            if found and (certain or search is not SEARCHES[0]):
                break
        return [self._with_eyes(gray, face) for face in found]

    def _with_eyes(self, gray: Gray, face: Face) -> Face:
        """Average the roll with that of the eyes, where both eyes are found."""
        roll_deg = None if face.profile else self._eye_roll_deg(gray, face)
        return face if roll_deg is None else replace(face, roll_deg=(face.roll_deg + roll_deg) / 2)

    def _eye_roll_deg(self, gray: Gray, face: Face) -> float | None:
        """Return the roll of the line through both eyes, None where they are not found.

        Eyes must have a plausible distance and roll: a nostril or a brow mistaken for an eye must
        not turn a photo.
        """
        patch = _patch(gray, face, face.roll_deg, EYES_PX)
        margin = round(EYES_PX * (PATCH_BOXES - 1) / 2)
        top, bottom = margin + round(0.18 * EYES_PX), margin + round(0.58 * EYES_PX)
        middle = patch.shape[1] // 2
        eyes = [
            self._eye(patch[top:bottom, left:right], left)
            for left, right in ((margin, middle + 4), (middle - 4, middle + EYES_PX // 2))
        ]
        if eyes[0] is None or eyes[1] is None:
            return None
        across, down = eyes[1][0] - eyes[0][0], eyes[1][1] - eyes[0][1]
        roll_deg = math.degrees(math.atan2(-down, across))
        plausible = 0.28 <= across / EYES_PX <= 0.55 and abs(roll_deg) <= MAX_EYE_ROLL_DEG
        return face.roll_deg + roll_deg if plausible else None

    def _eye(self, part: Gray, left: int) -> tuple[float, float] | None:
        boxes, counts = self._cascade(EYE).detectMultiScale2(
            part, 1.06, 4, minSize=(18, 18), maxSize=(44, 44)
        )
        if not len(boxes):
            return None
        x, y, width, height = boxes[int(np.argmax(counts))].tolist()
        return left + x + width / 2, y + height / 2

    def _cascade(self, name: str) -> Any:
        if name not in self._loaded:
            import cv2

            folder = Path(cv2.__file__).with_name("data")
            self._loaded[name] = cv2.CascadeClassifier(str(folder / f"haarcascade_{name}.xml"))
        return self._loaded[name]

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        return {}

    def _search(self, gray: Gray, search: _Search) -> Iterator[Face]:
        proposals = sorted(self._proposals(gray, search), key=lambda face: -face.side_px)
        for proposal in proposals[:MAX_PROPOSALS]:
            face = self._confirm(gray, proposal, search.cascade)
            if face:
                yield face

    def _proposals(self, gray: Gray, search: _Search) -> Iterator[Face]:
        import cv2

        height, width = gray.shape
        scale = min(1.0, search.long_px / max(height, width))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = cv2.resize(gray, size, interpolation=cv2.INTER_AREA) if scale < 1 else gray
        for roll_deg in search.rolls_deg:
            turned, back = _turn(small, roll_deg)
            for mirrored in (False, True)[: 1 + (search.cascade == PROFILE)]:
                view = np.ascontiguousarray(turned[:, ::-1]) if mirrored else turned
                for x, y, side in self._boxes(view, search):
                    across = view.shape[1] - x if mirrored else x
                    u, v = (back @ np.array([across, y, 1.0])).tolist()
                    is_profile = search.cascade == PROFILE
                    yield Face(u / scale, v / scale, side / scale, roll_deg, 0, is_profile)

    def _boxes(self, view: Gray, search: _Search) -> Iterator[tuple[float, float, float]]:
        smallest = (search.min_box_px, search.min_box_px)
        cascade = self._cascade(search.cascade)
        boxes = cascade.detectMultiScale(view, 1.1, NEIGHBOURS, minSize=smallest)
        for x, y, width, height in np.reshape(boxes, (-1, 4)).tolist():
            yield x + width / 2, y + height / 2, float(width)

    def _confirm(self, gray: Gray, face: Face, cascade: str) -> Face | None:
        """Measure a proposal twice from all windows that see it; None if they are too few."""
        for rolls in (ROLLS_DEG, NEAR_ROLLS_DEG):
            angles = face.roll_deg + np.array(rolls)
            windows = [self._windows(gray, face, angle, cascade) for angle in angles.tolist()]
            counts = np.array([len(found) for found in windows], np.float64)
            best = int(counts.argmax())
            if counts[best] < MIN_HITS[cascade]:
                return None
            x, y, side = (np.median(windows[best], axis=0) / PATCH_PX).tolist()
            turn = math.radians(float(angles[best]))
            face = Face(
                face.x + face.side_px * (x * math.cos(turn) + y * math.sin(turn)),
                face.y + face.side_px * (-x * math.sin(turn) + y * math.cos(turn)),
                face.side_px * side / WINDOW_BOXES[cascade],
                float(counts @ angles / counts.sum()),
                int(counts[best]),
                face.profile,
            )
        return face

    def _windows(
        self, gray: Gray, face: Face, roll_deg: float, cascade: str
    ) -> npt.NDArray[np.float64]:
        """Return the windows that see a face, float64[n, 3]: offset from the centre, side."""
        patch = _patch(gray, face, roll_deg, PATCH_PX)
        views = [patch, np.ascontiguousarray(patch[:, ::-1])] if cascade == PROFILE else [patch]
        least, most = round(0.8 * PATCH_PX), round(1.45 * PATCH_PX)
        seen = [np.zeros((0, 3))]
        for mirrored, view in enumerate(views):
            boxes = self._cascade(cascade).detectMultiScale(
                view, 1.05, 0, minSize=(least, least), maxSize=(most, most)
            )
            windows = np.reshape(boxes, (-1, 4)).astype(np.float64)
            middle = windows[:, :2] + windows[:, 2:] / 2 - view.shape[0] / 2
            middle[:, 0] *= -1 if mirrored else 1
            seen.append(np.column_stack([middle, windows[:, 2]]))
        return max(seen, key=len)


def overlap(one: Face, other: Face) -> float:
    """Return the intersection over union of two faces' boxes, ignoring their roll, 0 to 1."""
    sides = (one.side_px, other.side_px)
    shared = 1.0
    for a, b in ((one.x, other.x), (one.y, other.y)):
        low = max(a - sides[0] / 2, b - sides[1] / 2)
        shared *= max(0.0, min(a + sides[0] / 2, b + sides[1] / 2) - low)
    return shared / (sides[0] ** 2 + sides[1] ** 2 - shared)


def _select(faces: Iterable[Face]) -> list[Face]:
    """Drop false detections and all but the best of faces at the same place; largest first."""
    kept: list[Face] = []
    for face in sorted(faces, key=lambda face: -face.hits):
        confirmed = not kept or face.hits >= MIN_HIT_SHARE * kept[0].hits
        if confirmed and not any(_same_or_nested(face, other) for other in kept):
            kept.append(face)
    return sorted(kept, key=lambda face: (-face.side_px, face.x, face.y))


def _same_or_nested(one: Face, other: Face) -> bool:
    """Return whether two detections overlap: one face found twice, or one box within another."""
    apart = max(abs(one.x - other.x), abs(one.y - other.y))
    return apart < max(one.side_px, other.side_px) / 2 or overlap(one, other) > SAME_FACE_IOU


def _patch(gray: Gray, face: Face, roll_deg: float, side_px: int) -> Gray:
    """Cut an upright square around a face, PATCH_BOXES boxes wide, in which the box has side_px."""
    return cut_square(gray, face, roll_deg, round(side_px * PATCH_BOXES), face.side_px / side_px)


def cut_square(
    image: npt.NDArray[np.uint8], face: Face, roll_deg: float, size_px: int, step: float
) -> npt.NDArray[np.uint8]:
    """Cut a turned square around a face.

    Beyond the image's edges the edge pixels are repeated. LFW is black there, but a black border
    adds an edge that no face has.

    Args:
        image: uint8[H, W] or uint8[H, W, 3].
        face: The face at the centre.
        roll_deg: Degrees by which the square is turned clockwise, to bring a face of this roll
            upright.
        size_px: Side of the result.
        step: Pixels of the image per pixel of the result.

    Returns:
        uint8[size_px, size_px] or uint8[size_px, size_px, 3].
    """
    import cv2

    reach = math.ceil(size_px * step * 0.75) + 2  # half the diagonal and a little
    left, top = math.floor(face.x) - reach, math.floor(face.y) - reach
    height, width = image.shape[:2]
    x0, y0 = max(0, min(left, width - 1)), max(0, min(top, height - 1))
    part = image[y0 : max(y0 + 1, top + 2 * reach), x0 : max(x0 + 1, left + 2 * reach)]
    x, y = face.x - x0, face.y - y0
    if step > 1:  # average before pixels are dropped
        rows, columns = part.shape[:2]
        size = max(1, round(columns / step)), max(1, round(rows / step))
        part = cv2.resize(part, size, interpolation=cv2.INTER_AREA)
        x, y = x * size[0] / columns, y * size[1] / rows
        step = 1.0
    turn = cv2.getRotationMatrix2D((x - 0.5, y - 0.5), -roll_deg, 1 / step)
    turn[:, 2] += (size_px - 1) / 2 - np.array([x - 0.5, y - 0.5])
    cut: npt.NDArray[np.uint8] = cv2.warpAffine(
        part, turn, (size_px, size_px), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return cut


def _turn(gray: Gray, roll_deg: float) -> tuple[Gray, npt.NDArray[np.float64]]:
    """Return an image turned clockwise on a larger canvas, and the inverse transform, [2, 3]."""
    if not roll_deg:
        return gray, np.eye(2, 3)
    import cv2

    height, width = gray.shape
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), -roll_deg, 1.0)
    cos, sin = abs(turn[0, 0]), abs(turn[0, 1])
    size = math.ceil(width * cos + height * sin), math.ceil(width * sin + height * cos)
    turn[:, 2] += np.array([size[0] - width, size[1] - height]) / 2
    turned = cv2.warpAffine(
        gray, turn, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return turned, cv2.invertAffineTransform(turn)
