import shutil

import numpy as np
import pytest
from PIL import Image
from tiny.bundles import AMONG_LOOKALIKES, FRAME_PX, tiny_bundle

from facepairs.bundles.error_profile import Calibration, operating_point
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData, BadImage
from facepairs.support.console import showing
from facepairs.verification.ranking import Match, rank_folder
from facepairs.verification.verifier import Verifier


@pytest.fixture
def folder(tmp_path):
    """Photos at several depths, and files that are no photos."""
    root = tmp_path / "photos"
    for number, name in enumerate(["a.png", "deep/er/b.JPG", "deep/c.bmp", "deep/d.webp"]):
        pixels = np.random.default_rng(number).integers(0, 256, (FRAME_PX, FRAME_PX, 3), np.uint8)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(root / name)
    (root / "deep" / "broken.png").write_bytes(b"no image")
    (root / "empty.jpg").touch()
    (root / "notes.txt").write_text("no photo")
    (root / ".hidden").mkdir()
    for name in (".hidden/a.png", ".a.png"):
        shutil.copy(root / "a.png", root / name)
    return root


def rank(verifier, photo, folder, **options):
    return rank_folder(verifier, photo, folder, operating_point(verifier.model.profile), **options)


def test_photos_are_ranked_best_first_without_the_photo_itself(verifier, folder, tmp_path):
    (folder / "same.png").symlink_to(folder / "a.png")
    calls = []
    with showing(progress=lambda _: lambda *counts: calls.append(counts)):
        ranking = rank(verifier, folder / "a.png", folder)
    names = ["deep/er/b.JPG", "deep/c.bmp", "deep/d.webp"]
    verdicts = {name: verifier.verify(folder / "a.png", folder / name) for name in names}
    assert sorted(one.path for one in ranking.photos) == sorted(names)
    assert [one.rank for one in ranking.photos] == [1, 2, 3]
    scores = [one.score for one in ranking.photos]
    assert scores == sorted(scores, reverse=True)
    for one in ranking.photos:
        assert one.score == pytest.approx(verdicts[one.path].score, abs=1e-5)
        assert one.match == verdicts[one.path].same
    assert ranking.matches == sum(one.match for one in ranking.photos)
    assert [one.path for one in ranking.failed] == ["deep/broken.png", "empty.jpg"]
    assert "empty (0 bytes)" in ranking.failed[1].error
    assert calls[-1] == (5, 5)


def test_json_holds_the_ranking(verifier, folder):
    ranking = rank(verifier, folder / "a.png", folder)
    values = ranking.to_json()
    assert (len(values["photos"]), len(values["failed"])) == (3, 2)
    assert [one["path"] for one in values["photos"]] == [one.path for one in ranking.photos]
    assert [one["path"] for one in values["failed"]] == ["deep/broken.png", "empty.jpg"]
    assert "probability" not in repr(values)


@pytest.mark.parametrize(
    ("box", "faces", "told"), [([7, 8, 90], 2, "7,8 90x90"), ([7, 8, 90], 1, ""), (None, 1, "")]
)
def test_the_place_of_a_face_is_told_where_there_are_others(box, faces, told):
    assert Match(1, "a.jpg", 0.9, True, box, faces).describe_face() == told


def test_the_given_threshold_decides(verifier, folder):
    for threshold, same in ((-1e9, True), (1e9, False), (None, None)):
        ranking = rank_folder(verifier, folder / "a.png", folder, OperatingPoint(threshold))
        assert {one.match for one in ranking.photos} == {same}
        assert ranking.matches == (None if same is None else 3 * same)
    second = rank_folder(
        verifier, folder / "a.png", folder, OperatingPoint(ranking.photos[1].score)
    )
    assert [one.match for one in second.photos] == [True, True, False]


def test_the_threshold_follows_the_size_of_the_gallery(folder, tmp_path):
    known = AMONG_LOOKALIKES | {"default_fmr": None, "calibration": Calibration(20.0, 0.0)}
    verifier = Verifier.load(tiny_bundle(tmp_path / "known", **known).folder, threads=1)
    ranking = rank_folder(verifier, folder / "a.png", folder)
    assert (ranking.point.name, ranking.point.threshold) == ("gallery", 0.5)  # FMR .4 for 3 photos
    assert (ranking.faces, ranking.expected_false_matches) == (3, pytest.approx(0.03))
    assert ranking.describe_expected().startswith("about 0.03 expected among 3 faces, at most 0.0")
    low, high = ranking.expected_false_matches_interval
    assert low < ranking.expected_false_matches < high
    given = rank_folder(verifier, folder / "a.png", folder, verifier.operating_point())
    assert given.point.threshold == 0.0
    older = Verifier.load(tiny_bundle(tmp_path / "older", "embedding").folder, threads=1)
    ranking = rank_folder(older, folder / "a.png", folder)
    assert (ranking.point.name, ranking.expected_false_matches) == ("balanced", None)
    assert ranking.expected_false_matches_interval is None


def test_an_unusable_photo_or_folder_is_refused(verifier, folder, tmp_path):
    with pytest.raises(BadImage, match=r"broken\.png"):
        rank(verifier, folder / "deep" / "broken.png", folder)
    (tmp_path / "bare").mkdir()
    with pytest.raises(BadData):
        rank(verifier, folder / "a.png", tmp_path / "bare")
    for place in (tmp_path / "none", folder / "a.png"):
        with pytest.raises(BadData):
            rank(verifier, folder / "a.png", place)


def test_a_folder_of_unusable_images_gives_an_empty_ranking(verifier, folder, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.jpg").write_bytes(b"x")
    ranking = rank_folder(verifier, folder / "a.png", tmp_path / "bad")
    assert (ranking.photos, ranking.matches, len(ranking.failed)) == ([], 0, 1)
    assert ranking.point == verifier.operating_point()
