"""The model card that goes into every bundle: what its manifest says, for people.

Source: Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
"""

from collections.abc import Mapping
from typing import Any


def model_card(manifest: Mapping[str, Any]) -> str:
    """Write Markdown from a bundle's manifest; what the manifest does not tell is left out."""
    sections = [_what(manifest), _data(manifest), _results(manifest), _errors(manifest)]
    return "\n\n".join([*(section for section in sections if section), _limits(manifest)]) + "\n"


def _what(manifest: Mapping[str, Any]) -> str:
    finished = manifest.get("training", {}).get("finished")
    made = f", made by `facepairs train` on {finished}" if finished else ""
    return f"""# Model card

A face verifier: it scores whether two photos show one person.
Network `{manifest["model"]}`{made}."""


def _data(manifest: Mapping[str, Any]) -> str:
    training, start = manifest.get("training", {}), manifest.get("training", {}).get("init")
    lines = ["## Data"]
    if {"images", "people", "protocol", "seed", "pairs", "epochs"} <= training.keys():
        lines.append(
            f"{training['images']:,} photos of {training['people']:,} people, protocol "
            f"`{training['protocol']}`, seed {training['seed']}; {training['pairs']:,} pairs, "
            f"epochs: {training['epochs']}."
        )
    if start:
        lines.append(
            f"Training started from the weights of a bundle made {start['created']} (network "
            f"SHA-256 {start['network_sha256'][:16]}…); whom that one knew, this one knows."
        )
    if manifest.get("note"):
        lines.append(manifest["note"])
    lines.append(
        "The bundle holds hashes of the people's names (`identities.json`), no image and no name; "
        "someone who guesses a name can check it against the hash."
    )
    return "\n\n".join(lines)


def _results(manifest: Mapping[str, Any]) -> str:
    view2 = manifest.get("results", {}).get("view2")
    if not view2:
        return ""
    rows = "\n".join(f"| {fold['fold']} | {fold['accuracy']:.4f} |" for fold in view2["folds"])
    return f"""## Protocol result that it stands for

LFW View 2: accuracy {view2["accuracy"]:.4f} ± {view2["accuracy_standard_error"]:.4f} (mean and
standard error of {len(view2["folds"])} folds). {view2["stands_for"]}

| fold | accuracy |
| --- | --- |
{rows}"""


def _errors(manifest: Mapping[str, Any]) -> str:
    calibration, again = manifest["calibration"], manifest.get("calibrated")
    pairs = ""
    if {"genuine_pairs", "impostor_pairs"} <= calibration.keys():
        pairs = (
            f" Set with {calibration['genuine_pairs']:,} genuine and "
            f"{calibration['impostor_pairs']:,} impostor pairs: they chose the threshold, so "
            "measure on others with `facepairs evaluate`."
        )
    ece = calibration.get("ece")
    text = f"""## Errors, on people that it was not trained on

Threshold {manifest["threshold"]:.4f} ({manifest.get("threshold_source", "source not told")}): there
the calibrated probability is one half at equal priors.{pairs}"""
    if again:
        text += (
            f"\n\nCalibrated on {again['people']:,} people on {again['finished']}; its weights are "
            f"those of the bundle before, whose threshold was {again['from_threshold']:.4f}."
        )
    if ece is not None:
        text += f"\n\nExpected calibration error, cross-fitted: {ece:.3f}."
    rows = "\n".join(_row(row) for row in manifest.get("thresholds", []))
    return f"""{text}

| target FMR | threshold | FMR on these pairs [95 % interval] | FNMR |
| --- | --- | --- | --- |
{rows}"""


def _row(row: Mapping[str, Any]) -> str:
    if row.get("threshold") is None or "fmr_interval" not in row:
        return f"| {row['fmr']:g} | - | {row.get('reason', 'not told')} | - |"
    low, high = row["fmr_interval"]
    return (
        f"| {row['fmr']:g} | {row['threshold']:.4f} | {row['measured_fmr']:.4f} "
        f"[{low:.4f}, {high:.4f}] | {row['fnmr']:.4f} |"
    )


def _limits(manifest: Mapping[str, Any]) -> str:
    failures = manifest.get("failures") or (
        "Errors differ between groups of people; none were measured apart here."
    )
    return f"""## Use and limits

For comparing photos like those it was trained on. Not for identification among many people, not
for decisions about a person without a human, not for photos of another kind (other framing, age,
light) before measuring on them. The probability assumes that genuine and impostor pairs are
equally frequent.

## Known failure groups

{failures}"""
