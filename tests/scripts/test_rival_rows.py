"""The benchmark rows of other libraries load the same pairs and crops as facepairs' own."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from rivals import RIVALS

from facepairs.bench.job import Job
from facepairs.bench.rows import Settings, Spec
from facepairs.bench.worker import row_function

PEOPLE, PHOTOS, BATCH = 10, 4, 8
IN_PROCESS = (
    "pil-draft",
    "keras-threads",
    "torch-0",
    "grain-threads",
    "dali-cpu",
)  # the others fork


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    place = tmp_path_factory.mktemp("rivals")
    for image in range(PEOPLE * PHOTOS):
        path = place / "faces" / f"Person_{image // PHOTOS}" / f"photo_{image % PHOTOS}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (250, 250), (6 * image, 255 - 6 * image, 3 * image)).save(path)
    settings = Settings(str(place / "faces"), {}, batch_size=BATCH, seconds=0.1, align="none")
    spec = Spec(settings, str(place), "pil-draft")
    Job(spec).prepare()
    return spec


@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_rival_loads_the_pairs_that_our_rows_load(spec, name):
    try:
        batches = row_function(RIVALS[name])
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    job = Job(replace(spec, name=name))
    batches = batches(job)
    for number in (0, 1):
        batch = next(batches)
        pairs = job.pairs.where(slice(number * BATCH, (number + 1) * BATCH))
        images = batch.images
        if isinstance(images, tuple):
            images = np.concatenate([np.asarray(side) for side in images])
        red = np.asarray(images)[:, 56, 56, 0].astype(float)
        expected = 6.0 * np.concatenate([pairs.left, pairs.right])
        assert np.abs(red - expected).max() <= 2
        assert np.asarray(batch.genuine).astype(bool).tolist() == pairs.genuine.tolist()
