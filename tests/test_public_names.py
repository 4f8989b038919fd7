"""The public names exist, stand in the reference, and are imported when they are used."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import facepairs

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference" / "python-api.md"


def test_every_name_can_be_imported_and_stands_in_the_reference():
    text = REFERENCE.read_text(encoding="utf-8")
    for name in facepairs.__all__:
        assert getattr(facepairs, name)
        listed = re.search(rf"(::: facepairs\.|[\[ ]){name}\b", text)
        assert listed or name == "__version__", name


def test_importing_them_loads_no_framework():
    heavy = "{'tensorflow', 'keras', 'sklearn', 'matplotlib', 'onnxruntime', 'PIL'}"
    code = f"import facepairs, sys; print(sorted({heavy} & set(sys.modules)))"
    code += "; facepairs.train, facepairs.TrainConfig, facepairs.Run"
    code += f"; print(sorted(({heavy} - {{'PIL'}}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


@pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="needs basedpyright")
@pytest.mark.slow
def test_another_type_checker_accepts_what_users_write(tmp_path):
    """mypy checks the same file in `make quality`."""
    settings = {
        "include": [str(Path(__file__).with_name("user_code.py"))],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "reportMissingTypeStubs": False,  # Keras
        "reportUnknownMemberType": False,  # methods of Keras and Matplotlib
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    words = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "-p"]
    done = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
