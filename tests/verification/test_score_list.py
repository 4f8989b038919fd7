import csv
import threading
from dataclasses import replace

import numpy as np
import pytest
from drawn.photos import noise_photos
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny.bundles import score_pairs, tiny_bundle

from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadBundle, BadData
from facepairs.evaluation.scores import read_scores
from facepairs.photos.photo_cache import PhotoCache
from facepairs.verification import score_list as score_list_module
from facepairs.verification import verifier as verifier_module
from facepairs.verification.score_list import read_list, score_list
from facepairs.verification.verifier import Verifier

IMAGES = 9


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    noise_photos(folder, IMAGES)
    (folder / "broken.jpg").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    return Verifier.load(tiny_bundle(tmp_path_factory.mktemp("e") / "b", "embedding").folder, 1)


def write_list(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def run(verifier, pairs, out, root=None, **options):
    point = options.pop("point", operating_point(verifier.model.profile))
    return score_list(verifier, pairs, out, point, root, **options)


def test_the_output_agrees_with_single_verdicts(verifier, photos, tmp_path):
    chosen = [(a, b) for a in range(IMAGES) for b in range(a)]
    text = "left,right\n" + "".join(f"{a}.png,{b}.png\n" for a, b in chosen)
    report = run(verifier, write_list(photos / "all.csv", text), tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert list(rows[0]) == [
        "left", "right", "score", "probability", "same", "left_box", "left_faces", "left_hints",
        "right_box", "right_faces", "right_hints", "error",
    ]  # fmt: skip
    for (a, b), row in zip(chosen, rows, strict=True):
        verdict = verifier.verify(photos / f"{a}.png", photos / f"{b}.png")
        assert (row["left"], row["right"], row["error"]) == (f"{a}.png", f"{b}.png", "")
        assert float(row["score"]) == pytest.approx(verdict.score, abs=1e-5)
        assert float(row["probability"]) == pytest.approx(verdict.probability, abs=1e-4)
        assert row["same"] == str(int(verdict.same))
        assert (row["left_box"], row["left_faces"]) == ("", "")
        assert row["left_hints"] == "small unaligned"
    assert (report.pairs, report.failed, report.images) == (len(chosen), 0, IMAGES)
    assert report.same == sum(row["same"] == "1" for row in rows)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.integers(0, IMAGES + 1), st.integers(0, IMAGES + 1)), min_size=1),
    st.integers(1, 7),
)
def test_scores_do_not_depend_on_chunk_sizes(verifier, photos, tmp_path, pairs, chunk):
    names = [f"{number}.png" for number in range(IMAGES)] + ["broken.jpg", "none.png"]
    text = "left,right\n" + "".join(f"{names[a]},{names[b]}\n" for a, b in pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifier_module, "CHUNK_PAIRS", chunk)
        report = run(verifier, write_list(tmp_path / "p.csv", text), tmp_path / "out.csv", photos)
    rows = rows_of(tmp_path / "out.csv")
    crops = [verifier.detect(photos / name, every=False)[0].crop[None] for name in names[:IMAGES]]
    for (a, b), row in zip(pairs, rows, strict=True):
        for name in {names[a], names[b]}:
            assert (name in row["error"]) == (name in names[IMAGES:])
        assert (row["score"] == "") == (max(a, b) >= IMAGES)
        if max(a, b) < IMAGES:
            score = score_pairs(verifier.scorer, crops[a], crops[b])[0]
            assert float(row["score"]) == pytest.approx(score, abs=1e-5)
    assert report.failed == sum(max(pair) >= IMAGES for pair in pairs)


def test_bad_photos_cost_their_own_pairs(verifier, photos, tmp_path):
    text = (
        "left,right,genuine,fold\n"
        "0.png, 1.png,1,3\n"
        "\n"
        "2.png,broken.jpg,0,1\n"
        "none.png,3.png,0,1\n"
        "broken.jpg,none.png,0,1\n"
        ",1.png,1,1\n"
        f"{'x' * 5000},1.png,1,1\n"
        "bad\0name.png,1.png,1,1\n"
        f'"{photos}/4.png",5.png,0,\n'
    )
    report = run(verifier, write_list(tmp_path / "p.csv", text), tmp_path / "out.csv", photos)
    rows = rows_of(tmp_path / "out.csv")
    assert [bool(row["error"]) for row in rows] == [False, *[True] * 6, False]
    assert rows[1]["error"].startswith(f"{photos / 'broken.jpg'}: ")
    assert all(name in rows[3]["error"] for name in ("broken.jpg", "none.png"))
    assert (report.pairs, report.failed, report.images_failed) == (8, 6, 5)
    assert report.first_error == rows[1]["error"]
    good = [row for row in rows if not row["error"]]
    assert [(row["genuine"], row["fold"]) for row in good] == [("1", "3"), ("0", "")]

    scores = read_scores(tmp_path / "out.csv")
    assert (len(scores), len(scores.failed), scores.unscored) == (2, 6, 0)
    assert len(scores.failures) == report.images_failed
    kinds = [scores.failures[name] for name in ("broken.jpg", "none.png")]
    assert kinds == ["not_image", "unreadable"]
    assert scores.score.tolist() == [float(row["score"]) for row in good]
    assert scores.genuine.tolist() == [True, False]
    assert scores.fold.tolist() == [3, 0]


@pytest.mark.parametrize(
    "row", [b"only one cell", b'0.png,"1.png,1,3', b"a,b,perhaps,1", b"a,b,1,-2", b"a,caf\xe9,1,1"]
)
def test_a_list_with_a_wrong_row_is_refused(tmp_path, row):
    (tmp_path / "p.csv").write_bytes(b"left,right,genuine,fold\na,b,1,1\n" + row + b"\n")
    with pytest.raises(BadData):
        read_list(tmp_path / "p.csv")


def test_a_pair_without_a_label_is_scored_and_columns_may_have_capitals(verifier, photos, tmp_path):
    text = "Left,Right,Genuine\n0.png,1.png,\n2.png,3.png,0\n"
    report = run(verifier, write_list(tmp_path / "p.csv", text), tmp_path / "out.csv", photos)
    assert report.failed == 0
    rows = rows_of(tmp_path / "out.csv")
    assert [(row["genuine"], bool(row["score"])) for row in rows] == [("", True), ("0", True)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b\n1,2\n",
        "left,right,left\n",
        'left,"right\n',
        "left,right\n\n",
    ],
)
def test_a_file_without_pairs_is_refused(embedder, tmp_path, text):
    with pytest.raises(BadData, match=r"p\.csv"):
        run(embedder, write_list(tmp_path / "p.csv", text), tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_unusable_paths_are_refused(embedder, tmp_path):
    with pytest.raises(BadData, match=r"none\.csv: "):
        read_list(tmp_path / "none.csv")
    with pytest.raises(BadData, match=f"^{tmp_path}: "):
        read_list(tmp_path)
    pairs = write_list(tmp_path / "p.csv", "left,right\na,b\n")
    with pytest.raises(BadData, match=r"none: .*p\.csv"):
        run(embedder, pairs, tmp_path / "out.csv", tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(BadData, match=f"{tmp_path / 'file'}"):
        run(embedder, pairs, tmp_path / "file" / "out.csv")


def test_each_image_is_read_once_and_in_several_threads(embedder, photos, tmp_path, monkeypatch):
    seen, lock = [], threading.Lock()

    def counted(root, name):
        with lock:
            seen.append((name, threading.get_ident()))
        return read(root, name)

    read = score_list_module.read_listed
    monkeypatch.setattr(score_list_module, "read_listed", counted)
    monkeypatch.setattr(score_list_module, "BATCH_CROPS", 1)
    text = "left,right\n" + "".join(
        f"{a}.png,{b}.png\n" for a in range(IMAGES) for b in range(IMAGES)
    )
    run(embedder, write_list(tmp_path / "p.csv", text), tmp_path / "out.csv", photos)
    assert sorted(name for name, _ in seen) == [f"{k}.png" for k in range(IMAGES)]
    assert threading.get_ident() not in {thread for _, thread in seen}


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.integers(0, IMAGES + 1), max_size=8), st.booleans())
def test_results_do_not_depend_on_what_is_known(verifier, photos, tmp_path_factory, known, keep):
    names = [*(f"{number}.png" for number in range(IMAGES)), "broken.jpg", "none.png"]
    named = [(name, str(photos / name)) for name in names]
    left, right = np.triu_indices(len(names), 1)
    reader = replace(verifier.reader(), cache=None)
    cold_scores, cold = scores_by(verifier, reader, named, left, right)
    file = tmp_path_factory.mktemp("cache") / "photos.sqlite"
    warm = replace(reader, cache=PhotoCache(file), keep=keep)
    replace(warm, keep=True).read([named[k] for k in known])
    for cache in (warm.cache, warm.cache, PhotoCache(file)):
        scores, photos_found = scores_by(verifier, replace(warm, cache=cache), named, left, right)
        assert np.allclose(scores, cold_scores, atol=1e-6, equal_nan=True)
        for number, seen in cold.items():
            again = photos_found[number]
            assert (again.record, again.digest) == (seen.record, seen.digest)
            assert str(again.error) == str(seen.error)


def scores_by(verifier, reader, named, left, right):
    samples = dict(enumerate(reader.read(named)))
    return verifier_module.score_samples(verifier.scorer, samples, left, right), samples


def test_a_failing_network_leaves_no_output(photos, tmp_path):
    from tiny.bundles import embedding_network

    bundle = tiny_bundle(tmp_path / "b", "embedding", embedding_network(normalised=False))
    pairs = write_list(tmp_path / "p.csv", "left,right\n0.png,1.png\n")
    with pytest.raises(BadBundle):
        run(Verifier.load(bundle.folder), pairs, tmp_path / "out.csv", photos)
    assert {path.name for path in tmp_path.iterdir()} == {"b", "p.csv"}


def test_a_pair_at_the_threshold_is_accepted(embedder, photos, tmp_path):
    pairs, out = write_list(tmp_path / "p.csv", "left,right\n0.png,1.png\n"), tmp_path / "out.csv"
    run(embedder, pairs, out, photos, point=OperatingPoint(None))
    score = float(rows_of(out)[0]["score"])
    for threshold, same in ((score, "1"), (float(np.nextafter(score, 1)), "0")):
        report = run(embedder, pairs, out, photos, point=OperatingPoint(threshold))
        assert (rows_of(out)[0]["same"], report.same) == (same, int(same))


def test_without_a_threshold_no_pair_is_accepted(embedder, photos, tmp_path):
    pairs = write_list(tmp_path / "p.csv", "left,right\n0.png,1.png\n")
    report = run(embedder, pairs, tmp_path / "out.csv", photos, point=OperatingPoint(None))
    assert report.same is None
    assert rows_of(tmp_path / "out.csv")[0]["same"] == ""


MEASURE = """
import resource, sys
from pathlib import Path
from facepairs.verification.score_list import score_list
from facepairs.bundles.error_profile import operating_point
from facepairs.verification.verifier import Verifier

bundle, pairs, out, root = map(Path, sys.argv[1:])
verifier = Verifier.load(bundle, threads=1)
point = operating_point(verifier.model.profile)
report = score_list(verifier, pairs, out, point, root)
print(report.pairs, report.failed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["embedding", "pair"])
def test_memory_does_not_grow_with_rows(kind, photos, tmp_path):
    import subprocess
    import sys

    bundle = tiny_bundle(tmp_path / "bundle", kind)
    peaks = {}
    for rows in (1_000, 1_000_000 if kind == "embedding" else 100_000):
        pairs, out = tmp_path / f"{rows}.csv", tmp_path / f"{rows}.out.csv"
        with open(pairs, "w") as handle:
            handle.write("left,right,genuine\n")
            handle.writelines(f"{k % IMAGES}.png,{k % 7}.png,{k % 2}\n" for k in range(rows))
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *map(str, (bundle.folder, pairs, out, photos))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        count, failed, peaks[rows] = map(int, done.stdout.split())
        assert (count, failed) == (rows, 0)
        with open(out) as handle:
            assert sum(1 for _ in handle) == rows + 1
    few, lots = peaks.values()
    print(f"{kind}: peak {few / 1024:.0f} MB, with the most rows {lots / 1024:.0f} MB")
    assert lots < few + 24 * 1024
