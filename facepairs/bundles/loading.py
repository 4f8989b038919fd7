"""The two loaders of a `Model`: from a bundle, and from the TOML of an external embedder."""

from pathlib import Path

from facepairs.bundles.bundle import DEFAULT, FOLDER, Bundle
from facepairs.bundles.embedder import EMBEDDER, Embedder, is_embedder
from facepairs.bundles.identities import Identities
from facepairs.bundles.manifest import MANIFEST, Manifest
from facepairs.bundles.model import Model, Network, Origin


def open_model(path: Path | str | None) -> Model:
    """Open a bundle's folder, or an external embedder.

    Args:
        path: A bundle, the TOML of an external embedder, or a folder that holds it as
            `embedder.toml`. None and the word `default` mean the bundle that comes with the
            package.

    Raises:
        BadBundle: The model is missing, damaged or cannot be used.
    """
    if path is not None and is_embedder(path):
        return _load_embedder(Embedder.open(path))
    return load_bundle(Bundle.open(path))


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
        ),
        framing=manifest.framing,
        alignment=manifest.alignment,
        profile=bundle.profile,
        origin=_origin_of_bundle(manifest, bundle.identities),
        cohort=bundle.cohort,
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
    return Model(
        place=str(files.folder if files.path.name == EMBEDDER else files.path),
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
