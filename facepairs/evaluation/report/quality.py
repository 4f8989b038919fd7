"""Errors by properties of the photos: light, sharpness, colour and size.

A pair counts by its worse photo: the darker, the blurrier, the grayer, the smaller of the two, as
the network sees them. Groups are thirds of all pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.metrics.rates import ErrorRates, error_rates
from facepairs.evaluation.report.photos import open_crop
from facepairs.faces.hints import brightness, gray_of, sharpness
from facepairs.images.crop import CropSpec
from facepairs.support.parallel import thread_map
from facepairs.support.progress import ProgressCallback, ignore_progress


class Measure(NamedTuple):
    """A property of photos, lower is worse: its name, its unit, and names of both ends."""

    name: str
    unit: str
    worst: str
    best: str


MEASURES = (
    Measure("light", "mean gray level", "darkest", "brightest"),
    Measure("sharpness", "gradient relative to half size", "blurriest", "sharpest"),
    Measure("colour", "mean saturation", "grayest", "most colourful"),
    Measure("size", "side of the crop in the photo, in pixels", "smallest", "largest"),
)


@dataclass(frozen=True, kw_only=True)
class QualityErrors(ErrorRates):
    """Errors in one third of the pairs by one measure.

    `third` is 0 for the worst; `low` and `high` are the values of its pairs.
    """

    measure: str
    unit: str
    third: int
    label: str
    low: float
    high: float


def photo_quality(path: Path, crop_spec: CropSpec, aligned: bool) -> Floats:
    """Return the MEASURES of a photo, float64[4], of the crop that the network sees.

    Light and colour are 0 to 1, sharpness is that of `faces.hints`.

    Raises:
        BadImage: The photo cannot be read, or no face is found.
    """
    crop, side_px = open_crop(path, crop_spec, aligned)
    gray = gray_of(crop)
    saturation = crop.max(axis=2) - crop.min(axis=2)
    return np.array([brightness(gray), sharpness(gray), saturation.mean() / 255, side_px])


def photo_qualities(
    paths: Mapping[str, Path],
    crop_spec: CropSpec,
    aligned: bool,
    progress: ProgressCallback = ignore_progress,
) -> dict[str, Floats]:
    """Measure the quality of photos, in threads.

    Args:
        paths: The photos by name.
        crop_spec: Which square of a photo is measured.
        aligned: Whether it is cut out of the frame of the most prominent face.
        progress: Called with the photos done and all photos.

    Returns:
        float64[measures] by name.

    Raises:
        BadImage: A photo cannot be read, or no face is found.
    """
    qualities = {}
    measure = partial(photo_quality, crop_spec=crop_spec, aligned=aligned)
    measured = thread_map(measure, paths.values())
    for name, values in zip(paths, measured, strict=True):
        qualities[name] = values
        progress(len(qualities), len(paths))
    return qualities


def worse_of_pairs(
    left: Sequence[str], right: Sequence[str], qualities: Mapping[str, Floats]
) -> Floats:
    """Return the qualities of each pair's worse photo: float64[pairs, measures].

    Args:
        left: Photo names of the pairs.
        right: Photo names of the pairs.
        qualities: float64[measures] of each photo, higher is better.
    """
    return np.array(
        [np.minimum(qualities[a], qualities[b]) for a, b in zip(left, right, strict=True)]
    )


def errors_by_quality(genuine: Bools, accepted: Bools, worse: Floats) -> list[QualityErrors]:
    """Count errors in the thirds of each measure.

    A measure in which the photos do not differ has no rows, nor has a third that lacks a class.

    Args:
        genuine: bool[N].
        accepted: bool[N], the decisions.
        worse: float64[N, measures], as from `worse_of_pairs`.
    """
    rows = []
    for measure, value in zip(MEASURES, worse.T, strict=True):
        if value.min() == value.max():
            continue
        third_of = np.searchsorted(np.quantile(value, [1 / 3, 2 / 3]), value)
        for third, label in enumerate((measure.worst, "middle", measure.best)):
            members = third_of == third
            if len(np.unique(genuine[members])) < 2:
                continue
            rates = error_rates(genuine[members], accepted[members])
            rows.append(
                QualityErrors(
                    **vars(rates),
                    measure=measure.name,
                    unit=measure.unit,
                    third=third,
                    label=label,
                    low=float(value[members].min()),
                    high=float(value[members].max()),
                )
            )
    return rows
