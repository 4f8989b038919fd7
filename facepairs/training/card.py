"""The model card that goes into every bundle."""

from typing import Any


def model_card(manifest: dict[str, Any]) -> str:
    """Write Markdown from a bundle's manifest (Mitchell et al., *Model Cards*, FAT* 2019)."""
    training = manifest["training"]
    calibration = manifest["calibration"]
    rows = "\n".join(
        f"| {row['fmr']:g} | {row['threshold']:.4f} | {row['measured_fmr']:.4f} "
        f"[{row['fmr_interval'][0]:.4f}, {row['fmr_interval'][1]:.4f}] | {row['fnmr']:.4f} |"
        if row["threshold"] is not None
        else f"| {row['fmr']:g} | - | {row['reason']} | - |"
        for row in manifest["thresholds"]
    )
    return f"""# Model card

A face verifier: it scores whether two photos show one person. Network `{manifest["model"]}`, made
by `facepairs train` on {training["finished"]}.

## Data
{training["images"]:,} photos of {training["people"]:,} people, protocol `{training["protocol"]}`,
seed {training["seed"]}; {training["pairs"]:,} pairs, epochs: {training["epochs"]}. The bundle
holds hashes of the people's names (`identities.json`), no image and no name; someone who guesses a
name can check it against the hash.

## Errors, on people that it was not trained on
Threshold {manifest["threshold"]:.4f}: there the calibrated probability is one half at equal priors;
set with {calibration["genuine_pairs"]:,} genuine and {calibration["impostor_pairs"]:,} impostor
pairs. They chose the threshold, so measure on others with `facepairs evaluate`.

| target FMR | threshold | FMR on these pairs [95 % interval] | FNMR |
| --- | --- | --- | --- |
{rows}

## Use and limits
For comparing photos like those it was trained on. Not for identification among many people, not
for decisions about a person without a human, not for photos of another kind (other framing, age,
light) before measuring on them. Errors differ between groups of people; none were measured apart
here. The probability assumes that genuine and impostor pairs are equally frequent.
"""
