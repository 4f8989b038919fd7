"""Errors by what the photos are like: light, sharpness, colour and size.

A pair counts by its worse photo, the darker, the blurrier, the grayer, the smaller one of the two,
as the network sees them. Groups are thirds of all pairs.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.evaluation.metrics import Bools, Floats, fmr_fnmr
from facepairs.faces.hints import gray_of, light, sharpness
from facepairs.images.photo import Framing, load_crop


class Measure(NamedTuple):
    """A quality of photos, lower is worse: its name, its unit, and what its ends are called."""

    name: str
    unit: str
    worst: str
    best: str


MEASURES = (
    Measure("light", "mean gray level", "darkest", "brightest"),
    Measure("sharpness", "gradient against half the size", "blurriest", "sharpest"),
    Measure("colour", "mean saturation", "grayest", "most colourful"),
    Measure("size", "shorter side in pixels", "smallest", "largest"),
)


def photo_quality(path: Path, framing: Framing) -> Floats:
    """Give a photo's MEASURES in their order, float64[4], of the crop that the network sees.

    Light and colour are 0 … 1, sharpness as `verification.quality` measures it; the size is that of
    the whole photo, in pixels. Raises BadImage by name.
    """
    crop = load_crop(path, framing)
    gray = gray_of(crop)
    red, green, blue = (crop[..., channel] for channel in range(3))
    highest = np.maximum(np.maximum(red, green), blue)
    saturation = highest - np.minimum(np.minimum(red, green), blue)
    with Image.open(path) as image:
        size_px = min(image.size)
    return np.array([light(gray), sharpness(gray), saturation.mean() / 255, size_px])


def photo_qualities(
    paths: Mapping[str, Path],
    framing: Framing,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Floats]:
    """Measure photos in threads, by name; raises BadImage for one that cannot be read."""
    found = {}
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        measured = pool.map(lambda path: photo_quality(path, framing), paths.values())
        for name, values in zip(paths, measured, strict=True):
            found[name] = values
            if progress:
                progress(len(found), len(paths))
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def worse_of_pairs(
    left: Sequence[str], right: Sequence[str], qualities: Mapping[str, Floats]
) -> Floats:
    """Give each pair's qualities, those of the worse photo: float64[pairs, measures]."""
    return np.array(
        [np.minimum(qualities[a], qualities[b]) for a, b in zip(left, right, strict=True)]
    )


def errors_by_quality(
    genuine: Bools, accepted: npt.NDArray[np.bool_], worse: Floats
) -> list[dict[str, Any]]:
    """Count errors in the thirds of each measure; gives rows ready for JSON.

    `genuine`, `accepted` bool[N], `worse` float64[N, measures]. Each row has `measure`, `unit`,
    `third` (0 the worst), `label`, `low` and `high` (the values of its pairs), `genuine_pairs`,
    `impostor_pairs`, `fmr`, `fmr_interval`, `fnmr`, `fnmr_interval`. A measure in which the photos
    do not differ has no rows, nor has a third that lacks a class.
    """
    rows = []
    for measure, value in zip(MEASURES, worse.T, strict=True):
        cuts = np.quantile(value, [1 / 3, 2 / 3])
        if value.min() == value.max():
            continue
        third = np.searchsorted(cuts, value)
        for part, label in enumerate((measure.worst, "middle", measure.best)):
            mine = third == part
            if len(set(genuine[mine].tolist())) < 2:
                continue
            rates = fmr_fnmr(genuine[mine], accepted[mine], 1.0)
            rows.append(
                {
                    "measure": measure.name,
                    "unit": measure.unit,
                    "third": part,
                    "label": label,
                    "low": float(value[mine].min()),
                    "high": float(value[mine].max()),
                    "genuine_pairs": rates.genuine_pairs,
                    "impostor_pairs": rates.impostor_pairs,
                    "fmr": rates.fmr,
                    "fmr_interval": list(rates.fmr_interval),
                    "fnmr": rates.fnmr,
                    "fnmr_interval": list(rates.fnmr_interval),
                }
            )
    return rows
