"""The Dockerfile: a slim base, a user without rights, the core and its server."""

import json
import shutil
import subprocess

import pytest
from processes.script_runner import ROOT


@pytest.fixture(scope="module")
def steps():
    """Name and text of each instruction; none of them continues on another line."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


def last(steps, name):
    return next(text for step, text in reversed(steps) if step == name)


def test_a_user_without_rights_runs_the_command(steps):
    assert f"useradd --create-home --uid 1000 {last(steps, 'USER')}" in [text for _, text in steps]
    names = [name for name, _ in steps]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert json.loads(last(steps, "ENTRYPOINT")) == ["facepairs"]
    assert json.loads(last(steps, "CMD")) == ["--help"]


def test_the_context_holds_what_the_wheel_is_built_from():
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    needed = [rule[1:] for rule in rules if rule.startswith("!")]
    assert needed
    assert all((ROOT / name).exists() for name in needed)


def test_docker_finds_nothing_to_object_to():
    """`docker build --check` parses and lints without building, where an engine answers."""
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no container engine answers")
    done = subprocess.run(
        [docker, "build", "--check", str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
