"""Errors by person: whose pairs go wrong most often."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from facepairs.evaluation.metrics import Bools


def person_of(name: str) -> str:
    """Give the person that an image's path below the data folder belongs to, its folder."""
    return name.replace("\\", "/").rpartition("/")[0]


def errors_by_person(
    left: Sequence[str], right: Sequence[str], genuine: Bools, accepted: Bools, most: int = 20
) -> dict[str, Any]:
    """Count each person's pairs and errors; gives a dict ready for JSON.

    `rows` are the people with most errors (then by share, then by name), at most `most`: `person`,
    `genuine_pairs`, `false_rejects`, `impostor_pairs`, `false_accepts`, `errors`, `error_share`. An
    impostor pair counts for both its people. `people` and `people_with_errors` are counts;
    `half_of_errors_on` is the least number of people who have part in half of the wrong pairs or
    more, taken in that order (None without errors).
    """
    sides = [[person_of(name) for name in side] for side in (left, right)]
    names, numbers = np.unique(np.array(sides, object).astype(str), return_inverse=True)
    one, other = numbers.reshape(2, -1)
    wrong = accepted != genuine
    counts = {}
    for key, chosen in (
        ("genuine_pairs", genuine),
        ("false_rejects", genuine & wrong),
        ("impostor_pairs", ~genuine),
        ("false_accepts", ~genuine & wrong),
    ):
        both = np.concatenate([one[chosen], other[chosen & (one != other)]])
        counts[key] = np.bincount(both, minlength=len(names))
    errors = counts["false_rejects"] + counts["false_accepts"]
    share = errors / (counts["genuine_pairs"] + counts["impostor_pairs"])
    order = np.lexsort((np.arange(len(names)), -share, -errors))
    rows = [
        {
            "person": str(names[k]),
            **{key: int(values[k]) for key, values in counts.items()},
            "errors": int(errors[k]),
            "error_share": float(share[k]),
        }
        for k in order[:most].tolist()
        if errors[k]
    ]
    return {
        "rows": rows,
        "people": len(names),
        "people_with_errors": int((errors > 0).sum()),
        "half_of_errors_on": _half_on(order, one[wrong], other[wrong]),
    }


def _half_on(order: Any, one: Any, other: Any) -> int | None:
    if not len(one):
        return None
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = np.sort(np.minimum(place[one], place[other]))
    return int(first[(len(first) - 1) // 2]) + 1
