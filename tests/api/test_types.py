"""A type checker accepts what users write; mypy checks the same file in `make quality`."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="needs basedpyright")
@pytest.mark.slow
def test_pyright_accepts_user_code(tmp_path):
    settings = {
        "include": [str(Path(__file__).parent / "user_code.py")],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "reportMissingTypeStubs": False,  # Keras and pandas
        "reportUnknownMemberType": False,  # methods of Keras and Matplotlib
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "-p", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
