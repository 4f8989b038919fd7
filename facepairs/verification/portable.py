"""The files of a model that a verifier needs, to take it to another machine."""

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.manifest import MANIFEST
from facepairs.verification.loading import Model


def model_files(model: Model) -> tuple[str, dict[str, bytes]]:
    """Give what to open, "" for the folder itself, and file name → content of all that is needed.

    Raises BadBundle where a file is missing or damaged.
    """
    if isinstance(model, Bundle):
        manifest = (model.folder / MANIFEST).read_bytes()
        return "", {MANIFEST: manifest, model.network_file: model.read(model.network_file)}
    described = model.path.read_bytes()
    return model.path.name, {model.path.name: described, model.network.name: model.read_network()}
