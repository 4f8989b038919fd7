"""`Verifier.verify_pairs`: pairs in a data frame, without an import of pandas."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadConfig
from facepairs.support.progress import ProgressCallback

if TYPE_CHECKING:
    from facepairs.verification.verifier import Verifier


class PairFrame(Protocol):
    """What is used of a pandas DataFrame."""

    def __getitem__(self, column: str, /) -> Any: ...
    def assign(self, **columns: Any) -> Any: ...


Frame = TypeVar("Frame", bound=PairFrame)


def verify_frame(
    verifier: "Verifier",
    pairs: Frame,
    point: OperatingPoint,
    prior: float,
    progress: ProgressCallback | None,
) -> Frame:
    """Return the frame with the columns score, probability, same and error."""
    if not {"left", "right"} <= set(getattr(pairs, "columns", ())):
        raise BadConfig(
            f"pairs is a {type(pairs).__name__} without the columns left and right; give a pandas "
            "DataFrame of paths that has them"
        )
    names = [str(path) for side in ("left", "right") for path in pairs[side]]
    paths, numbers = np.unique(names, return_inverse=True)
    left, right = np.split(numbers, 2)
    problems: dict[int, str] = {}
    scores = verifier.score_images([*map(Path, paths)], left, right, progress, errors=problems)
    columns: dict[str, list[Any]] = {"score": scores.tolist()}
    verdicts = [
        None if math.isnan(score) else verifier.verdict(score, point, prior)
        for score in columns["score"]
    ]
    for name in ("probability", "same"):
        columns[name] = [getattr(verdict, name, None) for verdict in verdicts]
    sides = zip(left.tolist(), right.tolist(), strict=True)
    columns["error"] = [problems.get(a) or problems.get(b, "") for a, b in sides]
    frame: Frame = pairs.assign(**columns)
    return frame
