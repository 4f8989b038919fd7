"""Training objectives on batches of pairs."""

from typing import Any

from keras import ops


class BinaryLogit:
    """Binary cross-entropy: logits float32[B], genuine float32[B] of 0 and 1 → scalar."""

    def __call__(self, scores: Any, genuine: Any) -> Any:
        # max(x, 0) - x·y + log(1 + exp(-|x|)): no overflow at any score.
        terms = ops.relu(scores) - scores * genuine + ops.log1p(ops.exp(-ops.abs(scores)))
        return ops.mean(terms)


class InBatchContrastive:
    """Every genuine pair must find its partner among all images of the batch, both ways.

    `left` and `right` float32[B, D] of length 1, `genuine` float32[B] of 0 and 1 → scalar. Pairs
    that are not genuine lend their images as further negatives. A batch should show a person once.
    Source: van den Oord, Li, Vinyals, *Representation Learning with Contrastive Predictive Coding*,
    2018; symmetric as in Radford et al., CLIP, 2021.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, left: Any, right: Any, genuine: Any) -> Any:
        logits = ops.matmul(left, ops.transpose(right)) / self.temperature
        own = ops.diagonal(logits)
        missed = 0.5 * (ops.logsumexp(logits, axis=0) + ops.logsumexp(logits, axis=1)) - own
        return ops.sum(missed * genuine) / ops.maximum(ops.sum(genuine), 1.0)
