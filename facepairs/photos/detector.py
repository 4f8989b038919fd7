"""Find the faces of a photo and their landmarks.

A photo is searched at a moderate size first; larger, padded and turned when no face is found. Every
face is then detected again in a small upright view and its mirror image, until its place settles,
and once in two larger views and theirs. The mean of these four is more precise than one detection,
and its score tells faces from what only resembles one.

Faces are numbered by `find_faces`, which locates the most prominent one and those close to it; the
others are single detections. `locate_faces` makes them as precise and leaves their numbers alone.

Measured with the included model on all pairs of View 1's test people: the best accuracy is .9896 by
the search alone, .9911 in this way and .9897 to .9905 where a place has to settle within 2 pixels
or less. Turned and scaled copies of a photo agree to 1.5 pixels of the frame (200 photos of LFW).
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial

import numpy as np
from PIL import Image, ImageOps

from facepairs.errors import ImageProblem
from facepairs.photos.crop import Points, centred_square, warp
from facepairs.photos.decode import upright
from facepairs.photos.frame import FRAME_PX, TEMPLATE, Face
from facepairs.photos.photo import Photo
from facepairs.photos.yunet import MAX_FACES, detect

# Names what the cache holds of a photo: change it with everything that changes what is found here.
DETECTOR = "yunet-4"
MIN_FACE_PX = 24  # from the brows to the chin; smaller faces give no verdict

SEARCH_PX = 640  # longer side of the photo in the first search
LARGE_PX = 1600  # longer side in the search for small faces
PADDING = 0.5  # of each side, around a face that fills its photo
MIN_CANDIDATE = 0.6  # score of a single detection
View = tuple[float, int]  # pixels per pixel of the frame, and side in pixels
SMALL_VIEWS: tuple[View, ...] = ((0.6, 96),)  # to find the place
LARGE_VIEWS: tuple[View, ...] = ((0.65, 128), (0.8, 128))  # to find the landmarks
MAX_VIEW_ERROR_PX = 25  # mean distance of a view's landmarks from the template, in frame pixels
TURNS_DEG = range(45, 360, 45)
MAX_ROUNDS, SETTLED_PX = 4, 4.0  # until landmarks move less than that, in frame pixels
NEARLY_BLACK = 15  # the high byte of 16 bits that hold a value of 12
CERTAIN = 0.9  # mean score of the views; below, the photo is also searched turned
MIN_SCORE = 0.84
UPRIGHT = 0.91  # upside down, much resembles a face, but not surely
MAX_ROLL_DEG = 60  # more counts as turned
MIN_DISTANCE = 0.4  # of the centres of two faces, in sides of the smaller one
CLOSE = 0.25  # in prominence: a face located again may turn out to be so much more prominent
TINY = 100.0  # in prominence
MAX_COMPARED = 3  # faces close to the most prominent one that are located to tell which it is
MIRRORED = [1, 0, 2, 4, 3]  # landmarks of a mirror image


def find_faces(picture: Image.Image, name: str = "image") -> list[Face]:
    """Find the faces of an image.

    Args:
        picture: In mode RGB, upright as far as is known.
        name: What messages call the image.

    Returns:
        The faces, at most MAX_FACES, the most prominent (large and central) first. It is located
        precisely; most of the others are single detections.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
        ImageProblem: No face is found, and the image is nearly black.
    """
    confirm = cache(partial(_confirm, picture))
    level = _candidates(picture, 0)
    found = _locate(confirm, level, picture.size, False)
    if not found or found[0].score < CERTAIN:
        # Apart from the others: a turned candidate may look surer than it is.
        turned = [face for angle in TURNS_DEG for face in _candidates(picture, angle)]
        level, turned = (_locate(confirm, faces, picture.size, True) for faces in (level, turned))
        found = _most_prominent_first(_distinct([*level, *turned]), picture.size)
    if not found and 0 < np.asarray(picture).max() <= NEARLY_BLACK:
        reason = "nearly black, perhaps 10 or 12 bits saved as 16; save it brighter, or in 8 bits"
        raise ImageProblem(name, "unreadable", reason)
    return found


def locate_faces(picture: Image.Image, found: list[Face]) -> list[Face]:
    """Locate the faces of an image as precisely as the first one, and find small ones, too.

    Args:
        picture: As for `find_faces`.
        found: What that returned.

    Returns:
        The faces in their order: one that cannot be located better stays as it is. Behind them
        come small faces of a large image, the most prominent first; at most MAX_FACES together.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
    """
    faces = list(found)
    for number, face in enumerate(found[1:], 1):
        located = _confirm(picture, face)
        others = faces[:number] + faces[number + 1 :]
        if located and _overlap(located, face) and not any(_overlap(located, o) for o in others):
            faces[number] = located
    small = _locate(partial(_confirm, picture), _missed(picture, faces), picture.size, True)
    small = [face for face in small if not any(_overlap(face, other) for other in faces)]
    return [*faces, *small][:MAX_FACES]


def search_photo(photo: Photo) -> list[Face]:
    """Find the faces of a photo, in pixels of the upright photo at its full size.

    Args:
        photo: What `open_photo` returned.

    Returns:
        As `find_faces`.

    Raises:
        BadImage: The photo is damaged.
        BadConfig: The detector's file is missing or not the expected one.
    """
    with _searched(photo) as (picture, divisor):
        faces = [face.scaled(divisor) for face in find_faces(picture, photo.name)]
    return [_in_single_precision(face) for face in faces]


def locate_in_photo(photo: Photo, found: list[Face]) -> list[Face]:
    """Locate the faces that `search_photo` found in a photo more precisely, see `locate_faces`.

    Raises:
        BadImage: The photo is damaged.
        BadConfig: The detector's file is missing or not the expected one.
    """
    with _searched(photo) as (picture, divisor):
        on_picture = [face.scaled(1 / divisor) for face in found]
        located = locate_faces(picture, on_picture)
    before = dict(zip(map(id, on_picture), found, strict=True))
    return [before.get(id(f)) or _in_single_precision(f.scaled(divisor)) for f in located]


def _searched(photo: Photo) -> AbstractContextManager[tuple[Image.Image, int]]:
    """Decode a photo as large as it is searched; see `decode.upright`."""
    return upright(photo, max(photo.width_px, photo.height_px) / LARGE_PX)


def _in_single_precision(face: Face) -> Face:
    """Return a face with its landmarks rounded to float32."""
    return Face(face.landmarks.astype(np.float32).astype(np.float64), face.score)


def _locate(
    confirm: Callable[[Face], Face | None],
    candidates: list[Face],
    size: tuple[int, int],
    every: bool,
) -> list[Face]:
    """Return the candidates that are faces, the most prominent first; see `find_faces`."""
    rest = _most_prominent_first(_distinct(candidates), size)
    located: list[Face] = []
    while rest and (every or _may_come_first(rest[0], located, size)):
        face = confirm(rest.pop(0))
        located += [face] if face else []
    others = [face for face in rest if face.score >= _required_score(face)]
    found = _most_prominent_first(_distinct([*located, *others]), size)
    return sorted(found, key=others.__contains__)


def _may_come_first(face: Face, located: list[Face], size: tuple[int, int]) -> bool:
    """Return whether a single detection must be located before the first face is known."""
    most = max((_prominence(other, size) for other in located), default=-math.inf)
    return not located or (len(located) < MAX_COMPARED and _prominence(face, size) > most - CLOSE)


def _confirm(picture: Image.Image, candidate: Face) -> Face | None:
    """Return the precise position of a candidate, None if it is not a face."""
    face = _refine(picture, candidate)
    if face and face.score >= _required_score(face) and _is_upright(picture, face):
        return face
    return None


def _most_prominent_first(faces: list[Face], size: tuple[int, int]) -> list[Face]:
    return sorted(faces, key=lambda face: -_prominence(face, size))


def _required_score(face: Face) -> float:
    return MIN_SCORE if abs(face.roll_deg) <= MAX_ROLL_DEG else UPRIGHT


def _prominence(face: Face, size: tuple[int, int]) -> float:
    """Weigh size against the distance from the image's centre, in halves of its shorter side.

    Faces of too few pixels come behind all others.
    """
    offset = face.centre - np.array(size) / 2
    penalty = TINY if face.side_px < MIN_FACE_PX else 0.0
    return math.log(face.side_px) - 2 * math.hypot(*offset) / min(size) - penalty


def _candidates(picture: Image.Image, angle_deg: int) -> list[Face]:
    """Detect faces in an image turned by an angle; if there are none, larger, then padded."""
    moderate, large = _search_scales(picture)
    found = _detect_in(picture, moderate, angle_deg)
    if not found and moderate < 1 and angle_deg == 0:
        found = _detect_in(picture, large, angle_deg)
    return found or _detect_in(picture, moderate, angle_deg, PADDING)


def _missed(picture: Image.Image, faces: list[Face]) -> list[Face]:
    """Detect small faces of a large image that are not among those found at a moderate size."""
    moderate, large = _search_scales(picture)
    larger = _detect_in(picture, large, 0) if moderate < 1 else []
    return [face for face in larger if not any(_overlap(face, other) for other in faces)]


def _search_scales(picture: Image.Image) -> tuple[float, float]:
    """Return the scales at which an image is searched first, and for small faces."""
    longer = max(picture.size)
    return min(1.0, SEARCH_PX / longer), min(1.0, LARGE_PX / longer)


def _detect_in(
    picture: Image.Image, scale: float, angle_deg: int, padding: float = 0
) -> list[Face]:
    """Detect faces in a scaled, padded and turned copy; they come in pixels of the picture."""
    width, height = (max(1, round(side * scale)) for side in picture.size)
    x, y = round(padding * width), round(padding * height)
    canvas = picture.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2)
    if padding:
        canvas = ImageOps.expand(canvas, (x, y), (127, 127, 127))
    turned = canvas
    if angle_deg:
        turned = canvas.rotate(angle_deg, Image.Resampling.BILINEAR, expand=True)
    middle, turned_middle = ((np.array(size) - 1) / 2 for size in (canvas.size, turned.size))
    cos, sin = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    back = np.array([[cos, -sin], [sin, cos]])
    factor = np.array(picture.size) / (width, height)
    faces = []
    for face in detect([np.asarray(turned)], MIN_CANDIDATE)[0]:
        on_canvas = (face.landmarks - turned_middle) @ back.T + middle
        faces.append(Face((on_canvas - (x, y) + 0.5) * factor - 0.5, face.score))
    return faces


def _refine(picture: Image.Image, face: Face) -> Face | None:
    """Detect a face again in small views until its place settles, then in large ones.

    Returns None if none of the views shows it.
    """
    for _ in range(MAX_ROUNDS):
        seen = _detect_in_views(picture, face, SMALL_VIEWS)
        if seen is None:
            return None
        moved_px = _distance(seen.landmarks, face.landmarks) * face.to_frame.scale
        face = seen
        if moved_px < SETTLED_PX:
            break
    return _detect_in_views(picture, face, LARGE_VIEWS)


def _is_upright(picture: Image.Image, face: Face) -> bool:
    """Return whether a face does not look surer upside down."""
    if face.score >= UPRIGHT:
        return True
    for middle in (face.centre, face.landmarks.mean(axis=0)):
        other = _refine(picture, Face(2 * middle - face.landmarks, face.score))
        if other is not None and other.score >= face.score:
            return False
    return True


def _detect_in_views(picture: Image.Image, face: Face, views: Sequence[View]) -> Face | None:
    """Detect a face again in upright views of it, and in their mirror images, by one call.

    Returns:
        The mean of what the views show, None if none shows the face. Where only some of them do,
        the others lower the score.
    """
    cut = [warp(picture, centred_square(face.to_frame, FRAME_PX, *view), view[1]) for view in views]
    both = [image for view in cut for image in (view, view[:, ::-1])]
    landmarks, scores = [], []
    for number, detections in enumerate(detect(both, MIN_CANDIDATE / 2)):
        scale, side_px = views[number // 2]
        points = np.array([face.landmarks for face in detections]).reshape(-1, 5, 2)
        if number % 2:
            points = ((side_px - 1, 0) - points * (1, -1))[:, MIRRORED]
        in_frame = (points - (side_px - 1) / 2) / scale + (FRAME_PX - 1) / 2
        distances = np.linalg.norm(in_frame - TEMPLATE, axis=2).mean(axis=1)
        nearest = int(distances.argmin()) if len(distances) else 0
        if len(distances) and distances[nearest] <= MAX_VIEW_ERROR_PX:
            landmarks.append(in_frame[nearest])
            scores.append(detections[nearest].score)
    if not landmarks:
        return None
    score = float(np.sum(scores)) / len(both)
    return Face(face.to_frame.inverse()(np.mean(landmarks, axis=0)), score)


def _distance(left: Points, right: Points) -> float:
    return float(np.linalg.norm(left - right, axis=1).mean())


def _distinct(faces: list[Face]) -> list[Face]:
    """Return the surest of each group of overlapping faces, the surest first; MAX_FACES at most."""
    kept: list[Face] = []
    for face in sorted(faces, key=lambda face: -face.score):
        if len(kept) < MAX_FACES and not any(_overlap(face, other) for other in kept):
            kept.append(face)
    return kept


def _overlap(face: Face, other: Face) -> bool:
    distance = np.linalg.norm(face.centre - other.centre)
    return bool(distance <= MIN_DISTANCE * min(face.side_px, other.side_px))
