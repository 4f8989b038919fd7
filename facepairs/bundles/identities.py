"""Hashes of the people a bundle has seen, so that evaluation can exclude or report them."""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.manifest import parse_json_object
from facepairs.errors import BadBundle
from facepairs.support.validation import validate


def identity_hash(name: str) -> str:
    """Return 16 hex digits for a person's name: BLAKE2b of 8 bytes over its NFC form in UTF-8.

    It only keeps names out of a shared bundle's text: anyone who guesses a name can check it.

    References:
        RFC 7693 (BLAKE2).
    """
    text = unicodedata.normalize("NFC", name)  # macOS returns names decomposed
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Identities(msgspec.Struct, frozen=True):
    """Hashes of the people used in training and of those used in calibration."""

    training: frozenset[str]
    calibration: frozenset[str]

    @classmethod
    def of(cls, training: Iterable[str], calibration: Iterable[str]) -> "Identities":
        """Hash the names of the people used in training and in calibration."""
        return cls(
            frozenset(map(identity_hash, training)), frozenset(map(identity_hash, calibration))
        )

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each name whether training or calibration used that person: bool[N]."""
        return hashed_in(names, self.training | self.calibration)

    def trained_with(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each name whether training is known to have used that person: bool[N]."""
        return hashed_in(names, self.training)

    def union(self, other: "Identities") -> "Identities":
        """Return the people of both."""
        return Identities(self.training | other.training, self.calibration | other.calibration)

    def to_bytes(self) -> bytes:
        """Return the content of `identities.json`: the same bytes for the same people."""
        lists = {"training": sorted(self.training), "calibration": sorted(self.calibration)}
        return (json.dumps({"hash": "blake2b-8", **lists}, indent=0) + "\n").encode()


NOBODY = Identities(frozenset(), frozenset())


def parse_identities(data: bytes, path: Path, advice: str) -> Identities:
    """Parse the content of `identities.json`.

    Args:
        data: The content.
        path: The file, for messages.
        advice: What to do if it is damaged.

    Raises:
        BadBundle: It is damaged.
    """
    return validate(parse_json_object(data, path), Identities, str(path), BadBundle, advice)


def hashed_in(names: Sequence[str], hashes: frozenset[str]) -> npt.NDArray[np.bool_]:
    """Return for each name whether its hash is among `hashes`: bool[len(names)].

    `Ann Example` and `Ann_Example` are the same person.
    """
    spellings = ((name, name.replace(" ", "_"), name.replace("_", " ")) for name in names)
    found = (any(identity_hash(name) in hashes for name in dict.fromkeys(s)) for s in spellings)
    return np.fromiter(found, np.bool_, len(names))
