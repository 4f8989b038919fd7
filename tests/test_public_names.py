"""The public names exist, stand in the reference, and are imported when they are used."""

import re
import subprocess
import sys
from pathlib import Path

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
