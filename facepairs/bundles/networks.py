"""Networks of others that `facepairs fetch` downloads, each with the TOML that describes it."""

import contextlib
import json
import shutil
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
from msgspec import Meta

from facepairs.bundles.embedder import (
    EMBEDDER,
    Embedder,
    EmbedderToml,
    Sha256,
    check_keys,
    networks_folder,
)
from facepairs.bundles.manifest import check_file_name, read_regular_file
from facepairs.data.download import check_sha256, downloaded
from facepairs.errors import BadBundle, BadConfig, BadTransfer
from facepairs.support import console
from facepairs.support.atomic import atomic_file, atomic_folder
from facepairs.support.places import check_output_folder, file_sha256
from facepairs.support.validation import parse_toml, validate

TABLE = "networks.toml"  # the published ones beside this file; others in the folder of networks


class RemoteNetwork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network that can be fetched.

    Attributes:
        url: The publisher's address of the network, or of a zip that holds it.
        bytes: Size of the download.
        sha256: SHA-256 of the download.
        page: Where the publisher describes the network and its licence.
        is_free: Whether the licence allows any use.
        embedder: Its TOML; `sha256` is that of the network.
    """

    url: str
    bytes: Annotated[int, Meta(gt=0)]
    sha256: Sha256
    page: str
    is_free: bool
    embedder: EmbedderToml

    @property
    def terms(self) -> str:
        """The licence and where it stands, for a question or an error."""
        kind = "free" if self.is_free else "not free"
        return f"its licence is {kind}: {self.embedder.licence} ({self.page})"


def remote_networks() -> dict[str, RemoteNetwork]:
    """Return the networks that can be fetched, by name; raises BadConfig for a wrong table."""
    networks: dict[str, RemoteNetwork] = {}
    for path in (Path(__file__).with_name(TABLE), networks_folder() / TABLE):
        if path.exists():
            table = parse_toml(read_regular_file(path), path, BadConfig)
            for name, values in table.items():
                network = validate(values, RemoteNetwork, f"{path}: {name}", BadConfig)
                try:
                    check_file_name(name)
                    check_keys(network.embedder)
                except BadBundle as error:
                    raise BadConfig(f"{path}: {name}: {error}") from None
                networks[name] = network
    return networks


def remote_network(name: str) -> RemoteNetwork:
    """Return a network that can be fetched; raise BadConfig if there is none of this name."""
    networks = remote_networks()
    if name not in networks:
        raise BadConfig(f"{name}: no such network; use one of {', '.join(networks)}", "name")
    return networks[name]


def is_fetched(name: str) -> bool:
    """Return whether a network lies in the folder of networks, whole and as the table has it."""
    wanted = remote_network(name).embedder
    with contextlib.suppress(BadBundle):
        found = Embedder.open(networks_folder() / name)
        is_same = found.toml.file == wanted.file and wanted.sha256 in (None, found.toml.sha256)
        return is_same and found.check_all()
    return False


def fetch_network(
    name: str,
    url: str | None = None,
    file: Path | str | None = None,
    accept_licence: bool = False,
) -> Path:
    """Download a network, check it, and write it with its TOML, whole or not at all.

    Then `Verifier.load` takes its name. One that is there is not downloaded again, unless `url` or
    `file` is given; its TOML is written again if the table of networks has been corrected.

    Args:
        name: Its name in the table of networks, such as `sface`.
        url: Address of a mirror: of the publisher's file, or of the network alone.
        file: What was downloaded already, instead.
        accept_licence: Accept a licence that is not free.

    Returns:
        The folder that holds the network and `embedder.toml`.

    Raises:
        BadConfig: The network is unknown, the table of networks is wrong, its licence is not
            accepted, or both `url` and `file` are given.
        BadTransfer: The download failed, or is another file.
        BadData: The folder cannot be written, or holds other files.
    """
    if url is not None and file is not None:
        raise BadConfig("both an address and a file are given; give one of them", "url", "file")
    network, folder = remote_network(name), networks_folder() / name
    if url is None and file is None and is_fetched(name):
        sha256 = Embedder.open(folder).toml.sha256
        text = _toml(name, network.embedder, sha256 or "")
        is_new = text != (folder / EMBEDDER).read_text("utf-8")
        if is_new:
            with atomic_file(folder / EMBEDDER) as out:
                out.write(text)
        console.log(f"{name}: already there{', its TOML is corrected' if is_new else ''}")
        return folder
    if not network.is_free and not accept_licence:
        raise BadConfig(f"{name}: {network.terms}; accept it", "accept_licence")
    check_output_folder(folder, "a network", lambda _: {EMBEDDER, network.embedder.file})
    sums = {network.sha256, network.embedder.sha256 or network.sha256}
    source: AbstractContextManager[Path]
    if file is None:
        unpacked = network.bytes if sums != {network.sha256} else 0  # weights hardly shrink
        if url is None:
            source = downloaded(network.url, folder, [network.sha256], network.bytes, unpacked)
        else:
            source = downloaded(url, folder, sums, unpacked_bytes=unpacked)
    elif not Path(file).is_file():
        raise BadTransfer(f"{file}: not a file; download {network.url}", "file")
    else:
        check_sha256(Path(file), sums, file, f"give another file; this one is of {network.url}")
        source = contextlib.nullcontext(Path(file))
    with source as found, atomic_folder(folder) as temporary:
        taken = temporary / network.embedder.file
        _take_network(found, taken, shutil.move if file is None else shutil.copyfile)
        sha256 = network.embedder.sha256 or file_sha256(taken)
        text = _toml(name, network.embedder, sha256)
        (temporary / EMBEDDER).write_text(text, encoding="utf-8")
        Embedder.open(temporary).read_network()
    return folder


def _toml(name: str, embedder: EmbedderToml, sha256: str) -> str:
    """Return the TOML of a fetched network."""
    values = msgspec.to_builtins(embedder) | {"name": name, "sha256": sha256}
    known = {key: value for key, value in values.items() if value is not None}
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in known.items())
    return "".join(lines)


def _take_network(found: Path, network: Path, take: Callable[[Path, Path], object]) -> None:
    """Take a network, or that in a zip; its checksum is checked later."""
    if not zipfile.is_zipfile(found):
        take(found, network)
        return
    with zipfile.ZipFile(found) as archive:
        names = [name for name in archive.namelist() if PurePosixPath(name).name == network.name]
        if not names:
            raise BadTransfer(f"{found}: holds no {network.name}; its table of networks is wrong")
        with archive.open(names[0]) as packed, open(network, "wb") as out:
            shutil.copyfileobj(packed, out)


def no_such_network(name: str) -> BadBundle:
    """Return the error for a model that is neither a path nor a fetched network."""
    names = list(remote_networks())
    fetched = sorted(path.parent.name for path in networks_folder().glob(f"*/{EMBEDDER}"))
    if name in names:
        return BadBundle(f"{name}: not fetched yet; run: facepairs fetch {name}", "bundle")
    others = [other for other in names if other not in fetched]
    return BadBundle(
        f"{name}: no such bundle, TOML file or network; fetched: {', '.join(fetched) or 'none'}; "
        f"facepairs fetch downloads: {', '.join(others) or 'no others'}",
        "bundle",
    )
