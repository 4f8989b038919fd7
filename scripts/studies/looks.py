"""What `Verifier.detect` makes of a photo that was changed: one row per photo, resumable."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from pictures import (
    COVERED,
    QUARTERS_DEG,
    Picture,
    Pixels,
    Points,
    cover,
    make_scene,
    turn_by_quarters,
    turned,
)
from PIL import Image

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage
from facepairs.photos.crop import CropSpec, load_crop, warp
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.frame import FRAME_PX, fit_crop
from facepairs.support import console
from facepairs.support.atomic import atomic_file
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.verifier import Verifier

WHOLE = CropSpec(FRAME_PX, FRAME_PX)
JPEG_QUALITY = 95
SAME_FACE = 0.25  # landmark error, in eye distances, up to which a face is the one looked for
PHOTOS_A_PART = 50


class Row(msgspec.Struct, kw_only=True):
    """What was found in one picture; the error is None where no face was found."""

    photo: int
    kind: str
    scale: float
    turn_deg: float
    background: str
    faces: int = 0
    reason: str = ""
    error: float | None = None
    best_error: float | None = None
    embedding: list[float] | None = None
    by_truth: list[float] | None = None


class Study:
    """The photos of View 1's test people, and how each is changed and looked at.

    Args:
        index: LFW.
        photos: int64[N], the chosen images by rising number.
        verifier: Of a bundle with embeddings, trained on aligned faces.
        seed: Of scenes, and of the photos that are changed in other ways.
        changed: Number of photos that are changed in other ways than by a scene.
    """

    def __init__(
        self,
        index: FaceIndex,
        photos: npt.NDArray[np.int64],
        verifier: Verifier,
        seed: int,
        changed: int,
    ) -> None:
        self.index, self.photos, self.verifier, self.seed = index, photos, verifier, seed
        order = np.random.Generator(np.random.Philox(key=seed)).permutation(len(photos))
        self.changed = set(order[:changed].tolist())

    def rows(self, number: int) -> list[Row]:
        """Look at a photo, and at all that is made of it."""
        path = self.index.path(int(self.photos[number]))
        photo = load_crop(path, WHOLE)
        try:
            direct = self.verifier.detect(path, every=False)[0]
        except BadImage as error:
            whole = Picture(photo, turned(1, 0, 0, 0))
            return [self._row(number, "LFW's photo", whole, reason=error.kind)]
        assert direct.face is not None
        marks = direct.face.landmarks
        embedding = self._embed(direct.crop)
        rows = [
            Row(photo=number, kind="LFW's photo", scale=1, turn_deg=0, background="",
                faces=direct.faces or 0, error=0.0, best_error=0.0, embedding=embedding)
        ]  # fmt: skip
        other = self.photos[(number + 7) % len(self.photos)]
        for kind, picture in self._pictures(number, photo, int(other), marks):
            rows.append(self._look(number, kind, picture, marks))
        return rows

    def _pictures(
        self, number: int, photo: Pixels, other: int, marks: Points
    ) -> Iterator[tuple[str, Picture]]:
        beside = load_crop(self.index.path(other), WHOLE)
        yield "scene", make_scene(photo, beside, "scene", self.seed, number)
        if number in self.changed:
            yield "steep scene", make_scene(photo, beside, "steep scene", self.seed, number)
            for angle in QUARTERS_DEG:
                yield f"turned {angle}", turn_by_quarters(photo, angle)
            for kind in COVERED:
                yield kind, cover(photo, marks, kind)

    def _look(self, number: int, kind: str, picture: Picture, marks: Points) -> Row:
        buffer = BytesIO()
        Image.fromarray(picture.image).save(buffer, "JPEG", quality=JPEG_QUALITY)
        truth = picture.place(marks)
        row = self._row(number, kind, picture)
        if "scene" in kind:
            spec = self.verifier.model.framing
            crop = warp(Image.fromarray(picture.image), fit_crop(truth, spec), spec.crop_px)
            row.by_truth = self._embed(crop)
        try:
            face = self.verifier.detect(buffer.getvalue(), every=False)[0]
        except BadImage as error:
            row.reason = error.kind
            return row
        row.faces, row.embedding = face.faces or 0, self._embed(face.crop)
        row.error = row.best_error = landmark_error(face, truth)
        if row.error > SAME_FACE:
            found = self.verifier.detect(buffer.getvalue())
            row.best_error = min(row.error, *(landmark_error(one, truth) for one in found))
        return row

    def _row(self, number: int, kind: str, picture: Picture, reason: str = "") -> Row:
        return Row(
            photo=number,
            kind=kind,
            scale=round(picture.scale, 4),
            turn_deg=round(picture.turn_deg, 2),
            background=picture.background,
            reason=reason,
        )

    def _embed(self, crop: Pixels) -> list[float]:
        return self.verifier.scorer.represent(crop[None])[0].tolist()


def landmark_error(face: FaceSample, truth: Points) -> float:
    """Return the mean distance of five landmarks from the true ones, in true eye distances."""
    assert face.face is not None
    distances = np.linalg.norm(face.face.landmarks - truth, axis=1)
    return float(distances.mean() / np.linalg.norm(truth[1] - truth[0]))


def all_rows(study: Study, folder: Path) -> list[Row]:
    """Return the rows of all photos; those of an earlier run come from its files."""
    rows: list[Row] = []
    tick, count = console.progress("photos"), len(study.photos)
    for numbers in batches(range(count), PHOTOS_A_PART):
        part = folder / f"{numbers[0]:06}.msgpack"
        if part.exists():
            rows += msgspec.msgpack.decode(part.read_bytes(), type=list[Row])
        else:
            made = [row for one in thread_map(study.rows, numbers) for row in one]
            with atomic_file(part, "wb") as handle:
                handle.write(msgspec.msgpack.encode(made))
            rows += made
        tick(numbers[-1] + 1, count)
    return rows
