"""What is known of all photos of an index, as flat arrays."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.faces.alignment import fit_similarities, to_crops
from facepairs.faces.detector import DETECTOR
from facepairs.faces.face_problem import face_problem
from facepairs.faces.photo_record import PhotoRecord
from facepairs.images.crop import CropSpec
from facepairs.images.crop_plan import ALIGNMENTS, CropPlan


@dataclass(frozen=True, eq=False)
class PhotoTable:
    """The photos of an index, in its order.

    Attributes:
        plain: bool[N], whether TensorFlow decodes the file exactly as Pillow does.
        landmarks: float32[N, 5, 2], of the most prominent face in pixels of the upright photo, NaN
            where there is none; None if faces were not looked for.
        faces: int32[N], how many faces a photo shows.
        scores: float32[N], the most prominent face's certainty, 0 where there is none.
        problems: The problem of each photo that cannot be used, and the problem in words.
    """

    plain: npt.NDArray[np.bool_]
    landmarks: npt.NDArray[np.float32] | None
    faces: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    problems: dict[int, tuple[str, str]]

    @classmethod
    def of(cls, records: Iterable[PhotoRecord], photos: int, align: Align) -> "PhotoTable":
        """Collect the records of an index.

        Args:
            records: One record of each photo, in order.
            photos: How many there are.
            align: With `landmarks`, a photo without a face, or with too small a one, cannot be
                used; without, no faces are reported, even where a record has some.
        """
        plain, faces = np.zeros(photos, np.bool_), np.zeros(photos, np.int32)
        landmarks = np.full((photos, 5, 2), np.nan, np.float32)
        scores, problems = np.zeros(photos, np.float32), {}
        for number, record in enumerate(records):
            plain[number] = record.plain
            if record.problem:
                problems[number] = record.problem, record.reason
            elif align == "landmarks":
                face = record.face
                if problem := face_problem([face] if face else []):
                    problems[number] = problem
                elif face:
                    faces[number] = len(record.faces or ())
                    landmarks[number], scores[number] = face.landmarks, face.score
        return cls(plain, landmarks if align == "landmarks" else None, faces, scores, problems)

    def __len__(self) -> int:
        return len(self.plain)

    def keep(self, images: npt.NDArray[np.integer[Any]]) -> "PhotoTable":
        """Return the table of some photos, int[M], in that order."""
        landmarks = None if self.landmarks is None else self.landmarks[images]
        old = enumerate(images.tolist())
        problems = {new: self.problems[image] for new, image in old if image in self.problems}
        return PhotoTable(
            self.plain[images], landmarks, self.faces[images], self.scores[images], problems
        )

    def without(self, images: Iterable[int]) -> "PhotoTable":
        """Return the table without some photos, as `FaceIndex.without` does."""
        return self.keep(np.delete(np.arange(len(self)), list(images)))

    def crop_plan(self, spec: CropSpec, align: Align) -> CropPlan:
        """Return how every photo is cropped.

        Args:
            spec: What a network sees.
            align: Crops are cut out of the canonical frame, or out of the whole photo.

        Raises:
            ValueError: `align` is `landmarks`, but faces were not looked for.
        """
        if align == "none":
            return CropPlan(spec, self.plain, None, ALIGNMENTS[align])
        if self.landmarks is None:
            raise ValueError("alignment needs landmarks; inspect the photos with them")
        to_crop = to_crops(fit_similarities(self.landmarks), spec)
        return CropPlan(spec, self.plain, to_crop, ALIGNMENTS[align], DETECTOR)
