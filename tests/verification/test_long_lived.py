"""Processes that live long: forks, and sources that threads share or that were used before."""

import io
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from drawn.photos import exif_of
from PIL import Image

from facepairs import BadImage, Verifier


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return Verifier.load()


@pytest.fixture(scope="module")
def photos(few_faces: Path) -> list[Path]:
    return sorted(few_faces.glob("*/*.jpg"))[:2]


FORK = """
import os, sys
from facepairs import Verifier
words, photos = sys.argv[1], sys.argv[2:]
verifier = Verifier.load()
before = None if words == "unused" else verifier.verify(*photos).score
child = os.fork()
if not child:
    if words == "idle":
        sys.exit(0)
    print(verifier.verify(*photos).score == (before or verifier.verify(*photos).score), flush=True)
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print(before is None or verifier.verify(*photos).score == before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("how", "printed"),
    [("idle", "0\nTrue"), ("used", "True\n7\nTrue"), ("unused", "True\n7\nTrue")],
)
def test_a_verifier_works_on_both_sides_of_a_fork(photos, how, printed):
    words = [sys.executable, "-W", "ignore", "-c", FORK, how, *map(str, photos)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == printed


GALLERY_FORK = """
import os, sys
from facepairs import FacepairsError, Gallery
with Gallery(sys.argv[1], write=True) as gallery:
    child = os.fork()
    if not child:
        try:
            gallery.people()
        except FacepairsError as error:
            os._exit(7)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(gallery.people()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_gallery_says_that_it_was_opened_before_a_fork(tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", GALLERY_FORK, str(tmp_path / "g")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "7 0\n"


@pytest.mark.parametrize("kind", ["image", "png", "turned", "stream"])
def test_threads_that_share_a_source_get_the_same_verdict(verifier, photos, kind, tmp_path):
    first, other = photos
    data = io.BytesIO()
    if kind == "turned":
        Image.open(first).rotate(180).save(data, "JPEG", exif=exif_of(3), quality=95)
    else:
        Image.open(first).save(data, "PNG" if kind == "png" else "JPEG", quality=95)
    expected = verifier.verify(data.getvalue(), other).score
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            shared = data if kind == "stream" else Image.open(io.BytesIO(data.getvalue()))
            scores = [pool.submit(verifier.verify, shared, other) for _ in range(8)]
            assert {score.result().score for score in scores} == {expected}


def test_a_file_object_at_its_end_is_rewound(verifier, photos):
    expected = verifier.verify(*photos).score
    with tempfile.SpooledTemporaryFile() as spooled:
        for file in (io.BytesIO(), spooled):
            file.write(photos[0].read_bytes())
            assert verifier.verify(file, photos[1]).score == expected
            assert verifier.verify(file, photos[1]).score == expected
    with pytest.raises(BadImage):
        verifier.verify(io.BytesIO(), photos[1])


class Broken:
    def read(self, size: int = -1) -> bytes:
        raise RuntimeError("gone\n" * 1000)


@pytest.mark.parametrize("closed", ["image", "stream", "broken"])
def test_what_cannot_be_read_any_more_is_one_line(verifier, photos, closed):
    if closed == "image":
        with Image.open(photos[0]) as source:
            pass
    elif closed == "stream":
        source = io.BytesIO(photos[0].read_bytes())
        source.close()
    else:
        source = Broken()
    with pytest.raises(BadImage) as caught:
        verifier.verify(source, photos[1])
    assert caught.value.kind == "image"
    assert len(str(caught.value)) < 700
    assert "damaged" not in str(caught.value)


def test_an_image_that_was_closed_after_its_decoding_is_used(verifier, photos):
    with Image.open(photos[0]) as source:
        source.load()
    assert verifier.verify(source, photos[1]).score > 0


@pytest.mark.parametrize(
    "text", ["data:image/jpeg;base64," + 2_000_000 * "A", 5_000 * "/9j/4AAQ", "a\0b", "x" * 300]
)
def test_a_text_that_is_no_path_is_not_quoted(verifier, photos, text):
    with pytest.raises(BadImage) as caught:
        verifier.verify(text, photos[1])
    assert len(str(caught.value)) < 700
    assert "AAAA" not in str(caught.value)
