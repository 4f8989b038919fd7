"""The model card of a bundle: its manifest in words.

References:
    Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
"""

from facepairs.bundles.manifest import Manifest
from facepairs.bundles.thresholds import FmrThreshold

NOT_MEASURED = "Errors differ between groups of people; none were measured apart here."


def model_card(manifest: Manifest) -> str:
    """Return the card as Markdown; what the manifest does not hold is left out."""
    sections = [_purpose(manifest), _data(manifest), _results(manifest), _errors(manifest)]
    return "\n\n".join([*(section for section in sections if section), _limits(manifest)]) + "\n"


def _purpose(manifest: Manifest) -> str:
    finished = manifest.training.finished
    made = f", made by `facepairs train` on {finished}" if finished else ""
    return f"""# Model card

A face verifier: it scores whether two photos show one person.
Network `{manifest.model}`{made}."""


def _data(manifest: Manifest) -> str:
    training, lines = manifest.training, ["## Data"]
    counts = (training.images, training.people, training.pairs, training.epochs, training.seed)
    if training.protocol is not None and None not in counts:
        lines.append(
            f"{training.images:,} photos of {training.people:,} people, protocol "
            f"`{training.protocol}`, seed {training.seed}; {training.pairs:,} pairs, "
            f"epochs: {training.epochs}."
        )
    if training.init:
        lines.append(
            f"Training started from the weights of a bundle made {training.init.created} (network "
            f"SHA-256 {training.init.network_sha256[:16]}…); the people known to that bundle are "
            "known to this one."
        )
    if manifest.note:
        lines.append(manifest.note)
    lines.append(
        "The bundle holds hashes of the people's names (`identities.json`), no image and no name; "
        "someone who guesses a name can check it against the hash."
    )
    return "\n\n".join(lines)


def _results(manifest: Manifest) -> str:
    view2 = manifest.results.view2
    if not view2:
        return ""
    rows = "\n".join(f"| {fold.fold} | {fold.accuracy:.4f} |" for fold in view2.folds)
    return f"""## Protocol result that it stands for

LFW View 2: accuracy {view2.accuracy:.4f} ± {view2.accuracy_standard_error:.4f} (mean and
standard error of {len(view2.folds)} folds). {view2.stands_for}

| fold | accuracy |
| --- | --- |
{rows}"""


def _errors(manifest: Manifest) -> str:
    calibration, again = manifest.calibration, manifest.calibrated
    pairs = ""
    if calibration.genuine_pairs is not None and calibration.impostor_pairs is not None:
        pairs = (
            f" Set with {calibration.genuine_pairs:,} genuine and "
            f"{calibration.impostor_pairs:,} impostor pairs: they chose the threshold, so "
            "measure on others with `facepairs evaluate`."
        )
    text = f"""## Errors, on people that it was not trained on

Threshold {manifest.threshold:.4f} ({manifest.threshold_source or "source not recorded"}): there
the calibrated probability is one half at equal priors.{pairs}"""
    if again:
        text += (
            f"\n\nCalibrated on {again.people:,} people on {again.finished}; its weights are "
            f"those of the bundle before, whose threshold was {again.from_threshold:.4f}."
        )
    if calibration.ece is not None:
        text += f"\n\nExpected calibration error, cross-fitted: {calibration.ece:.3f}."
    rows = "\n".join(_row(entry) for entry in manifest.thresholds)
    return f"""{text}

| target FMR | threshold | FMR on these pairs [95 % interval] | FNMR |
| --- | --- | --- | --- |
{rows}"""


def _row(entry: FmrThreshold) -> str:
    if entry.threshold is None or entry.fmr_interval is None:
        return f"| {entry.fmr:g} | - | {entry.reason or 'not recorded'} | - |"
    rates = (entry.measured_fmr, *entry.fmr_interval, entry.fnmr)
    measured, low, high, fnmr = ("-" if rate is None else f"{rate:.4f}" for rate in rates)
    return f"| {entry.fmr:g} | {entry.threshold:.4f} | {measured} [{low}, {high}] | {fnmr} |"


def _limits(manifest: Manifest) -> str:
    return f"""## Use and limits

For comparing photos like those it was trained on. Not for identification among many people, not
for decisions about a person without a human, not for photos of another kind (other framing, age,
light) before measuring on them. The probability assumes that genuine and impostor pairs are
equally frequent.

## Known failure groups

{manifest.failures or NOT_MEASURED}"""
