"""Bundles that were made once open in this version and give the same verdicts.

`golden/pair` was made by `data synth faces --people 20 --images 4 --seed 11` and `train --model
pixels`, `golden/embedding` by `tiny_bundles`; the photos are drawn. When the schema changes, their
manifests are rewritten, and the networks stay.
"""

import json
import shutil
from pathlib import Path

import pytest
from processes.command_line import in_process

from facepairs.bundles.manifest import MANIFEST
from facepairs.verification.verifier import Verifier

GOLDEN = Path(__file__).parent / "golden"
SCORES = json.loads((GOLDEN / "scores.json").read_text())


@pytest.mark.parametrize("kind", ["pair", "embedding"])
def test_a_golden_bundle_gives_the_same_verdicts(kind):
    verifier = Verifier.load(GOLDEN / kind)
    verifier.model.files.check_all()
    for other, wanted in SCORES[kind].items():
        verdict = verifier.verify(GOLDEN / "one.jpg", GOLDEN / f"{other}.jpg")
        assert verdict.score == pytest.approx(wanted["score"], abs=1e-4)
        assert verdict.probability == pytest.approx(wanted["probability"], abs=1e-3)
        assert verdict.same == wanted["same"]


@pytest.mark.parametrize("schema", [0, 3, 5])
def test_another_schema_is_refused_in_one_line(tmp_path, schema):
    folder = tmp_path / "bundle"
    shutil.copytree(GOLDEN / "pair", folder)
    table = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(table | {"schema": schema}))
    words = ("verify", GOLDEN / "one.jpg", GOLDEN / "same.jpg", "--bundle", folder)
    done = in_process(*words, check=2)
    assert done.stderr.startswith(f"facepairs: error: {folder / MANIFEST}: ")
    assert done.stderr.count("\n") == 1
