"""The model card states what the manifest holds, and nothing else."""

from tiny.bundles import error_table, manifest_of, measured_of

from facepairs.bundles.bundle import NETWORK
from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.manifest import IDENTITIES, parse_manifest
from facepairs.bundles.rates import Among, OperatingPoint
from facepairs.bundles.writer import model_card


def card_of(profile=None, **changes):
    entry = {"bytes": 1, "sha256": ""}
    files = {"schema": 4, "files": {NETWORK: entry, IDENTITIES: entry}}
    manifest = parse_manifest(manifest_of("pair", **changes) | files)
    return model_card(manifest, profile or measured_of())


def test_a_sparse_manifest_gives_a_card():
    card = card_of(note="", training={})
    assert "Network `tiny`" in card
    assert "View 2" not in card
    assert "none were measured apart" in card


def test_the_card_contains_every_part_of_the_manifest():
    training = {
        "images": 1200, "people": 60, "protocol": "heldout", "seed": 3, "pairs": 6400, "epochs": 2,
        "finished": "2026-01-02T03:04:05Z",
        "init": {"created": "2025", "network_sha256": "ab" * 32},
    }  # fmt: skip
    view2 = {"accuracy": 0.91, "accuracy_standard_error": 0.004}
    refused = OperatingPoint(None, "fmr-0.01", 0.01, reason="not enough pairs: needs 300")
    card = card_of(
        measured_of(thresholds=(OperatingPoint(0.5, "fmr-0.1", 0.1), refused)),
        training=training,
        view2=view2,
        calibrated={"people": 7, "finished": "2026-05-06T00:00:00Z"},
        failures="- Photos in profile.",
    )
    for text in (
        "made by `facepairs train` on 2026-01-02", "1,200 photos of 60 people", "made 2025",
        "abababababababab…", "0.9100 ± 0.0040",
        "| FMR 0.1 | 0.5000 | not recorded",
        "| FMR 0.01 | - | not enough pairs",
        "Calibrated on 7 people", "- Photos in profile.", "drawn, not real",
        "calibration error, cross-fitted: 0.010",
    ):  # fmt: skip
        assert text in card, text


def test_the_licence_of_the_weights_follows_them():
    assert "Licence of the weights: research." in card_of(licence="research")
    start = {"init": {"created": "2025", "licence": "research"}}
    assert "Licence of the weights that it started from: research." in card_of(training=start)
    assert "Licence" not in card_of()


def test_the_errors_of_each_threshold_are_those_of_the_table():
    among: Among = "look-alikes"
    refused = OperatingPoint(None, "fmr-0.001", 0.001, among=among, reason="not enough pairs")
    rows = (OperatingPoint(0.75, "fmr-0.01", 0.01, among=among), refused)
    curve = Calibration(20.0, -10.0)
    card = card_of(
        measured_of(errors=error_table(), calibration=curve, thresholds=rows, default_fmr=0.01)
    )
    assert card[card.index("| operating point") :].splitlines()[:6] == [
        "| operating point | threshold | FMR [95 % interval] | FMR among look-alikes | FNMR |",
        "| --- | --- | --- | --- | --- |",
        "| balanced: probability one half | 0.5000 | 0.01000 [0.00500, 0.01700] | 0.0500 "
        "| 0.1000 |",
        "| FMR 0.01 among look-alikes, the default | 0.7500 | 0.00100 [0.00050, 0.00350] | 0.0100 "
        "| 0.3000 |",
        "| FMR 0.001 among look-alikes | - | not enough pairs | - | - |",
        "",
    ]


def test_the_card_names_the_alignment():
    assert "the face in each is found" in card_of(alignment="landmarks-5")
    assert "taken whole" in card_of()
    assert card_of().endswith(".\n")
