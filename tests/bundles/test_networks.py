"""Networks of others are fetched whole and as published, and then known by their names."""

import contextlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from drawn.photos import noise_photos
from storage.archives import tree, zipped
from storage.file_server import serving, sha256
from tiny.embedders import TOML, embedder, network_table
from tiny.embedders import network as onnx_network

from facepairs.bundles.embedder import Embedder
from facepairs.bundles.model import open_model
from facepairs.bundles.networks import fetch_network, is_fetched, remote_networks
from facepairs.errors import BadBundle, BadConfig, BadData, BadTransfer
from facepairs.support.console import showing
from facepairs.verification.verifier import Verifier


@pytest.fixture
def remote():
    with serving() as server:
        yield server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FACEPAIRS_NETWORKS", str(tmp_path / "networks"))
    return tmp_path / "networks"


def test_published_networks_have_secure_addresses_and_checksums():
    networks = remote_networks()
    assert list(networks) == ["sface", "auraface", "w600k-mbf", "w600k-r50"]
    assert [name for name, network in networks.items() if network.is_free] == ["sface", "auraface"]
    for network in networks.values():
        assert network.url.startswith("https://")
        assert network.page.startswith("https://")
        assert network.embedder.sha256
        is_archive = network.url.endswith(".zip")
        assert (network.sha256 != network.embedder.sha256) == is_archive
        assert network.embedder.licence
        assert network.embedder.training_data


@pytest.mark.parametrize("as_zip", [False, True])
def test_a_fetched_network_is_the_one_of_its_toml(remote, folder, tmp_path, as_zip):
    onnx = network_table(folder, f"{remote.url}/d")
    archive = zipped({"pack/det.onnx": b"another", f"pack/{TOML['file']}": onnx})
    if as_zip:
        network_table(folder, f"{remote.url}/d", download=archive)
    remote.files["d"] = archive if as_zip else onnx
    assert not is_fetched("drawn")
    assert fetch_network("drawn") == folder / "drawn"
    assert is_fetched("drawn")
    assert set(tree(folder)) == {"networks.toml", "drawn/embedder.toml", "drawn/network.onnx"}
    photos = noise_photos(tmp_path / "photos", 2, (250, 250))
    fetched = Verifier.load("drawn")
    by_hand = Verifier.load(embedder(tmp_path / "by_hand"))
    assert np.array_equal(fetched.embed(photos), by_hand.embed(photos))
    assert fetched.model.place == fetched.model.name == "drawn"
    assert fetched.model.origin.licence == "MIT"
    assert fetched.model.profile.calibration is None


def test_a_mirror_or_a_file_may_hold_the_archive_or_the_network(remote, folder, tmp_path):
    onnx = network_table(folder, "http://publisher.invalid/pack.zip")
    archive = zipped({TOML["file"]: onnx})
    network_table(folder, "http://publisher.invalid/pack.zip", download=archive)
    for number, content in enumerate((archive, onnx)):
        remote.files["mirror"] = content
        file = tmp_path / f"{number}"
        file.write_bytes(content)
        for source in ({"url": f"{remote.url}/mirror"}, {"file": file}):
            (folder / "drawn" / "embedder.toml").unlink(missing_ok=True)
            fetch_network("drawn", **source)
            assert tree(folder / "drawn")[TOML["file"]] == onnx
        assert file.read_bytes() == content


def test_a_network_that_is_there_is_not_fetched_again_but_described_as_corrected(remote, folder):
    remote.files["d"] = onnx = network_table(folder, f"{remote.url}/d", described={"std": 50})
    for std in (50, 50, 57.5):
        network_table(folder, f"{remote.url}/d", described={"std": std})
        lines = []
        with showing(log=lines.append):
            fetch_network("drawn")
        assert Embedder.open("drawn").toml.std == std
        assert remote.asked == ["d"]
    assert lines == ["drawn: already there, its TOML is corrected"]
    nonsense = ({"url": "nonsense"}, {"url": ""}, {"url": remote.url, "file": "f"}, {"file": "f"})
    for source in nonsense:
        with pytest.raises((BadConfig, BadTransfer)):
            fetch_network("drawn", **source)
    fetch_network("drawn", url=f"{remote.url}/d")
    assert remote.asked == ["d", "d"]
    remote.files["d"] = other = onnx_network(kind="UINT8")
    network_table(
        folder, f"{remote.url}/d", download=other,
        described={"sha256": sha256(other), "mean": 0, "std": 1},
    )  # fmt: skip
    assert not is_fetched("drawn")
    fetch_network("drawn")
    assert tree(folder / "drawn")[TOML["file"]] == other != onnx


def test_a_network_takes_its_space_once_and_one_in_a_zip_twice(remote, folder, monkeypatch):
    remote.files["d"], remote.cut_after = network_table(folder, f"{remote.url}/d"), [100]
    size = len(remote.files["d"])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=size))
    with pytest.raises(BadTransfer):
        fetch_network("drawn")
    (part,) = folder.glob(".drawn.*.part")
    inode = part.stat().st_ino
    fetch_network("drawn")
    assert (folder / "drawn" / TOML["file"]).stat().st_ino == inode
    archive = remote.files["d"] = zipped({TOML["file"]: remote.files["d"]})
    network_table(folder, f"{remote.url}/d", name="packed", download=archive)
    for free, error in ((2 * len(archive) - 1, BadData), (2 * len(archive), None)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        with pytest.raises(error) if error else contextlib.nullcontext():
            fetch_network("packed")
        assert is_fetched("packed") == (error is None)


@pytest.mark.parametrize("wrong", [{"bytes": 99_999_999}, {"sha256": "0" * 64}])
def test_the_publishers_file_is_the_one_of_the_table(remote, folder, wrong):
    remote.files["d"] = network_table(folder, f"{remote.url}/d", **wrong)
    with pytest.raises(BadTransfer, match=str(wrong.get("sha256", "not 99,999,999"))):
        fetch_network("drawn")
    fetch_network("drawn", url=f"{remote.url}/d")  # a mirror may hold the network alone


def test_another_file_is_refused_and_nothing_written(remote, folder, tmp_path):
    network_table(folder, f"{remote.url}/d")
    remote.files["d"] = b"<html>"
    (tmp_path / "other.onnx").write_bytes(b"other")
    sources = {
        "6 bytes": {},
        f"give another file; this one is of {remote.url}/d": {"file": tmp_path / "other.onnx"},
        f"none.onnx: not a file; download {remote.url}/d": {"file": tmp_path / "none.onnx"},
        f"not a file; download {remote.url}/d": {"file": tmp_path},
    }
    for message, source in sources.items():
        with pytest.raises(BadTransfer, match=message):
            fetch_network("drawn", **source)
        assert set(tree(folder)) == {"networks.toml"}
    with pytest.raises(BadConfig):
        fetch_network("drawn", url=remote.url, file=tmp_path / "other.onnx")
    with pytest.raises(BadConfig, match="sface"):
        fetch_network("other")


def test_a_folder_of_its_name_that_holds_something_else_is_kept(remote, folder):
    network_table(folder, f"{remote.url}/d")
    (folder / "drawn").mkdir()
    (folder / "drawn" / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(BadData, match=r"photo\.jpg"):
        fetch_network("drawn")
    assert tree(folder / "drawn") == {"photo.jpg": b"mine"}
    assert not remote.asked


def test_a_table_may_leave_out_the_checksum_of_the_network_in_its_archive(remote, folder):
    archive = zipped({TOML["file"]: network_table(folder, f"{remote.url}/d")})
    network_table(folder, f"{remote.url}/d", download=archive)
    table = folder / "networks.toml"
    head, _, rest = table.read_text().rpartition("sha256 = ")
    table.write_text(head + rest.partition("\n")[2])
    remote.files["d"] = archive
    fetch_network("drawn")
    assert is_fetched("drawn")


@pytest.mark.parametrize(
    "changes",
    [
        *({"sha256": "0" * 63}, {"bytes": 0}, {"urls": []}),
        *({"described": {"crop": 2}}, {"described": {"align": "arcface-112"}}),
        *({"described": {"file": "../x"}}, {"name": "a/b"}),
    ],
)
def test_a_wrong_table_is_named(folder, changes):
    network_table(folder, "https://example.org", **changes)
    with pytest.raises(BadConfig, match=r"networks\.toml: (drawn|a)"):
        remote_networks()


def test_an_archive_with_another_network_is_refused(remote, folder):
    archive = zipped({TOML["file"]: onnx_network(kind="UINT8")})
    network_table(folder, f"{remote.url}/d", download=archive)
    remote.files["d"] = archive
    with pytest.raises(BadBundle):
        fetch_network("drawn")
    assert not (folder / "drawn").exists()


def test_a_licence_that_is_not_free_must_be_accepted(remote, folder):
    network_table(folder, f"{remote.url}/d", is_free=False)
    with pytest.raises(BadConfig, match="not free: MIT"):
        fetch_network("drawn")
    assert remote_networks()["sface"].terms.startswith("its licence is free: ")


def test_a_damaged_network_is_not_taken_for_fetched(remote, folder):
    remote.files["d"] = onnx = network_table(folder, f"{remote.url}/d")
    fetch_network("drawn")
    (folder / "drawn" / TOML["file"]).write_bytes(onnx[:-1])
    assert not is_fetched("drawn")
    for _ in range(2):  # changed, then gone
        with pytest.raises(BadBundle, match="run: facepairs fetch drawn"):
            open_model("drawn")
        (folder / "drawn" / TOML["file"]).unlink(missing_ok=True)
    fetch_network("drawn")
    assert is_fetched("drawn")


def test_an_unknown_name_lists_those_that_are_known(remote, folder):
    remote.files["d"] = network_table(folder, f"{remote.url}/d")
    with pytest.raises(BadBundle, match="facepairs fetch drawn"):
        open_model("drawn")
    fetch_network("drawn")
    with pytest.raises(
        BadBundle, match=r"fetched: drawn;.*: sface, auraface, w600k-mbf, w600k-r50"
    ):
        open_model("another")


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_what_lies_in_the_current_folder_comes_first(remote, folder, tmp_path, monkeypatch, make):
    remote.files["d"] = network_table(folder, f"{remote.url}/d")
    fetch_network("drawn")
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "drawn")
    with pytest.raises(BadBundle, match=r"manifest.*it hides the fetched network drawn"):
        open_model("drawn")
    make(tmp_path / "another")
    with pytest.raises(BadBundle) as caught:
        open_model("another")
    assert "hides" not in str(caught.value)
