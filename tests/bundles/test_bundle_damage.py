"""No damaged bundle is used: every changed byte and every cut of every file is found and named."""

import json

import pytest
from storage.archives import zipped
from tiny.bundles import tiny_bundle

from facepairs.bundles.bundle import (
    CARD,
    IDENTITIES,
    MEASURED,
    MODEL,
    NETWORK,
    Bundle,
)
from facepairs.bundles.manifest import DIGEST, MANIFEST
from facepairs.bundles.model import load_bundle
from facepairs.bundles.writer import write_bundle
from facepairs.errors import BadBundle

FILES = (MANIFEST, NETWORK, MODEL, IDENTITIES, MEASURED, CARD)


def opened(folder):
    bundle = Bundle.open(folder)
    bundle.check_all()
    return bundle


def refused(folder, name):
    """Whether the bundle is refused, in one line with the file's name."""
    try:
        opened(folder)
    except BadBundle as error:
        message = str(error)
    else:
        return False
    assert name in message
    assert "\n" not in message
    return True


@pytest.mark.parametrize("kind", ["pair", "embedding"])
@pytest.mark.parametrize("name", [MODEL, IDENTITIES, MEASURED, CARD, NETWORK])
def test_every_changed_byte_of_a_file_is_found(tmp_path, name, kind):
    folder = tiny_bundle(tmp_path / "bundle", kind).folder
    path = folder / name
    whole = path.read_bytes()
    step = max(1, len(whole) // 400)  # the embedding's matrix has 74 kB
    for at in range(0, len(whole), step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert refused(folder, name), at
    if name in (MODEL, CARD):
        load_bundle(Bundle.open(folder))  # verification does not need it


def flips(folder, masks):
    """Change every byte of the manifest with each mask; return where no change was found."""
    path = folder / MANIFEST
    whole, expected = path.read_bytes(), dict(opened(folder).raw)
    unseen = []
    for at in range(len(whole)):
        for mask in masks:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            if not refused(folder, ""):
                assert dict(opened(folder).raw) == expected, at
                unseen.append(at)
    path.write_bytes(whole)
    return [at for at in unseen if not whole[at : at + 1].isspace()]


def test_every_changed_byte_of_the_manifest_is_found(tmp_path):
    assert flips(tiny_bundle(tmp_path / "bundle").folder, [0x01]) == []


@pytest.mark.slow
def test_every_changed_bit_of_the_manifest_is_found(tmp_path):
    masks = [1 << bit for bit in range(8)] + [0xFF]
    assert flips(tiny_bundle(tmp_path / "bundle").folder, masks) == []


@pytest.mark.parametrize("name", FILES)
def test_truncated_and_missing_files_are_found(tmp_path, name):
    folder = tiny_bundle(tmp_path / "bundle").folder
    path = folder / name
    whole = path.read_bytes()
    for size in {*range(0, len(whole), 7), len(whole) - 1}:
        path.write_bytes(whole[:size])
        missed = not refused(folder, name)
        # Without its last line feed a manifest means the same.
        assert not missed or (name == MANIFEST and size == len(whole) - 1), size
    path.unlink()
    assert refused(folder, name)


def test_the_sha256_of_a_manifest_is_of_its_values_and_must_be_there(tmp_path):
    folder = tiny_bundle(tmp_path / "bundle").folder
    table = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(dict(reversed(table.items()))))
    assert opened(folder).profile.balanced_threshold == -0.1
    del table[DIGEST]
    (folder / MANIFEST).write_text(json.dumps(table))
    assert refused(folder, MANIFEST)


@pytest.mark.parametrize("model", [b"keras", zipped({"other": b""})])
def test_a_keras_file_without_the_weights_of_float32_is_named(tmp_path, model):
    bundle = tiny_bundle(tmp_path / "bundle")
    entry = {"file": NETWORK, "weights": [[0, 0, 1]]}
    files = {name: bundle.read(name) for name in bundle.manifest.files} | {MODEL: model}
    network = bundle.raw["network"] | {"float32": entry}
    changed = write_bundle(tmp_path / "other", bundle.raw | {"network": network}, files)
    with pytest.raises(BadBundle, match=MODEL):
        changed.read_float32()
