"""What all objectives on embeddings share: one signature, and a few operations on a batch.

`loss(left, right, genuine, left_person, right_person)` → scalar float32. `left`, `right`
float32[B, D] are embeddings of length 1; `genuine` float32[B] is 1 where a pair shows one person,
else 0; `left_person`, `right_person` int32[B] number the people trained on from 0, so two numbers
are equal just where the images show one person. A loss is 0 where a batch holds nothing to learn
from, and its gradient is finite for any embeddings, equal and opposite ones included.
"""

from typing import Any

import keras
from keras import ops

FARTHEST = 4.0  # squared distance of two points on the unit sphere, at most
NEVER = -1e9  # a logit that takes no part in a softmax


class PairLoss(keras.Layer):  # type: ignore[misc]
    """An objective on pairs of embeddings, computed in float32 whatever the network computes in.

    Its weights, where it has any, are trained and saved with the network's and never exported.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})


def cosines(a: Any, b: Any) -> Any:
    """Compare all with all: float32[N, D], float32[M, D] of length 1 → float32[N, M]."""
    return ops.matmul(a, ops.transpose(b))


def squared_distances(a: Any, b: Any) -> Any:
    """Give the squared Euclidean distances of all with all: float32[N, M] from 0 to 4."""
    return ops.relu(2 - 2 * cosines(a, b))


def one_person(a: Any, b: Any) -> Any:
    """Say which of two lists of people are the same: int32[N], int32[M] → bool[N, M]."""
    return ops.equal(a[:, None], b[None, :])


def itself(rows: Any) -> Any:
    """Mark the diagonal: whatever[N, …] → bool[N, N]."""
    at = ops.arange(ops.shape(rows)[0], dtype="int32")
    return ops.equal(at[:, None], at[None, :])


def mean_where(values: Any, chosen: Any) -> Any:
    """Average the chosen of finite values; 0 where none is."""
    weights = ops.cast(chosen, values.dtype)
    return ops.sum(values * weights) / ops.maximum(ops.sum(weights), 1.0)


def mean_of_kinds(genuine: Any, impostor: Any, left_person: Any, right_person: Any) -> Any:
    """Weigh both kinds equally: half the mean over genuine pairs, half that over impostor ones.

    The pairs are all (left i, right j): `genuine` and `impostor` float32[B, B] say what each would
    cost as one of that kind, the people's numbers say which it is. So a batch of genuine pairs
    alone has its impostors off the diagonal. A kind that does not occur costs nothing.
    """
    same = one_person(left_person, right_person)
    apart = ops.logical_not(same)
    return 0.5 * (mean_where(genuine, same) + mean_where(impostor, apart))
