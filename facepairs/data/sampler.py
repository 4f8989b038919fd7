"""Random pairs as a pure function of (seed, epoch, block): no hidden state.

Every pair has its own row of raw words from `support.random_streams`, so a seed gives the same
pairs everywhere; so do resuming at any block and sharing blocks among workers.

People are drawn first, then images: otherwise one person with 530 photos makes up most of the
genuine pairs of LFW.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from facepairs.data.minimums import limit_pairs_per_person
from facepairs.data.pairs import PairList
from facepairs.errors import NotEnough
from facepairs.support.random_streams import Stream, raw_words, unit
from facepairs.support.words import counted

WORDS_PER_PAIR = 5
BLOCK_PAIRS = 1024
MAX_EPOCHS = 200  # drawn at most, in search of distinct pairs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def _pick(u: Floats, count: npt.ArrayLike) -> Ints:
    """Map numbers in [0, 1) to 0 … count - 1."""
    return np.asarray(np.floor(u * np.asarray(count)), np.int64)


def _pick_other(first: Ints, u: Floats, count: npt.ArrayLike) -> Ints:
    """Map numbers in [0, 1) to 0 … count - 1 without `first`."""
    second = _pick(u, np.asarray(count) - 1)
    return second + (second >= first)


def block_pairs(batch_size: int) -> int:
    """Return the number of pairs in a training block: about 1,024, in whole batches."""
    return batch_size * max(1, BLOCK_PAIRS // batch_size)


class Sampler(Protocol):
    """A source of training pairs."""

    def block(self, epoch: int, block: int, size: int) -> PairList:
        """Return the first `size` pairs of a block: a pure function of the three numbers.

        Args:
            epoch: From 0.
            block: Number of the block within the epoch, from 0.
            size: How many pairs, at most those of a block.
        """
        ...


class PairSampler:
    """Draws genuine and impostor pairs.

    Args:
        first: int64[people + 1], where each person's images begin (`FaceIndex.first`).
        people: int64[P], numbers of the people to draw from.
        seed: From 0 to 2**63 - 1.
        genuine_share: Probability that a pair is genuine, in [0, 1].

    Raises:
        BadConfig: The seed is out of range.
        NotEnough: The people cannot form the pairs.
    """

    def __init__(
        self, first: Ints, people: npt.ArrayLike, seed: int, genuine_share: float = 0.5
    ) -> None:
        self._first = first
        self._counts = np.diff(first)
        self.people = np.unique(np.asarray(people, np.int64))
        self._several = self.people[self._counts[self.people] >= 2]
        self.seed = seed
        self.genuine_share = genuine_share
        raw_words(seed, Stream.PAIRS, 0, 0, 1)  # refuses a seed out of range
        if genuine_share > 0 and not len(self._several):
            raise NotEnough(
                "genuine pairs need people with at least 2 photos, and none of "
                f"{counted(len(self.people), 'person', 'people')} has them; add photos"
            )
        if genuine_share < 1 and len(self.people) < 2:
            raise NotEnough(
                f"impostor pairs need at least 2 people, not {len(self.people)}; add people"
            )

    def block(self, epoch: int, block: int, size: int) -> PairList:
        """Draw the first pairs of a block.

        Args:
            epoch: Non-negative.
            block: Non-negative.
            size: The number of pairs; the time grows with it alone, not with the images.

        Returns:
            `size` pairs; a larger block of the same number begins with the same pairs.
        """
        words = raw_words(self.seed, Stream.PAIRS, epoch, block, WORDS_PER_PAIR * size)
        u = unit(words.reshape(size, WORDS_PER_PAIR).T)
        genuine = u[0] < self.genuine_share
        left, right = self._impostors(u[1:]) if self.genuine_share < 1 else self._genuine(u[1:])
        if genuine.any() and self.genuine_share < 1:
            left[genuine], right[genuine] = self._genuine(u[1:, genuine])
        return PairList.of(left, right, genuine)

    def _genuine(self, u: Floats) -> tuple[Ints, Ints]:
        person = self._several[_pick(u[0], len(self._several))]
        count = self._counts[person]
        left = _pick(u[1], count)
        right = _pick_other(left, u[2], count)
        return self._first[person] + left, self._first[person] + right

    def _impostors(self, u: Floats) -> tuple[Ints, Ints]:
        left = _pick(u[0], len(self.people))
        right = _pick_other(left, u[1], len(self.people))
        return self._any_image(self.people[left], u[2]), self._any_image(self.people[right], u[3])

    def _any_image(self, person: Ints, u: Floats) -> Ints:
        return self._first[person] + _pick(u, self._counts[person])


class ArticleSamplerForComparison(PairSampler):
    """Draws genuine pairs as tutorials do: any person, then two images that may be the same.

    For comparison only: in a folder like LFW most genuine pairs drawn this way pair an image with
    itself, and a network learns from them that "same person" means "same photo". The same seed
    gives the same impostor pairs as `PairSampler`.
    """

    def _genuine(self, u: Floats) -> tuple[Ints, Ints]:
        person = self.people[_pick(u[0], len(self.people))]
        return self._any_image(person, u[1]), self._any_image(person, u[2])


class DistinctPeopleSampler:
    """Draws genuine pairs such that no person occurs twice in a batch, as in-batch losses need.

    People with several photos and people with one photo are each drawn in passes: every pass shows
    each person once, in a new order; people who do not fill a last batch wait for the next pass. A
    person with one photo is paired with the same photo: training then augments the two differently.

    Args:
        first: int64[people + 1], where each person's images begin (`FaceIndex.first`).
        people: int64[P], numbers of the people to draw from.
        seed: From 0 to 2**63 - 1.
        batch_size: Pairs in a batch; at most P are used.
        several_share: Share of a batch with several photos, in (0, 1]; None for their share among
            all people.

    Raises:
        NotEnough: There are fewer than two people, or no person has two photos.
    """

    def __init__(
        self,
        first: Ints,
        people: npt.ArrayLike,
        seed: int,
        batch_size: int,
        several_share: float | None = None,
    ) -> None:
        self._first = first
        self._counts = np.diff(first)
        self.people = np.unique(np.asarray(people, np.int64))
        self.batch_size = min(batch_size, len(self.people))
        self.seed = seed
        several = self._counts[self.people] >= 2
        if not several.any() or len(self.people) < 2:
            raise NotEnough(
                "training needs at least 2 people, one of them with 2 photos; the folder has "
                f"{counted(len(self.people), 'person', 'people')}: add photos"
            )
        share = float(several.mean()) if several_share is None else several_share
        wanted = max(round(share * self.batch_size), self.batch_size - int((~several).sum()))
        wanted = min(wanted, int(several.sum()))
        self._groups = (
            (Stream.PEOPLE_WITH_SEVERAL_PHOTOS, self.people[several], wanted),
            (Stream.PEOPLE_WITH_ONE_PHOTO, self.people[~several], self.batch_size - wanted),
        )
        self._orders: dict[Stream, tuple[tuple[int, int], Ints]] = {}  # the last of each group

    def block(self, epoch: int, block: int, size: int) -> PairList:
        """Draw the first pairs of a block of `block_pairs(batch_size)` pairs.

        Args:
            epoch: Non-negative.
            block: Non-negative.
            size: The number of pairs, a multiple of the batch size.

        Returns:
            `size` genuine pairs; a larger block of the same number begins with the same pairs.
        """
        per_block = block_pairs(self.batch_size) // self.batch_size
        batches = range(block * per_block, block * per_block + -(-size // self.batch_size))
        person = np.concatenate([self._batch_people(epoch, batch) for batch in batches])[:size]
        words = raw_words(self.seed, Stream.PHOTOS_OF_DISTINCT_PEOPLE, epoch, block, 2 * size)
        u = unit(words.reshape(size, 2).T)
        count = self._counts[person]
        left = _pick(u[0], count)
        right = np.where(count > 1, _pick_other(left, u[1], np.maximum(count, 2)), left)
        first = self._first[person]
        return PairList.of(first + left, first + right, np.ones(size, bool))

    def _batch_people(self, epoch: int, batch: int) -> Ints:
        """Return the people of one batch: from each group the next slice of a pass."""
        slices = []
        for stream, people, wanted in self._groups:
            if wanted:
                number, slot = divmod(batch, len(people) // wanted)
                order = self._pass_order(stream, epoch, number, len(people))
                slices.append(people[order[slot * wanted : (slot + 1) * wanted]])
        return np.concatenate(slices)

    def _pass_order(self, stream: Stream, epoch: int, number: int, people: int) -> Ints:
        """Return the order of a pass; the last one is kept, since sorting is slow."""
        key, order = self._orders.get(stream, (None, np.empty(0, np.int64)))
        if key != (epoch, number):
            order = np.argsort(raw_words(self.seed, stream, epoch, number, people), kind="stable")
            self._orders[stream] = (epoch, number), order
        return order


def distinct_pairs(first: Ints, people: npt.ArrayLike, pairs: int, seed: int) -> PairList:
    """Draw distinct unordered pairs for measuring, half genuine, half impostor.

    People are drawn first here, too, and a person has at most ten genuine pairs
    (`minimums.MAX_PAIRS_PER_PERSON`), so that no person's photos dominate.

    Args:
        first: int64[people + 1], where each person's images begin (`FaceIndex.first`).
        people: int64[P], numbers of the people to draw from.
        pairs: Number of pairs; if fewer of a kind exist, all of that kind are taken (of genuine
            pairs at most ten of each person).
        seed: From 0 to 2**63 - 1.

    Raises:
        NotEnough: The people cannot form both kinds of pairs.
    """
    allowed = np.unique(np.asarray(people, np.int64))
    half = (pairs + 1) // 2
    possible, _ = _possible_pairs(first, allowed)
    left, right = _distinct(PairSampler(first, allowed, seed, 1.0), min(half, possible))
    person_of = np.repeat(np.arange(len(first) - 1), np.diff(first))
    genuine = PairList.of(left, right, np.ones(len(left), bool))
    genuine = limit_pairs_per_person(genuine, person_of)
    return PairList.join([genuine, distinct_impostors(first, allowed, half, seed)])


def distinct_impostors(first: Ints, people: npt.ArrayLike, pairs: int, seed: int) -> PairList:
    """Draw distinct unordered pairs of different people; arguments as for `distinct_pairs`.

    Raises:
        NotEnough: There are fewer than two people.
    """
    allowed = np.unique(np.asarray(people, np.int64))
    _, possible = _possible_pairs(first, allowed)
    left, right = _distinct(PairSampler(first, allowed, seed, 0.0), min(pairs, possible))
    return PairList.of(left, right, np.zeros(len(left), bool))


def _possible_pairs(first: Ints, people: Ints) -> tuple[int, int]:
    """Return how many genuine and how many impostor pairs some people can form."""
    counts = np.diff(first)[people]
    images, genuine = int(counts.sum()), int((counts * (counts - 1) // 2).sum())
    return genuine, images * (images - 1) // 2 - genuine


def _distinct(sampler: PairSampler, count: int) -> Ints:
    """Return int64[2, N], the first distinct pairs drawn; N < `count` if drawing finds no more."""
    pairs = np.empty((2, 0), np.int64)
    for epoch in range(MAX_EPOCHS):
        drawn = sampler.block(epoch, 0, max(64, 2 * count))
        pairs = np.hstack([pairs, np.sort([drawn.left, drawn.right], axis=0)])
        _, at = np.unique(pairs[0] << 32 | pairs[1], return_index=True)
        pairs = pairs[:, np.sort(at)[:count]]
        if pairs.shape[1] == count:
            break
    return pairs
