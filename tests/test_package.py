"""The wheel and the sdist hold what they promise, and an installed package finds its model."""

import email
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from facepairs.data.synth.folder import write_synthetic_faces

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IN_SDIST = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
BUNDLE = {path.name for path in (ROOT / "facepairs" / "default_model").iterdir()}
DETECTOR = {f"face_detection_yunet_2023mar.{end}" for end in ("onnx", "LICENSE")}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist of this package."""
    tree = tmp_path_factory.mktemp("tree")
    skip = shutil.ignore_patterns("__pycache__")
    for name in ["pyproject.toml", ".gitignore", *IN_SDIST]:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name, **({"ignore": skip} if copy is shutil.copytree else {}))
    code = (
        "from hatchling import build\nprint(build.build_wheel('dist'), build.build_sdist('dist'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=True
    )
    wheel, sdist = done.stdout.split()[-2:]
    return tree / "dist" / wheel, tree / "dist" / sdist


def files_of(names, folder):
    return {Path(name).name for name in names if Path(name).parent.name == folder}


def test_wheel_and_sdist_hold_the_model_and_the_detector_with_its_licence(built):
    wheel, sdist = built
    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = archive.getnames()
    for names in (in_wheel, in_sdist):
        assert files_of(names, "default_model") == BUNDLE
        assert files_of(names, "photos") >= DETECTOR
    tops = {name.split("/")[1] for name in in_sdist if "/" in name}
    assert tops >= set(IN_SDIST)
    assert {name.split("/")[0] for name in in_wheel if ".dist-info" not in name} == {"facepairs"}


def test_the_page_on_pypi_has_no_relative_links(built):
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
    page = metadata.get_payload()
    links = [part.split(")")[0] for part in page.split("](")[1:]]
    assert links
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == []
    assert metadata["License-Expression"] == "Apache-2.0 AND MIT AND CC0-1.0"
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert urls == PROJECT["project"]["urls"]


def test_an_installed_package_verifies_without_a_model(built, tmp_path):
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(tmp_path / "site")
    write_synthetic_faces(tmp_path / "faces", 1, 1, seed=0)
    photo = next((tmp_path / "faces").glob("*/*.jpg"))
    code = (
        "import sys, facepairs; verdict = facepairs.Verifier.load().verify(*sys.argv[1:]); "
        "print(facepairs.__file__, verdict.same)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(photo), str(photo)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )  # fmt: skip
    assert done.stdout.split() == [str(tmp_path / "site" / "facepairs" / "__init__.py"), "True"]


def test_the_runtime_sends_no_telemetry(tmp_path):
    """ONNX Runtime's telemetry creates a `.ses` file in the folder for temporary files."""
    code = (
        "import os; from facepairs import Verifier; Verifier.load(); "
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ORT_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**environment, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "1\n"
    assert list(tmp_path.iterdir()) == []
