"""Where the faces of a picture are: OpenCV's Viola-Jones cascades, confirmed and measured for lean.

Source: Viola and Jones, *Rapid Object Detection using a Boosted Cascade of Simple Features*, CVPR
2001; Lienhart and Maydt 2002 for the cascades. LFW was framed with a detector of this kind.

A cascade proposes boxes in a small copy of the picture, and each is looked at again, closely and
turned by several angles. A face is seen many times there, by many neighbouring windows, a chance
likeness a few times at most; and the angles at which it is seen best tell how the head leans.
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
PATCH_PX = 40  # side of the box in the close look
PATCH_BOXES = 1.6  # width of the close look
LEANS = (-24.0, -12.0, 0.0, 12.0, 24.0)  # degrees, counter-clockwise
NEAR_LEANS = (-12.0, 0.0, 12.0)  # for the second close look
LEAST_HITS = {FRONT: 9, WIDE: 12, PROFILE: 8}
WINDOW_BOXES = {FRONT: 1.10, WIDE: 1.075, PROFILE: 1.15}  # median window on LFW's faces, in boxes
SURE = 0.35  # of the hits of the surest face: what has fewer is a chance likeness
CERTAIN = 25  # hits; half of LFW's faces have 45, chance likenesses seldom more than 20
MOST_PROPOSALS = 8  # looked at closely in one search, the largest first
NEIGHBOURS = 3
SAME_FACE = 0.3  # intersection over union
EYES_PX = 96  # side of the box where eyes are looked for
MOST_EYE_LEAN = 10.0  # degrees by which eyes may differ from the lean of the face


@dataclass(frozen=True)
class Face:
    """A face: centre and side of its box in pixels, its lean in degrees counter-clockwise.

    `hits` counts the windows that saw it in the close look; `profile` is true where only the
    cascade for profiles did.
    """

    x: float
    y: float
    side_px: float
    lean: float = 0.0
    hits: int = 0
    profile: bool = False


class _Search(NamedTuple):
    """One pass: which cascade, on a copy of what longer side, from what box on, turned how far."""

    cascade: str
    long_px: int
    least_px: int
    turns: tuple[float, ...] = (0.0,)


# The cheapest first: the first that finds a face ends it. Boxes are 20 pixels at least.
SEARCHES = (
    _Search(FRONT, 320, 30),
    _Search(FRONT, 800, 22),
    _Search(FRONT, 480, 22, (-30.0, 30.0)),
    _Search(WIDE, 640, 26),
    _Search(PROFILE, 480, 24),
    _Search(FRONT, 1600, 24),
    _Search(FRONT, 960, 22, (-25.0, 25.0)),
)
EVERY = (_Search(FRONT, 800, 22),)


class Detector:
    """Finds faces; not thread-safe, as OpenCV's cascades are not: one for each thread."""

    def faces(self, gray: Gray, every: bool = False) -> list[Face]:
        """Find faces in uint8[H, W], the largest first; none where no search finds one.

        Searches begin with large faces and end with the first that finds any, so that small ones
        beside a large one need not be told; with `every` all from 3 % of the longer side on are.
        Where the first is not certain, the second has a say.
        """
        found: list[Face] = []
        for search in (*(EVERY if every else ()), *SEARCHES):
            found = _surest([*found, *self._looked_at(gray, search)])
            certain = any(face.hits >= CERTAIN for face in found)
            if found and (certain or search is not SEARCHES[0]):
                break
        return [self._with_eyes(gray, face) for face in found]

    def _with_eyes(self, gray: Gray, face: Face) -> Face:
        """Let the eyes, where both are found, have half the say in how the face leans."""
        lean = None if face.profile else self._eye_lean(gray, face)
        return face if lean is None else replace(face, lean=(face.lean + lean) / 2)

    def _eye_lean(self, gray: Gray, face: Face) -> float | None:
        """Give the lean of the line through both eyes in degrees, None where they are not found.

        Plausible eyes lie where eyes lie in a box and lean about as the face does: a nostril or a
        brow taken for an eye must not turn a photo.
        """
        patch = _patch(gray, face, face.lean, EYES_PX)
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
        lean = math.degrees(math.atan2(-down, across))
        plausible = 0.28 <= across / EYES_PX <= 0.55 and abs(lean) <= MOST_EYE_LEAN
        return face.lean + lean if plausible else None

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

    def _looked_at(self, gray: Gray, search: _Search) -> Iterator[Face]:
        proposals = sorted(self._proposals(gray, search), key=lambda face: -face.side_px)
        for proposal in proposals[:MOST_PROPOSALS]:
            face = self._look_closely(gray, proposal, search.cascade)
            if face:
                yield face

    def _proposals(self, gray: Gray, search: _Search) -> Iterator[Face]:
        import cv2

        height, width = gray.shape
        scale = min(1.0, search.long_px / max(height, width))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = cv2.resize(gray, size, interpolation=cv2.INTER_AREA) if scale < 1 else gray
        for turn in search.turns:
            turned, back = _turned(small, turn)
            for mirrored in (False, True)[: 1 + (search.cascade == PROFILE)]:
                view = np.ascontiguousarray(turned[:, ::-1]) if mirrored else turned
                for x, y, side in self._boxes(view, search):
                    across = view.shape[1] - x if mirrored else x
                    u, v = (back @ np.array([across, y, 1.0])).tolist()
                    yield Face(
                        u / scale, v / scale, side / scale, turn, 0, search.cascade == PROFILE
                    )

    def _boxes(self, view: Gray, search: _Search) -> Iterator[tuple[float, float, float]]:
        least = (search.least_px, search.least_px)
        boxes = self._cascade(search.cascade).detectMultiScale(view, 1.1, NEIGHBOURS, minSize=least)
        for x, y, width, height in np.reshape(boxes, (-1, 4)).tolist():
            yield x + width / 2, y + height / 2, float(width)

    def _look_closely(self, gray: Gray, face: Face, cascade: str) -> Face | None:
        """Measure a proposal again from all windows that see it, twice, or give None."""
        for leans in (LEANS, NEAR_LEANS):
            angles = np.array([face.lean + lean for lean in leans])
            looks = [self._windows(gray, face, angle, cascade) for angle in angles]
            counts = np.array([len(windows) for windows in looks], np.float64)
            best = int(counts.argmax())
            if counts[best] < LEAST_HITS[cascade]:
                return None
            x, y, side = (np.median(looks[best], axis=0) / PATCH_PX).tolist()
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
        self, gray: Gray, face: Face, lean: float, cascade: str
    ) -> npt.NDArray[np.float64]:
        """Give all windows that see a face in the close look: (x, y from the centre, side)."""
        patch = _patch(gray, face, lean, PATCH_PX)
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
    """Give the intersection over union of two faces' boxes, upright, 0 to 1."""
    sides = (one.side_px, other.side_px)
    shared = 1.0
    for a, b in ((one.x, other.x), (one.y, other.y)):
        low = max(a - sides[0] / 2, b - sides[1] / 2)
        shared *= max(0.0, min(a + sides[0] / 2, b + sides[1] / 2) - low)
    return shared / (sides[0] ** 2 + sides[1] ** 2 - shared)


def _surest(faces: Iterable[Face]) -> list[Face]:
    """Keep the surest of finds that share a place, leave out chance likenesses; largest first."""
    kept: list[Face] = []
    for face in sorted(faces, key=lambda face: -face.hits):
        sure = not kept or face.hits >= SURE * kept[0].hits
        if sure and not any(_same_or_nested(face, other) for other in kept):
            kept.append(face)
    return sorted(kept, key=lambda face: (-face.side_px, face.x, face.y))


def _same_or_nested(one: Face, other: Face) -> bool:
    """Tell whether two finds share a place: one face found twice, or a likeness around a face."""
    apart = max(abs(one.x - other.x), abs(one.y - other.y))
    return apart < max(one.side_px, other.side_px) / 2 or overlap(one, other) > SAME_FACE


def _patch(gray: Gray, face: Face, lean: float, side_px: int) -> Gray:
    """Cut a square around a face, PATCH_BOXES of its box wide, levelled, the box side_px."""
    return square(gray, face, lean, round(side_px * PATCH_BOXES), face.side_px / side_px)


def square(
    image: npt.NDArray[np.uint8], face: Face, lean: float, size_px: int, step: float
) -> npt.NDArray[np.uint8]:
    """Cut a square of size_px around a face, turned clockwise by `lean`; a pixel takes `step` old.

    `image` is uint8[H, W] or [H, W, 3]. Beyond its edges the edge pixels go on: LFW is black there,
    but a black border is an edge that no face has.
    """
    import cv2

    reach = math.ceil(size_px * step * 0.75) + 2  # half the diagonal and a little
    left, top = math.floor(face.x) - reach, math.floor(face.y) - reach
    height, width = image.shape[:2]
    x0, y0 = max(0, min(left, width - 1)), max(0, min(top, height - 1))
    part = image[y0 : max(y0 + 1, top + 2 * reach), x0 : max(x0 + 1, left + 2 * reach)]
    x, y = face.x - x0, face.y - y0
    if step > 1:  # average before pixels are left out
        rows, columns = part.shape[:2]
        size = max(1, round(columns / step)), max(1, round(rows / step))
        part = cv2.resize(part, size, interpolation=cv2.INTER_AREA)
        x, y = x * size[0] / columns, y * size[1] / rows
        step = 1.0
    turn = cv2.getRotationMatrix2D((x - 0.5, y - 0.5), -lean, 1 / step)
    turn[:, 2] += (size_px - 1) / 2 - np.array([x - 0.5, y - 0.5])
    cut: npt.NDArray[np.uint8] = cv2.warpAffine(
        part, turn, (size_px, size_px), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return cut


def _turned(gray: Gray, lean: float) -> tuple[Gray, npt.NDArray[np.float64]]:
    """Turn a picture clockwise by `lean` on a canvas that holds all; give the way back, [2, 3]."""
    if not lean:
        return gray, np.eye(2, 3)
    import cv2

    height, width = gray.shape
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), -lean, 1.0)
    cos, sin = abs(turn[0, 0]), abs(turn[0, 1])
    size = math.ceil(width * cos + height * sin), math.ceil(width * sin + height * cos)
    turn[:, 2] += np.array([size[0] - width, size[1] - height]) / 2
    turned = cv2.warpAffine(
        gray, turn, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return turned, cv2.invertAffineTransform(turn)
