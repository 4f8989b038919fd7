"""Whatever is kept of photos is told apart by their content."""

import os
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from facepairs.config import TrainConfig
from facepairs.errors import BadData, BadImage
from facepairs.training.inputs.pair_cache import build_training_cache, open_training_cache
from facepairs.training.inputs.people import prepare

CONFIG = TrainConfig(
    model="difference", align="none", calibration_share=0.25, test_share=0.25
).resolve()


@pytest.fixture
def photos(tmp_path):
    """Uncompressed photos: all have the same size in bytes."""
    pixels = np.random.default_rng(0)
    for person in range(12):
        (tmp_path / "pgm" / f"p{person:02}").mkdir(parents=True)
        for number in range(4):
            grey = pixels.integers(0, 255, (250, 250), np.uint8)
            Image.fromarray(grey).save(tmp_path / "pgm" / f"p{person:02}" / f"{number}.pgm")
    return tmp_path / "pgm"


def change(photos):
    """Change a photo, but neither its size nor the time of its last change."""
    photo = photos / "p03" / "1.pgm"
    status = photo.stat()
    data = photo.read_bytes()
    photo.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(photo, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_the_index_tells_photos_by_their_content(photos):
    before = prepare(photos, CONFIG)[0]
    assert prepare(photos, CONFIG)[0].fingerprint == before.fingerprint
    assert before.without([3]).fingerprint != before.without([4]).fingerprint
    change(photos)
    assert prepare(photos, CONFIG)[0].fingerprint != before.fingerprint


def test_a_cache_of_other_pixels_is_refused(photos, tmp_path):
    build_training_cache(photos, tmp_path / "cache", CONFIG, 20)
    index, plan, split = prepare(photos, CONFIG)
    open_training_cache(tmp_path / "cache", index, plan, split, CONFIG)
    change(photos)
    index, plan, split = prepare(photos, CONFIG)
    with pytest.raises(BadData):
        open_training_cache(tmp_path / "cache", index, plan, split, CONFIG)


@pytest.mark.usefixtures("few_validation_pairs", "tiny_networks")
@pytest.mark.parametrize("how", ["gone", pytest.param("damaged", marks=pytest.mark.slow)])
def test_photos_that_vanish_in_mid_training_end_it_in_a_line_and_keep_its_epochs(
    faces, tmp_path, difference_settings, how
):
    from keras.callbacks import LambdaCallback

    import facepairs
    from facepairs.config import load_config

    photos = shutil.copytree(faces, tmp_path / "photos")
    first = min(photos.glob("*/*.jpg"))

    def lose(epoch: int, logs: object = None) -> None:
        if epoch == 0:
            for path in photos.glob("*/*.jpg"):
                path.unlink() if how == "gone" else path.write_bytes(b"\xff\xd8\xff damaged")

    config = load_config(difference_settings).replace(align="none", epochs=30)
    with pytest.raises(BadImage, match=re.escape(str(first))) as caught:
        facepairs.train(
            photos,
            tmp_path / "run",
            config,
            store="files",
            callbacks=[LambdaCallback(on_epoch_end=lose)],
        )
    assert "\n" not in str(caught.value)
    assert any((tmp_path / "run" / "checkpoints").glob("epoch-*"))
