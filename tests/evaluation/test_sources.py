"""What a word of `evaluate` means, and whom the model of some scores knows."""

from dataclasses import replace
from pathlib import Path

import pytest
from tiny.bundles import tiny_bundle
from tiny.scores import invented, write_method

from facepairs.bundles.manifest import Identities
from facepairs.bundles.model import load_bundle
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import BadConfig, BadData
from facepairs.evaluation.protocols import PairSelection
from facepairs.evaluation.scores import ScoredPairs
from facepairs.evaluation.sources import (
    find_sources,
    kind_of,
    known_in_file,
    known_in_selection,
    short_name,
)
from facepairs.verification.provenance import Provenance

FILE = Path("s.csv")


def scored(trained=(), calibrated=(), protocol=None, **changes) -> ScoredPairs:
    known = Identities.of(trained, calibrated)
    fields = {"identities": known, "protocol": protocol} | changes
    return replace(invented(40, folds=0), origin=Provenance(model="mine", pairs="drawn", **fields))


@pytest.mark.parametrize(
    ("pairs", "count", "warnings"),
    [
        (scored(), 0, 0),
        (scored(["Person_03"]), 4, 1),  # twice with itself, and with both neighbours
        (scored([], ["Person_03"]), 4, 1),
        (scored([], ["Person_03"], "view2"), 0, 0),  # folds take their thresholds from each other
        (scored(identities=None), None, 0),
        (scored(identities=None, embedder_sha256="0"), None, 1),
        (replace(scored(), origin=None), None, 1),
    ],
)
def test_pairs_of_a_file_with_people_of_its_model_are_counted(pairs, count, warnings):
    sides = [[int(name[7:9]) for name in side] for side in pairs.sides]
    shows = [3 in pair for pair in zip(*sides, strict=True)]
    found, lines = known_in_file(pairs, FILE)
    assert (found, len(lines)) == (sum(shows) if count == 4 else count, warnings)


def test_people_are_not_known_by_photos_without_folders():
    pairs = scored(["Person_03"])
    flat = [f"{number}.jpg" for number in range(len(pairs))]
    found, lines = known_in_file(replace(pairs, left=flat, right=flat[::-1]), FILE)
    assert (found, len(lines)) == (None, 1)


@pytest.mark.parametrize(
    ("protocol", "advised"), [("view1", True), ("view2", True), ("heldout", False)]
)
def test_pairs_of_a_protocol_with_people_of_the_model_are_refused(protocol, advised):
    with pytest.raises(BadData) as caught:
        known_in_file(scored(["Person_03"], protocol=protocol), FILE)
    assert (f"protocol {protocol}" in str(caught.value)) == advised


@pytest.mark.parametrize(
    ("protocol", "trained", "calibrated", "count"),
    [("", ["Ann"], [], 2), ("", [], ["Ann"], 2), ("calfw", [], ["Ann"], 0), ("", ["Zoe"], [], 0)],
)
def test_pairs_of_an_index_with_people_of_a_model_are_counted(
    tmp_path, protocol, trained, calibrated, count
):
    index = FaceIndex.from_listing(
        [f"{name}/{k}.jpg" for name in ("Ann", "Bo", "Cy") for k in "12"]
    )
    pairs = PairList.of([0, 0, 2], [1, 2, 4], [True, False, False])
    selection = PairSelection(index, pairs, "drawn", protocol)
    bundle = tiny_bundle(tmp_path / "b", "embedding")
    model = load_bundle(bundle)
    model = replace(
        model, origin=replace(model.origin, identities=Identities.of(trained, calibrated))
    )
    found, lines = known_in_selection(model, "b", selection)
    assert (found, len(lines)) == (count, int(count > 0))
    unlisted = replace(model, origin=replace(model.origin, lists_training=False))
    found, lines = known_in_selection(unlisted, "b", selection)
    assert (found, len(lines)) == (count or None, 1)
    if not protocol and count:
        with pytest.raises(BadData):
            known_in_selection(model, "b", replace(selection, protocol="view1"))


def test_words_are_verifiers_scores_folds_and_at_the_end_photos(tmp_path):
    bundle, photos = tiny_bundle(tmp_path / "run" / "bundle").folder, tmp_path / "photos"
    photos.mkdir()
    folds = write_method(tmp_path / "view2" / "fisher", invented())
    write_method(tmp_path / "view2" / "pixels", invented())
    kinds = {bundle: "model", "default": "model", "x.toml": "model", folds: "view2", photos: None}
    kinds |= {folds.parent: "view2", folds / "scores.csv": "scores", "no.CSV": "scores", "no": None}
    assert {word: kind_of(str(word)) for word in kinds} == kinds
    words = [str(word) for word in (bundle, folds.parent, photos)]
    names = [(words[0], "run"), *((str(folds.parent / n), n) for n in ("fisher", "pixels"))]
    assert find_sources(words) == (names, photos)
    assert find_sources([str(folds), str(folds)]) == ([(str(folds), str(folds))] * 2, None)
    assert find_sources(words[1:2]) == (names[1:], None)
    for wrong, error in (
        ([], BadConfig),
        (words[2:], BadConfig),
        (words[:1], BadConfig),
        (["no"], BadData),
    ):
        with pytest.raises(error):
            find_sources(wrong)


def test_short_names_tell_verifiers_apart():
    names = {
        "run/bundle": "run",
        "v/scores.csv": "v",
        "a/mine.csv": "mine",
        "a/b": "b",
        "x.toml": "x",
    }
    assert {path: short_name(Path(path)) for path in names} == names
