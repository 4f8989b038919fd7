"""`facepairs fetch`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from facepairs.cli.shared.options import Json
from facepairs.cli.shared.output import NEGATIVE, log, print_json, print_result, print_rows
from facepairs.errors import BadConfig
from facepairs.support.words import command_line

if TYPE_CHECKING:
    from facepairs.bundles.networks import RemoteNetwork

EXAMPLE = """\b
Examples:
  facepairs fetch --list
  facepairs fetch sface
  facepairs fetch w600k-r50 --file Downloads/buffalo_l.zip --accept-licence
"""


def fetch(
    name: Annotated[str | None, Argument(help="Network to download.", show_default=False)] = None,
    listing: Annotated[
        bool, Option("--list", help="List the networks and their licences.")
    ] = False,
    accept_licence: Annotated[
        bool, Option("--accept-licence", help="Accept a licence that is not free, without asking.")
    ] = False,
    url: Annotated[str | None, Option(help="Download from this mirror.")] = None,
    file: Annotated[
        Path | None, Option(help="Take this file, which was downloaded already.")
    ] = None,
    json: Json = False,
) -> None:
    """Download another network, to be used as --bundle NAME.

    Checks size and SHA-256, unpacks it, and writes the TOML that describes it. A download that
    broke off goes on. Its errors are unknown until calibrate measures them on your people. Nothing
    else downloads networks.
    """
    from facepairs.bundles.networks import fetch_network, is_fetched, remote_network

    if listing or name is None:
        if name or accept_licence or (url, file) != (None, None):
            raise BadConfig("give a network to download, or --list alone", "name")
        _print_list(json)
        return
    network = remote_network(name)
    embedder = network.embedder
    is_asked = not (network.is_free or accept_licence) and sys.stdin.isatty()
    if is_asked and not ((url, file) == (None, None) and is_fetched(name)):
        log(f"{name}: trained on {embedder.training_data}; {network.terms}")
        accept_licence = typer.confirm("accept this licence?", err=True)
        if not accept_licence:
            log("not accepted: nothing is downloaded")
            raise typer.Exit(NEGATIVE)
    fetch_network(name, url, file, accept_licence)
    values = _values(name, network)
    rows = [
        ("network", f"{name}, in {values['folder']}"),
        ("licence", embedder.licence or "not recorded"),
        ("trained on", embedder.training_data or "not recorded"),
        ("errors", "unknown until they are measured on your people"),
        ("next", command_line("calibrate", name, "photos/", "--out", "mine")),
    ]
    print_result(json, values, rows)


def _values(name: str, network: "RemoteNetwork") -> dict[str, Any]:
    """Return what JSON tells of a network."""
    import msgspec  # costs some ms at every start

    from facepairs.bundles.embedder import networks_folder
    from facepairs.bundles.networks import is_fetched

    folder = str(networks_folder() / name) if is_fetched(name) else None
    return {"name": name, "folder": folder, **msgspec.to_builtins(network)}


def _print_list(json: bool) -> None:
    from facepairs.bundles.networks import is_fetched, remote_networks

    networks = remote_networks()
    if json:
        print_json({"networks": [_values(*one) for one in networks.items()]})
        return
    table = [
        [
            name,
            f"{network.bytes / 1e6:.1f} MB",
            "yes" if is_fetched(name) else "no",
            network.embedder.licence or "not recorded",
            network.embedder.training_data or "not recorded",
        ]
        for name, network in networks.items()
    ]
    print_rows([["name", "download", "fetched", "licence", "trained on"], *table])
