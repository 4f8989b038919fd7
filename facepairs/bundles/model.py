"""`Model`: what verification needs of a network, whether a bundle or a TOML describes it.

Only this module knows whether a model comes from a bundle or a TOML.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from facepairs.bundles.bundle import DEFAULT, FOLDER, Bundle
from facepairs.bundles.embedder import (
    EMBEDDER,
    Colours,
    Embedder,
    Layout,
    Scaling,
    is_embedder,
    is_name,
    networks_folder,
)
from facepairs.bundles.error_profile import ErrorProfile
from facepairs.bundles.manifest import DIGEST, MANIFEST, Alignment, Identities, Kind, Manifest
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
        read_float32: Reads the network that takes its place on devices that do not compute in 8
            bits; None where there is none.
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
    read_float32: Callable[[], bytes] | None = None

    @property
    def embeds(self) -> bool:
        """Whether the network embeds one face; if not, it scores two."""
        return self.kind == "embedding"

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
        files: What it was loaded from, to be written again with another profile.
    """

    place: str
    name: str
    network: Network
    framing: CropSpec
    alignment: Alignment
    profile: ErrorProfile
    origin: Origin
    files: Bundle | Embedder = field(repr=False)

    @property
    def aligned(self) -> bool:
        """Whether faces are found and aligned; if not, images are used whole."""
        return self.alignment == "landmarks-5"

    @property
    def manifest_sha256(self) -> str | None:
        """SHA-256 (hex) of the bundle's manifest, which names every file; None for others."""
        return self.files.raw[DIGEST] if isinstance(self.files, Bundle) else None

    def check_embeds(self, use: str) -> None:
        """Raise BadBundle for a network of pairs, which has no embeddings.

        Args:
            use: What needs them, such as `a gallery keeps embeddings`.
        """
        if not self.network.embeds:
            raise self.no_embeddings(use)

    def no_embeddings(self, use: str) -> BadBundle:
        """Return the error of a network of pairs; see `check_embeds`."""
        return BadBundle(
            f"{self.place}: scores pairs and has no embeddings, but {use}; use another model, such "
            "as the included one"
        )


def open_model(path: Path | str | None) -> Model:
    """Open a bundle's folder, or an external embedder.

    Args:
        path: A bundle, the TOML of an external embedder, a folder that holds it as
            `embedder.toml`, or the name of a fetched network. None and the word `default` mean the
            bundle that comes with the package.

    Raises:
        BadBundle: The model is missing, damaged or cannot be used.
    """
    if path is None or path == DEFAULT:
        return load_bundle(Bundle.open(None))
    if is_embedder(path):
        return _load_embedder(Embedder.open(path))
    if is_name(path):
        from facepairs.bundles.networks import no_such_network  # brings HTTP

        raise no_such_network(str(path))
    try:
        return load_bundle(Bundle.open(path))
    except BadBundle as error:
        if Path(path).name == path and (networks_folder() / path / EMBEDDER).is_file():
            hint = f"or rename it: it hides the fetched network {path}"
            raise BadBundle(f"{error.message}; {hint}", *error.arguments) from None
        raise


def load_bundle(bundle: Bundle) -> Model:
    """Return the model in a bundle; raise BadBundle if a file is missing or damaged."""
    manifest = bundle.manifest
    return Model(
        place=DEFAULT if bundle.folder == FOLDER else str(bundle.folder),
        name=manifest.model,
        network=Network(
            path=bundle.network_path,
            described_in=bundle.folder / MANIFEST,
            content=bundle.read_network(),
            kind=manifest.kind,
            inputs=manifest.network.inputs,
            output=manifest.network.output,
            has_unit_rows=True,
            read_float32=bundle.read_float32 if manifest.network.float32 else None,
        ),
        framing=manifest.framing,
        alignment=manifest.alignment,
        profile=bundle.profile,
        origin=_origin_of_bundle(manifest, bundle.identities),
        files=bundle,
    )


def _origin_of_bundle(manifest: Manifest, identities: Identities) -> Origin:
    training, licence = manifest.training, manifest.weights_licence
    if licence and not manifest.licence:
        licence += " (of the weights that it started from)"
    return Origin(
        identities=identities,
        protocol=None if training.data else str(training.protocol),
        trained_on=training.data
        or (
            f"{training.people or 0:,} people, {training.images or 0:,} images, protocol "
            f"{training.protocol}, seed {training.seed}"
        ),
        licence=licence,
        created=manifest.created,
    )


def _load_embedder(files: Embedder) -> Model:
    toml, people = files.toml, len(files.identities.training)
    counted = f"{people:,} people" if toml.people is not None else None
    folder = files.folder
    place = folder.name if folder.parent == networks_folder() else str(folder)
    return Model(
        place=place if files.path.name == EMBEDDER else str(files.path),
        name=files.name,
        network=Network(
            path=files.network_path,
            described_in=files.path,
            content=files.read_network(),
            output=toml.output,
            layout=toml.layout,
            colours=toml.colours,
            scaling=files.scaling,
            settings=files.embedding_settings(),
        ),
        framing=files.framing,
        alignment="lfw-frame" if toml.align == "none" else "landmarks-5",
        profile=files.profile,
        origin=Origin(
            identities=files.identities,
            lists_training=toml.people is not None,
            trained_on=toml.training_data or counted,
            licence=toml.licence,
        ),
        files=files,
    )
