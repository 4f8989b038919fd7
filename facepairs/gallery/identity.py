"""What names a person, and what tells models with different embeddings apart."""

import unicodedata
from dataclasses import dataclass

from facepairs.bundles.model import Model
from facepairs.errors import BadConfig

LONGEST_NAME = 200


@dataclass(frozen=True)
class ModelIdentity:
    """Which network made the embeddings of a gallery, and of which crops.

    Attributes:
        sha256: The network's SHA-256; of an external embedder, over its settings too.
        name: The model's name, for messages.
        alignment: As in `Model.alignment`.
        width: Numbers in an embedding.
    """

    sha256: str
    name: str
    alignment: str
    width: int

    def describe(self) -> str:
        """Return in words: `siamese, network 2a0d2264…`."""
        return f"{self.name}, network {self.sha256[:8]}…"


def clean_name(name: str) -> str:
    """Return a name in Unicode's composed form, without surrounding blanks.

    Raises:
        BadConfig: It is empty, too long, or not printable.
    """
    clean = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not clean or not clean.isprintable() or len(clean) > LONGEST_NAME:
        raise BadConfig(
            f"{name!r} is no name; give 1 to {LONGEST_NAME} printable characters, such as Ann"
        )
    return clean


def identify_model(model: Model, width: int) -> ModelIdentity:
    """Return what tells models with different embeddings apart."""
    return ModelIdentity(model.network.embedder_sha256, model.name, model.alignment, width)
