"""What is known of all photos of an index, as flat arrays."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.faces.alignment import fit_crops
from facepairs.faces.detector import DETECTOR
from facepairs.faces.face_problem import face_problem, large_enough
from facepairs.faces.photo_record import PhotoRecord
from facepairs.images.crop import CropSpec
from facepairs.images.crop_plan import ALIGNMENTS, CropPlan


@dataclass(frozen=True, eq=False)
class PhotoTable:
    """The photos of an index, in its order.

    Attributes:
        plain_px: int32[N, 2], as `CropPlan` has it.
        landmarks: float32[N, 5, 2], of the most prominent face that is large enough, in pixels of
            the upright photo; NaN where there is none; None if faces were not looked for.
        faces: int32[N], how many faces a photo shows.
        content: int64[N], the first bytes of each file's SHA-256, as `FaceIndex` has them.
        problems: The problem of each photo that cannot be used, and the problem in words.
    """

    plain_px: npt.NDArray[np.int32]
    landmarks: npt.NDArray[np.float32] | None
    faces: npt.NDArray[np.int32]
    content: npt.NDArray[np.int64]
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
        plain_px, faces = np.zeros((photos, 2), np.int32), np.zeros(photos, np.int32)
        content = np.zeros(photos, np.int64)
        landmarks = np.full((photos, 5, 2), np.nan, np.float32)
        problems: dict[int, tuple[str, str]] = {}
        for number, record in enumerate(records):
            content[number] = record.content
            if record.plain:
                plain_px[number] = record.height_px, record.width_px
            if record.problem:
                problems[number] = record.problem, record.reason
            elif align == "landmarks":
                found = record.found
                if problem := face_problem(found):
                    problems[number] = problem
                else:
                    faces[number] = len(found)
                    landmarks[number] = large_enough(found)[0].landmarks
        return cls(plain_px, landmarks if align == "landmarks" else None, faces, content, problems)

    def __len__(self) -> int:
        return len(self.plain_px)

    def without(self, images: Iterable[int]) -> "PhotoTable":
        """Return the table without some photos, as `FaceIndex.without` does."""
        kept = np.delete(np.arange(len(self)), list(images))
        landmarks = None if self.landmarks is None else self.landmarks[kept]
        old = enumerate(kept.tolist())
        problems = {new: self.problems[image] for new, image in old if image in self.problems}
        faces, content = self.faces[kept], self.content[kept]
        return PhotoTable(self.plain_px[kept], landmarks, faces, content, problems)

    def crop_plan(self, spec: CropSpec, align: Align) -> CropPlan:
        """Return how every photo is cropped.

        Args:
            spec: What a network sees.
            align: Crops are cut out of the canonical frame, or out of the whole photo.

        Raises:
            ValueError: `align` is `landmarks`, but faces were not looked for.
        """
        if align == "none":
            return CropPlan(spec, self.plain_px, None, ALIGNMENTS[align])
        if self.landmarks is None:
            raise ValueError("alignment needs landmarks; inspect the photos with them")
        to_crop = fit_crops(self.landmarks, spec)
        return CropPlan(spec, self.plain_px, to_crop, ALIGNMENTS[align], DETECTOR)
