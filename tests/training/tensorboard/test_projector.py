"""The projector's files list the points in one order."""

import numpy as np
from PIL import Image

from facepairs.training.tensorboard.projector import write_projector


def test_embeddings_names_and_thumbnails_are_in_the_same_order(tmp_path):
    vectors = np.arange(15, dtype=np.float32).reshape(5, 3) / 7
    shades = np.arange(5, dtype=np.uint8) * 50
    thumbnails = np.broadcast_to(shades[:, None, None, None], (5, 64, 64, 3))
    names = [(f"Zoë {i}", f"a\tb/{i}.jpg") for i in range(5)]
    write_projector(tmp_path, vectors, names, thumbnails)
    assert np.allclose(np.loadtxt(tmp_path / "vectors.tsv"), vectors, atol=1e-4)
    lines = (tmp_path / "names.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["person\timage", "Zoë 0\ta b/0.jpg"]
    assert len(lines) == 6
    sheet = np.asarray(Image.open(tmp_path / "thumbnails.png"))
    assert sheet.shape == (120, 120, 3)
    middles = sheet[20::40, 20::40, 0].reshape(-1)
    assert middles.tolist() == [0, 50, 100, 150, 200, 0, 0, 0, 0]
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'image_path: "thumbnails.png" single_image_dim: 40 single_image_dim: 40' in config


def test_the_projectors_own_reader_accepts_the_configuration(tmp_path):
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    write_projector(
        tmp_path, np.zeros((1, 3), np.float32), [("a", "b")], np.zeros((1, 8, 8, 3), np.uint8)
    )
    config = ProjectorConfig()
    text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), config)
    (points,) = config.embeddings
    assert (points.tensor_path, points.metadata_path) == ("vectors.tsv", "names.tsv")
    assert list(points.sprite.single_image_dim) == [40, 40]
