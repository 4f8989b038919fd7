"""`Model`: what verification needs of a network, whether a bundle or a TOML describes it.

`bundles.loading` makes models; nothing else looks at where one comes from.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.embedder import Colours, Embedder, Layout, Scaling
from facepairs.bundles.identities import Identities
from facepairs.bundles.manifest import Alignment, Kind
from facepairs.bundles.measured import ErrorProfile
from facepairs.errors import BadBundle
from facepairs.photos.crop import CropSpec


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """An ONNX network, and how it takes crops.

    Attributes:
        path: Its file.
        described_in: The manifest or TOML that has all this, for messages.
        content: The file's content, which was checked.
        kind: "embedding": it embeds one face; "pair": it scores two.
        inputs: Names of its inputs; () for the only one.
        output: Name of its output; None for the only one.
        has_unit_rows: Whether its embeddings have length 1 in L2; others are divided by theirs.
        layout: Order of the input's axes.
        colours: Order of its colours.
        scaling: Scale and offset of the colours; None for a network that takes uint8.
        settings: What else decides the embedding of a photo, as JSON; "" for nothing.
    """

    path: Path
    described_in: Path
    content: bytes = field(repr=False)
    kind: Kind = "embedding"
    inputs: tuple[str, ...] = ()
    output: str | None = None
    has_unit_rows: bool = False
    layout: Layout = "nhwc"
    colours: Colours = "rgb"
    scaling: Scaling | None = None
    settings: str = ""

    @cached_property
    def embedder_sha256(self) -> str:
        """SHA-256 (hex) of what makes embeddings of crops: the network and how it is used."""
        network = hashlib.sha256(self.content).hexdigest()
        if not self.settings:
            return network
        return hashlib.sha256(f"{network} {self.settings}".encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a model's weights come from, and whom they have seen.

    Attributes:
        identities: The people known to have been used in training and in calibration.
        lists_training: Whether all people of the training are known.
        protocol: The protocol under which `facepairs train` made it; None for other networks.
        trained_on: The training data in words; None where it is not recorded.
        licence: Of the weights, in words; None where it is not recorded.
        created: When it was written, ISO 8601 in UTC; "" where that is not recorded.
    """

    identities: Identities
    lists_training: bool = True
    protocol: str | None = None
    trained_on: str | None = None
    licence: str | None = None
    created: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A face verifier: a network with its framing, its errors and its origin.

    Attributes:
        place: Its path as the command line takes it, or `default`.
        name: The architecture or the embedder.
        network: The network.
        framing: The crop that the network takes of a photo.
        alignment: "landmarks-5": faces are found and aligned; "lfw-frame": images are used whole.
        profile: Calibration, thresholds and errors; empty before the model is calibrated.
        origin: Where it comes from.
        cohort: Where its embeddings crowd, float32[K, D], see `grouping.linkage`; None where
            that was not measured: only the included model has it.
        files: What it was loaded from, to be written again with another profile.
    """

    place: str
    name: str
    network: Network
    framing: CropSpec
    alignment: Alignment
    profile: ErrorProfile
    origin: Origin
    cohort: npt.NDArray[np.float32] | None = field(default=None, repr=False)
    files: Bundle | Embedder = field(repr=False)

    @property
    def aligned(self) -> bool:
        """Whether faces are found and aligned; if not, images are used whole."""
        return self.alignment == "landmarks-5"

    def check_embeds(self, use: str) -> None:
        """Raise BadBundle for a network of pairs, which has no embeddings.

        Args:
            use: What needs them, such as `a gallery keeps embeddings`.
        """
        if self.network.kind != "embedding":
            raise BadBundle(
                f"{self.place}: scores pairs and has no embeddings, but {use}; use another model, "
                "such as the included one"
            )
