import json
import os
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny.bundles import manifest_of

from facepairs import __version__
from facepairs.bundles.bundle import (
    CARD,
    IDENTITIES,
    MEASURED,
    MODEL,
    NETWORK,
    Bundle,
)
from facepairs.bundles.manifest import (
    DIGEST,
    MANIFEST,
    MAX_JSON_BYTES,
    Identities,
    TrainingRecord,
    hashed_in,
    identity_hash,
    manifest_digest,
    parse_manifest,
)
from facepairs.bundles.model import load_bundle
from facepairs.bundles.rates import OperatingPoint
from facepairs.bundles.writer import rewrite_bundle, write_bundle
from facepairs.errors import BadBundle
from facepairs.photos.crop import CropSpec


def edit(bundle: Bundle, **changes: object) -> None:
    """Rewrite a manifest with some top-level fields changed; `...` removes a field."""
    path = bundle.folder / MANIFEST
    data = json.loads(path.read_text()) | changes
    kept = json.dumps({k: v for k, v in data.items() if v is not ...}, default=str)
    values = json.loads(kept)
    path.write_text(json.dumps(values | {DIGEST: manifest_digest(values)}))


def test_a_bundle_reads_back(make_bundle):
    bundle = make_bundle()
    again = Bundle.open(str(bundle.folder))
    assert again == bundle
    manifest = again.manifest
    assert (manifest.kind, manifest.model, again.profile.balanced_threshold) == (
        "pair",
        "tiny",
        -0.1,
    )
    assert manifest.framing == CropSpec(32, 16)
    assert (manifest.network.file, manifest.network.inputs, manifest.network.output) == (
        NETWORK,
        ("left", "right"),
        "score",
    )
    calibration = again.profile.calibration
    assert (calibration.scale, calibration.offset, calibration.ece) == (20, 2, 0.01)
    assert again.profile.thresholds == (OperatingPoint(-0.1, "fmr-0.1", 0.1),)
    assert manifest.training == TrainingRecord(protocol="none", seed=1)
    assert manifest.note == "drawn, not real"
    assert manifest.versions["facepairs"] == __version__
    assert {"python", "numpy", "onnxruntime"} <= set(manifest.versions)
    assert manifest.created.endswith("+00:00")
    assert set(manifest.files) == {NETWORK, MODEL, IDENTITIES, MEASURED, CARD}
    assert len(again.identities.training) == 2
    assert again.check_all()


def test_unknown_keys_are_ignored_and_optional_keys_may_be_missing(make_bundle):
    bundle = make_bundle()
    edit(bundle, extra={"a": 1}, training=..., note=..., versions=..., alignment=...)
    again = Bundle.open(bundle.folder)
    manifest = again.manifest
    assert again.raw["extra"] == {"a": 1}
    assert (manifest.training, manifest.note, manifest.aligned) == (TrainingRecord(), "", False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 5}, "schema is 5"),
        ({"schema": ...}, "schema is None"),
        ({"kind": "triplet"}, "kind is 'triplet'; use one of "),
        ({"kind": ...}, "Object missing required field `kind`"),
        ({"model": 3}, "model is 3; use another value: Expected `str`"),
        ({"framing": {"frame_px": 10, "crop_px": 11}}, "crop_px 11 of frame_px 10"),
        ({"framing": {"frame_px": 10}}, "framing: Object missing required field `crop_px`"),
        ({"network": {"file": NETWORK, "inputs": ["a"], "output": "s"}}, "network.inputs"),
        ({"network": {"file": NETWORK, "inputs": ["a", "b"]}}, "network: .* `output`"),
        ({"network": {"file": "x.onnx", "inputs": ["a", "b"], "output": "s"}}, "lacks 'x.onnx'"),
        ({"alignment": "landmarks-68"}, "alignment is 'landmarks-68'"),
        ({"files": {"../x": {"bytes": 1, "sha256": ""}}}, "could point outside"),
        ({"files": {"a\\b": {"bytes": 1, "sha256": ""}}}, "could point outside"),
        ({"files": {"..": {"bytes": 1, "sha256": ""}}}, "could point outside"),
        ({"files": {NETWORK: {"bytes": -1, "sha256": ""}}}, "bytes: Expected `int` >= 0"),
        ({"files": {NETWORK: {"bytes": 1}}}, "Object missing required field `sha256`"),
        ({"files": {NETWORK: {"bytes": 1, "sha256": ""}}}, "lacks 'identities.json'"),
        ({"files": {}}, "lacks 'network.onnx'"),
    ],
)
def test_bad_fields_are_refused_by_name(make_bundle, changes, message):
    bundle = make_bundle()
    edit(bundle, **changes)
    with pytest.raises(BadBundle, match=message) as caught:
        Bundle.open(bundle.folder)
    assert str(caught.value).startswith(f"{bundle.folder / MANIFEST}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe{}",
        b"[]",
        b"[" * 100_000,
        b'{"schema": 1, "threshold": NaN}',
        b'{"schema": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_manifest_that_is_no_json_object_is_refused(make_bundle, text):
    bundle = make_bundle()
    (bundle.folder / MANIFEST).write_bytes(text)
    with pytest.raises(BadBundle):
        Bundle.open(bundle.folder)


ENTRY = {"bytes": 1, "sha256": ""}
GOOD = manifest_of("pair") | {"schema": 4, "files": {NETWORK: ENTRY, IDENTITIES: ENTRY}}


@given(
    st.sampled_from(sorted(GOOD)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=4,
    ),
)
def test_any_value_is_read_or_refused_with_a_message(name, value):
    try:
        parsed = parse_manifest(GOOD | {name: value})
    except BadBundle as error:
        message = str(error)
    else:
        message = ""
        if not isinstance(value, dict | list):
            assert getattr(parsed, name) == value
    assert message.isprintable()


def test_json_files_are_smaller_than_networks():
    def of_bytes(**sizes):
        entries = {name: ENTRY | {"bytes": size} for name, size in sizes.items()}
        return parse_manifest(GOOD | {"files": GOOD["files"] | entries})

    of_bytes(**{IDENTITIES: MAX_JSON_BYTES, NETWORK: MAX_JSON_BYTES + 1})
    with pytest.raises(BadBundle, match=IDENTITIES):
        of_bytes(**{IDENTITIES: MAX_JSON_BYTES + 1})


@pytest.mark.parametrize(
    ("training", "protocol", "trained_on"),
    [
        (
            {"people": 1200, "seed": 3},
            "heldout",
            "1,200 people, 0 images, protocol heldout, seed 3",
        ),
        ({"data": "press photos"}, None, "press photos"),
    ],
)
def test_a_model_says_what_it_was_trained_on(make_bundle, training, protocol, trained_on):
    bundle = make_bundle(training={"protocol": "heldout", **training})
    model = load_bundle(bundle)
    assert (model.origin.protocol, model.origin.trained_on) == (protocol, trained_on)
    assert model.manifest_sha256 == bundle.raw[DIGEST]
    assert model.network.embedder_sha256 == bundle.manifest.files[NETWORK].sha256
    assert "content=" not in repr(model)  # no network in a log
    assert "files=" not in repr(model)


def test_missing_folders_and_files_are_refused(make_bundle, tmp_path):
    bundle = make_bundle()
    for place in (tmp_path / "nowhere", bundle.folder / MANIFEST, tmp_path.parent):
        with pytest.raises(BadBundle, match=str(place)):
            Bundle.open(place)
    (bundle.folder / NETWORK).unlink()
    again = Bundle.open(bundle.folder)
    with pytest.raises(BadBundle, match=NETWORK):
        load_bundle(again)
    (bundle.folder / NETWORK).mkdir()
    with pytest.raises(BadBundle, match=NETWORK):
        load_bundle(again)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this platform")
def test_a_pipe_is_never_opened(make_bundle):
    bundle = make_bundle()
    (bundle.folder / MANIFEST).unlink()
    os.mkfifo(bundle.folder / MANIFEST)
    with pytest.raises(BadBundle):
        Bundle.open(bundle.folder)


def test_a_file_that_is_not_listed_is_refused(make_bundle):
    with pytest.raises(BadBundle):
        make_bundle().read("other")


def test_a_bundle_knows_its_people(make_bundle):
    bundle = make_bundle()
    people = bundle.identities
    decomposed = unicodedata.normalize("NFD", "Bé")
    assert decomposed != "Bé"
    names = ["Ann", decomposed, "Cyd", "Dan"]
    assert people.knows(names).tolist() == [True, True, True, False]
    assert people.trained_with(names).tolist() == [True, True, False, False]
    assert people.knows([]).dtype == np.bool_
    text = (bundle.folder / IDENTITIES).read_text()
    assert "Ann" not in text


def test_the_identity_hash_never_changes():
    # A change would make every older bundle forget its training people.
    assert identity_hash("Ann_Example") == GOLDEN
    assert identity_hash(os.fsdecode(b"caf\xe9")) != identity_hash("café")


GOLDEN = "a8b20bf242c60e81"


@given(st.text(st.characters()))
def test_every_name_has_a_hash(name):
    hashed = identity_hash(name)
    assert len(hashed) == 16
    assert int(hashed, 16) >= 0
    assert identity_hash(unicodedata.normalize("NFD", name)) == hashed


def test_a_space_in_a_name_is_as_good_as_an_underscore():
    hashes = Identities.of(["Ann_Example", "Bo Example"], []).training
    names = ["Ann Example", "Ann_Example", "Bo_Example", "Bo Example", "AnnExample", "Ann-Example"]
    assert hashed_in(names, hashes).tolist() == [True, True, True, True, False, False]


def test_identities_ignore_order_and_repeats():
    first, second = Identities.of("abc", "abc"), Identities.of("cabca", {*"abc"})
    assert first.to_bytes() == second.to_bytes()


@pytest.mark.parametrize("content", [{}, {"training": 1, "calibration": []}, {"training": [1]}])
def test_malformed_identities_are_refused(make_bundle, content):
    bundle = make_bundle()
    files = {name: bundle.read(name) for name in bundle.manifest.files}
    files[IDENTITIES] = json.dumps({"calibration": []} | content).encode()
    again = write_bundle(bundle.folder, bundle.raw, files)
    with pytest.raises(BadBundle, match=r"identities\.json: "):
        load_bundle(again)


def test_a_bundle_is_replaced(make_bundle, tmp_path):
    bundle = make_bundle()
    files = {name: bundle.read(name) for name in bundle.manifest.files}
    again = write_bundle(bundle.folder, bundle.raw, files | {CARD: b"new"})
    assert again.read(CARD) == bundle.read(CARD)  # it says what the manifest says
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_an_unusable_bundle_is_not_written(tmp_path):
    files = {NETWORK: b"n", IDENTITIES: Identities.of((), ()).to_bytes()}
    out = tmp_path / "b"
    good = manifest_of("pair")
    for manifest, contents, message in (
        (good | {"kind": "x"}, files, "kind"),
        (good | {"extra": {"auc": float("nan")}}, files, "JSON|nan|range"),
        (good | {"extra": {"auc": np.float32(1)}}, files, "float32"),
        (good, {NETWORK: b"n"}, IDENTITIES),
        (good, files | {"../escape": b""}, "could point outside"),
        (good, files | {MANIFEST: b"{}"}, "written here"),
    ):
        with pytest.raises(BadBundle, match=message):
            write_bundle(out, manifest, contents)
        assert list(tmp_path.iterdir()) == []


def test_nothing_but_a_bundle_is_replaced(make_bundle, tmp_path):
    bundle = make_bundle()
    files = {name: bundle.read(name) for name in bundle.manifest.files}
    photos = tmp_path / "photos"
    photos.mkdir()
    write_bundle(photos, bundle.raw, files)  # an empty folder may become a bundle
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.jpg").write_bytes(b"photo")
    for out in (other, other / "a.jpg"):
        with pytest.raises(BadBundle):
            write_bundle(out, bundle.raw, files)
    assert (other / "a.jpg").read_bytes() == b"photo"


def test_the_alignment_is_recorded(make_bundle):
    bundle = make_bundle(alignment="landmarks-5")
    assert bundle.manifest.aligned
    again = rewrite_bundle(bundle, bundle.folder, {"note": "again"})
    assert (again.manifest.alignment, again.manifest.note) == (bundle.manifest.alignment, "again")


@pytest.mark.parametrize(
    "change",
    [
        {"calibration": {"scale": 1.0}},
        {"calibration": {"scale": 0.0, "offset": 0.0}},
        {"calibration": {"scale": -1.0, "offset": 0.0}},
        {"calibration": {"scale": 1e-300, "offset": 1e100}},
        {"calibration": {"scale": 1.0, "offset": 10**400}},
        {"calibration": {"scale": 1.0, "offset": 0.0, "ece": 1.5}},
        {"calibration": None},
        {"thresholds": [{"threshold": 10**400, "max_fmr": 0.1}]},
        {"thresholds": [{"threshold": 0.1, "max_fmr": 1.5}]},
        {"thresholds": [{"threshold": 0.1, "max_fmr": 0.1, "among": "friends"}]},
        {"promise": 2},
    ],
)
def test_unusable_figures_are_refused_by_name(make_bundle, change):
    bundle = make_bundle()
    files = {name: bundle.read(name) for name in bundle.manifest.files}
    files[MEASURED] = json.dumps(json.loads(files[MEASURED]) | change).encode()
    with pytest.raises(BadBundle) as caught:
        write_bundle(bundle.folder, bundle.raw, files)
    assert next(iter(change)) in str(caught.value) or "calibration" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bundle_that_is_not_calibrated_has_no_threshold(make_bundle):
    bundle = make_bundle()
    files = {
        name: bundle.read(name) for name in bundle.manifest.files if name not in (MEASURED, CARD)
    }
    bare = write_bundle(bundle.folder, bundle.raw, files)
    profile = bare.profile
    assert (profile.calibration, profile.balanced_threshold, profile.errors) == (None,) * 3
    assert profile.thresholds == ()
    assert "Not measured" in bare.read(CARD).decode()
