"""Names of people, and the identity of the model that made the embeddings."""

import unicodedata
from dataclasses import dataclass

from facepairs.bundles.bundle import DEFAULT
from facepairs.bundles.model import Model
from facepairs.errors import BadConfig, BadGallery
from facepairs.support.words import command_line

LONGEST_NAME = 200


@dataclass(frozen=True)
class ModelIdentity:
    """The network that made the embeddings of a gallery, and the crops it sees.

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
        """Describe the model: `siamese, network 2a0d2264…`."""
        return f"{self.name}, network {self.sha256[:8]}…"

    def check(self, model: Model, place: str) -> None:
        """Raise an error if a model is not the one that a gallery was created with."""
        given = identify_model(model, self.width)
        if (self.sha256, self.alignment) != (given.sha256, given.alignment):
            words = ("gallery", "migrate", place, "NEW_GALLERY")
            again = command_line(*words, "--bundle", model.place, "--photos", "photos/")
            is_left_out = model.place == DEFAULT and self.name != model.name
            raise BadGallery(
                f"{place}: created with another model ({self.describe()}) than {model.place} "
                f"({given.describe()}); use that model"
                + ("" if is_left_out else f", or enrol the photos again: {again}"),
                "bundle",
            )


def clean_name(name: str) -> str:
    """Return a name in Unicode's composed form, without surrounding blanks.

    Raises:
        BadConfig: The name is empty, too long, or not printable.
    """
    clean = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not clean or not clean.isprintable() or len(clean) > LONGEST_NAME:
        raise BadConfig(
            f"{name!r} is not a name; use 1 to {LONGEST_NAME} printable characters, such as Ann"
        )
    return clean


def identify_model(model: Model, width: int) -> ModelIdentity:
    """Return the identity of a model: equal for models with equal embeddings."""
    return ModelIdentity(model.network.embedder_sha256, model.name, model.alignment, width)
