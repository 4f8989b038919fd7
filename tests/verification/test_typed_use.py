"""How people use `Verifier` from Python; mypy checks this file, pytest runs it."""

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from tiny.bundles import FRAME_PX, tiny_bundle

from facepairs import Verifier
from facepairs.errors import BadBundle, BadData, BadImage
from facepairs.verification.verdict import Verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundle(tmp_path_factory.mktemp("b") / "bundle", "embedding").folder


def face(seed: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (FRAME_PX, FRAME_PX, 3), np.uint8)


def saved(seed: int, path: Path) -> Path:
    Image.fromarray(face(seed)).save(path)
    return path


def test_results_have_the_declared_types(folder: Path) -> None:
    verifier = Verifier.load(folder)
    assert_type(verifier, Verifier)
    verdict = verifier.verify(face(0), face(1), max_fmr=0.1)
    assert_type(verdict, Verdict)
    assert_type(verdict.same, bool | None)
    assert_type(verdict.probability, float | None)
    assert_type(verdict.score, float)
    rows = verifier.embed([face(0)])
    assert_type(rows, npt.NDArray[np.float32])
    assert isinstance(verdict.score, float)


def test_every_kind_of_image_source_gives_the_same_embedding(folder: Path, tmp_path: Path) -> None:
    verifier = Verifier.load(folder)
    path = saved(3, tmp_path / "a.png")
    data = path.read_bytes()
    with Image.open(path) as image:
        rows = verifier.embed([path, str(path), data, io.BytesIO(data), image, face(3)])
    assert rows.dtype == np.float32
    assert rows.shape == (6, 24)
    assert (rows == rows[0]).all()
    assert np.allclose((rows * rows).sum(axis=1), 1)


def test_embeddings_are_in_order_and_give_the_scores(folder: Path) -> None:
    verifier = Verifier.load(folder)
    images = np.stack([face(seed) for seed in range(40)])
    rows = verifier.embed(images)
    assert np.allclose(rows, verifier.embed(face(seed) for seed in range(40)))
    for left, right in ((0, 1), (17, 39)):
        score = verifier.verify(images[left], images[right]).score
        assert rows[left] @ rows[right] == pytest.approx(score, abs=1e-5)
    assert len(verifier.embed([])) == 0


def test_embed_refuses_single_and_unreadable_images(folder: Path, tmp_path: Path) -> None:
    verifier = Verifier.load(folder)
    for one in ("a.png", b"bytes", tmp_path, face(0), io.BytesIO(b""), Image.new("RGB", (8, 8)), 3):
        with pytest.raises(BadData, match="several images"):
            verifier.embed(one)  # type: ignore[arg-type]
    with pytest.raises(BadImage, match=r"none\.png: No such file"):
        verifier.embed([face(0), tmp_path / "none.png"])
    with pytest.raises(BadImage, match=r"^image 2: "):
        verifier.embed([face(0), b"no image"])
    pair = tiny_bundle(tmp_path / "pair", "pair")
    with pytest.raises(BadBundle, match="has no embeddings"):
        Verifier.load(pair.folder).embed([])


def test_threads_may_share_a_verifier(folder: Path) -> None:
    verifier = Verifier.load(folder)
    groups = [[face(10 * group + k) for k in range(5)] for group in range(8)]
    expected = [verifier.embed(group) for group in groups]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for rows, wanted in zip(pool.map(verifier.embed, groups), expected, strict=True):
                assert np.array_equal(rows, wanted)


def test_verification_does_not_import_tensorflow(folder: Path, tmp_path: Path) -> None:
    saved(0, tmp_path / "a.png")
    (tmp_path / "p.csv").write_text("left,right\na.png,a.png\n")
    code = f"""
import sys
from pathlib import Path
from facepairs import Verifier
from facepairs.verification.ranking import rank_folder
from facepairs.verification.score_list import score_list
from facepairs.bundles.rates import operating_point

verifier, here = Verifier.load({str(folder)!r}), Path({str(tmp_path)!r})
point = operating_point(verifier.bundle)
verifier.embed([here / "a.png"])
assert score_list(verifier, here / "p.csv", here / "o.csv", point).failed == 0
print([n for n in ("tensorflow", "keras", "sklearn", "scipy", "onnx") if n in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("[]", "", 0)
