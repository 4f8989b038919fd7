"""The wheel and the sdist contain the default model, and an installed package finds it."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from tiny_bundles import tiny_bundle

ROOT = Path(__file__).parents[1]
TOP = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile")
BUNDLE = {"manifest.json", "network.onnx", "model.keras", "identities.json", "MODEL_CARD.md"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist of this package with a tiny default model."""
    tree = tmp_path_factory.mktemp("tree")
    for name in TOP:
        shutil.copy(ROOT / name, tree)
    skip = shutil.ignore_patterns("__pycache__", "default_model")
    shutil.copytree(ROOT / "facepairs", tree / "facepairs", ignore=skip)
    shutil.copy(ROOT / ".gitignore", tree)
    tiny_bundle(tree / "facepairs" / "default_model", kind="pair")
    code = (
        "from hatchling import build\nprint(build.build_wheel('dist'), build.build_sdist('dist'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=True
    )
    wheel, sdist = done.stdout.split()[-2:]
    return tree / "dist" / wheel, tree / "dist" / sdist


def test_wheel_and_sdist_hold_the_whole_bundle(built):
    wheel, sdist = built
    inside = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert {p.name for p in inside if p.parent.name == "default_model"} == BUNDLE
    with tarfile.open(sdist) as archive:
        inside = [Path(name) for name in archive.getnames()]
    assert {p.name for p in inside if p.parent.name == "default_model"} == BUNDLE


def test_an_installed_package_verifies_without_a_model(built, tmp_path):
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(tmp_path / "site")
    Image.new("RGB", (40, 40), "gray").save(tmp_path / "a.png")
    Image.new("RGB", (40, 40), "black").save(tmp_path / "b.png")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "facepairs", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip

    done = run("verify", "a.png", "a.png", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "default"
    assert run("verify", "a.png", "b.png").returncode == 1
    assert "tiny (pair network)" in run("info", "default").stdout
    done = run("info", "./default")
    assert done.returncode == 2
    assert "default: no such folder" in done.stderr
    code = "import facepairs; print(facepairs.__file__, facepairs.Verifier.load().bundle.model)"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env=environment,
    ).stdout  # fmt: skip
    assert shown.split() == [str(tmp_path / "site" / "facepairs" / "__init__.py"), "tiny"]


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
