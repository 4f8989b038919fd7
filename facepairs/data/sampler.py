"""Pairs drawn at random as a pure function of (seed, epoch, block): no hidden state.

Every pair has a row of raw 64-bit words of its own from the counter-based generator Philox
(Salmon et al., *Parallel Random Numbers: As Easy as 1, 2, 3*, SC 2011). NumPy may change how its
distributions use a stream, but never the raw words, so the mapping to people and images is done
here and the same seed gives the same pairs everywhere. Resuming at any block, or dealing blocks out
to several workers, gives the very same pairs.

People are drawn first, then images: otherwise one person with 530 photos makes up most of the
genuine pairs of LFW.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from facepairs.data.pairs import PairList
from facepairs.errors import BadConfig, NotEnough
from facepairs.support.random_streams import Stream, raw_words, unit

WORDS_A_PAIR = 5
BLOCK_PAIRS = 1024


def _pick(u: npt.NDArray[np.float64], count: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return np.asarray(np.floor(u * np.asarray(count)), np.int64)


def _other(
    first: npt.NDArray[np.int64], u: npt.NDArray[np.float64], count: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Draw from 0 … count-1 without `first`."""
    second = _pick(u, np.asarray(count) - 1)
    return second + (second >= first)


class Sampler(Protocol):
    """What training draws its pairs from."""

    def block(self, epoch: int, block: int, size: int) -> PairList:
        """Give the first `size` pairs of a block: a pure function of the three numbers."""
        ...


class PairSampler:
    """Draws genuine and impostor pairs in blocks.

    `first` int64[P + 1]: where each person's images begin (FaceIndex.first). `people`: the person
    numbers that may occur. `genuine_share` in [0, 1]: the chance that a pair is genuine. Raises
    NotEnough when the people allowed cannot form the pairs asked for.
    """

    def __init__(
        self,
        first: npt.NDArray[np.int64],
        people: npt.ArrayLike,
        seed: int,
        genuine_share: float = 0.5,
    ) -> None:
        if not 0 <= genuine_share <= 1:
            raise BadConfig(f"genuine_share is {genuine_share}; use a number from 0 to 1")
        self._first = first
        self._counts = np.diff(first)
        self.people = np.unique(np.asarray(people, np.int64))
        self.several = self.people[self._counts[self.people] >= 2]
        self.seed = seed
        self.genuine_share = genuine_share
        raw_words(seed, Stream.PAIRS, 0, 0, 1)
        if genuine_share > 0 and not len(self.several):
            raise NotEnough(
                f"genuine pairs need people with 2 photos or more; none of the {len(self.people)} "
                "people has them; add photos"
            )
        if genuine_share < 1 and len(self.people) < 2:
            raise NotEnough(
                f"impostor pairs need 2 people or more, not {len(self.people)}; add people"
            )

    def block(self, epoch: int, block: int, size: int) -> PairList:
        """Give `size` pairs; a smaller block is the beginning of a larger one of the same number.

        `epoch` and `block` are non-negative; work grows with `size` only, not with the images.
        """
        words = raw_words(self.seed, Stream.PAIRS, epoch, block, WORDS_A_PAIR * size)
        u = unit(words.reshape(size, WORDS_A_PAIR).T)
        genuine = u[0] < self.genuine_share
        left, right = self._impostors(u[1:]) if self.genuine_share < 1 else self._genuine(u[1:])
        if genuine.any() and self.genuine_share < 1:
            left[genuine], right[genuine] = self._genuine(u[1:, genuine])
        return PairList.of(left, right, genuine)

    def _genuine(self, u: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], ...]:
        person = self.several[_pick(u[0], len(self.several))]
        count = self._counts[person]
        left = _pick(u[1], count)
        right = _other(left, u[2], count)
        return self._first[person] + left, self._first[person] + right

    def _impostors(self, u: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], ...]:
        left = _pick(u[0], len(self.people))
        right = _other(left, u[1], len(self.people))
        return tuple(
            self._first[person] + _pick(v, self._counts[person])
            for person, v in ((self.people[left], u[2]), (self.people[right], u[3]))
        )

    def blocks(self, epoch: int, size: int, start: int = 0) -> Iterator[PairList]:
        """Yield the blocks of an epoch without end, from number `start` on."""
        block = start
        while True:
            yield self.block(epoch, block, size)
            block += 1


STREAMS = (Stream.PEOPLE_WITH_SEVERAL_PHOTOS, Stream.PEOPLE_WITH_ONE_PHOTO)


class DistinctPeopleSampler:
    """Draws genuine pairs so that no person occurs twice in a batch: what in-batch losses need.

    `several_share` of a batch are people with two photos or more (0: as many as there are among
    all). Either kind is gone through in passes, each in a new order; who does not fill a last batch
    waits for the next pass. A person with one photo gives that photo twice: only here may an image
    meet itself, and training then augments the two differently. `batch_size` is at most the number
    of people; blocks are of `block_pairs(batch_size)` pairs. Raises NotEnough where nobody has two
    photos.
    """

    def __init__(
        self,
        first: npt.NDArray[np.int64],
        people: npt.ArrayLike,
        seed: int,
        batch_size: int,
        several_share: float = 0.0,
    ) -> None:
        self._first = first
        self._counts = np.diff(first)
        self.people = np.unique(np.asarray(people, np.int64))
        self.batch_size = min(batch_size, len(self.people))
        self.seed = seed
        if not (self._counts[self.people] >= 2).any() or len(self.people) < 2:
            raise NotEnough(
                f"training needs 2 people or more, and one with 2 photos; of {len(self.people)} "
                "people none has; add photos"
            )
        several = self._counts[self.people] >= 2
        share = several_share or float(several.mean())
        fitting = max(round(share * self.batch_size), self.batch_size - int((~several).sum()))
        self._kinds = [(self.people[several], min(fitting, int(several.sum())))]
        self._kinds.append((self.people[~several], self.batch_size - self._kinds[0][1]))
        self._passes: dict[int, tuple[int, int, npt.NDArray[np.int64]]] = {}  # the last of each

    def block(self, epoch: int, block: int, size: int) -> PairList:
        """Give `size` genuine pairs, a multiple of the batch size, as PairSampler.block does."""
        per_block = block_pairs(self.batch_size) // self.batch_size
        batches = range(block * per_block, block * per_block + -(-size // self.batch_size))
        person = np.concatenate([self._batch(epoch, batch) for batch in batches])[:size]
        words = raw_words(self.seed, Stream.PHOTOS_OF_DISTINCT_PEOPLE, epoch, block, 2 * size)
        u = unit(words.reshape(size, 2).T)
        count = self._counts[person]
        left = _pick(u[0], count)
        right = np.where(count > 1, _other(left, u[1], np.maximum(count, 2)), left)
        first = self._first[person]
        return PairList.of(first + left, first + right, np.ones(size, bool))

    def _batch(self, epoch: int, batch: int) -> npt.NDArray[np.int64]:
        """Give the people of one batch: of either kind a slice of its pass's order."""
        chosen = []
        for kind, (people, wanted) in enumerate(self._kinds):
            if wanted:
                turn, slot = divmod(batch, len(people) // wanted)
                order = self._order(kind, epoch, turn, len(people))
                chosen.append(people[order[slot * wanted : (slot + 1) * wanted]])
        return np.concatenate(chosen)

    def _order(self, kind: int, epoch: int, turn: int, people: int) -> npt.NDArray[np.int64]:
        """Give a pass's order; kept for the next batch, since making it takes longer the more."""
        kept = self._passes.get(kind)
        if kept is None or kept[:2] != (epoch, turn):
            words = raw_words(self.seed, STREAMS[kind], epoch, turn, people)
            kept = self._passes[kind] = (epoch, turn, np.argsort(words, kind="stable"))
        return kept[2]


def block_pairs(batch_size: int) -> int:
    """Give the size of a training block: about 1,024 pairs, whole batches."""
    return batch_size * max(1, BLOCK_PAIRS // batch_size)


def distinct_pairs(
    first: npt.NDArray[np.int64], people: npt.ArrayLike, pairs: int, seed: int
) -> PairList:
    """Draw up to `pairs` distinct unordered pairs for measuring, half genuine, half impostor.

    Where the people cannot form that many of one kind, all that exist are taken. People come first
    here too, so no one's photos dominate. Raises NotEnough as PairSampler does.
    """
    allowed = np.unique(np.asarray(people, np.int64))
    counts = np.diff(first)[allowed]
    total = int(counts.sum())
    possible_genuine = int((counts * (counts - 1) // 2).sum())
    possible_impostor = total * (total - 1) // 2 - possible_genuine
    half = (pairs + 1) // 2
    parts = [
        _distinct(PairSampler(first, allowed, seed, share), half, possible)
        for share, possible in ((1.0, possible_genuine), (0.0, possible_impostor))
    ]
    return PairList.of(
        np.concatenate([p.left for p in parts]),
        np.concatenate([p.right for p in parts]),
        np.concatenate([p.genuine for p in parts]),
    )


def _distinct(sampler: PairSampler, wanted: int, possible: int) -> PairList:
    """Collect distinct pairs in the order drawn; stop when drawing brings (almost) none."""
    target = min(wanted, possible)
    left = right = genuine = np.empty(0, np.int64)
    for epoch in range(200):
        drawn = sampler.block(epoch, 0, max(64, 2 * target))
        left = np.concatenate([left, np.minimum(drawn.left, drawn.right)])
        right = np.concatenate([right, np.maximum(drawn.left, drawn.right)])
        genuine = np.concatenate([genuine, drawn.genuine])
        _, at = np.unique(left << 32 | right, return_index=True)
        at = np.sort(at)[:target]
        left, right, genuine = left[at], right[at], genuine[at]
        if len(left) == target:
            break
    return PairList.of(left, right, genuine)
