"""`facepairs demo`: the whole workflow on faces of invented people."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from facepairs.cli.shared.output import ERROR, UNDECIDED
from facepairs.support.atomic import atomic_file
from facepairs.support.extras import require_extra
from facepairs.support.words import command_line

EXAMPLE = """\b
Examples:
  facepairs demo --quick
  facepairs demo --out demo
"""
# Of 1,800 drawn photos, among those that the included model judges with the widest margin.
DRAWN = Path(__file__).parents[1] / "demo_faces"
ONE, SAME, OTHER = "lunwin_1.jpg", "lunwin_2.jpg", "kaleth.jpg"
QUICK_END = """
These three faces are drawn, and chosen because the included model judges them rightly: it learned
from photos, and confuses most drawn people. Its errors above were measured on photos of LFW.

With photos of your own:
  facepairs verify A.jpg B.jpg
  facepairs data check PHOTOS          (a folder per person: PHOTOS/Person_Name/photo.jpg)
  facepairs calibrate default PHOTOS --out mine              (needs the extra measure)
Input pipelines and training, on drawn people:
  facepairs demo                                             (needs the extra train)"""
PEOPLE, PHOTOS_PER_PERSON, SEED = 240, 8, 1
MODEL, PAIRS_PER_EPOCH, EPOCHS = "difference", 1_600, 8
PIPELINES, SECONDS = "pil,article,files,tfrecord-raw,memory", 1.0
END = """
Where to look:
  {page}: every error rate with its interval, and the photos that were judged most wrongly
  tensorboard --logdir {log}: losses, speed, and the pairs that the network was shown

With photos of your own, in a folder per person (PHOTOS/Person_Name/photo.jpg):
  facepairs bench PHOTOS
  facepairs train PHOTOS --model {model} --out runs/mine"""


def demo(
    out: Annotated[Path, Option(help="Folder to write.")] = Path("demo"),
    quick: Annotated[
        bool, Option("--quick", help="Verify three drawn faces, without training.")
    ] = False,
) -> None:
    """Show the whole workflow on drawn faces.

    Draws people, compares input pipelines, trains on most of the people, measures the errors on
    the others, and verifies two of their pairs, those of median score. Prints every command before
    it runs. Takes two to three minutes on two cores; run it again to continue after an
    interruption. Requires the train extra: pip install '.[train]'

    With --quick, writes three drawn faces and verifies them with the included model, in a second
    and without any extra.
    """
    if quick:
        _show_verdicts(out)
        return
    require_extra("train", "facepairs demo")
    faces, run, scores, page = out / "faces", out / "run", out / "scores.csv", out / "report.html"
    bundle = run / "bundle"
    if not faces.exists():
        drawn = ("--people", PEOPLE, "--photos", PHOTOS_PER_PERSON, "--seed", SEED)
        _tell("Draw people who do not exist, in a folder each")
        _run("data", "synth", "--out", faces, *drawn)
    if not (run / "config.toml").exists():
        words = ("--rows", PIPELINES, "--seconds", SECONDS, "--repeats", 1, "--no-training")
        _tell("Compare input pipelines: pairs of faces per second, without a model")
        _run("bench", faces, *words)
    _tell("Train on most of the people; input wait: how long steps waited for their pairs")
    _train(out, faces, run)
    _tell("Measure the errors on people that the model has never met")
    _run("evaluate", bundle, faces, "--out", scores, "--report", page)
    for kind, pair in _median_pairs(scores).items():
        _tell(f"Verify the {kind} pair of median score: a typical one, not chosen to please")
        photos = (faces / photo for photo in pair)
        _run("verify", *photos, "--bundle", bundle, results=(0, 1, UNDECIDED))
    print(END.format(page=page, log=run / "tensorboard", model=MODEL))


def _train(out: Path, faces: Path, run: Path) -> None:
    """Train, or go on with a run that was stopped."""
    if (run / "config.toml").exists():
        _run("train", faces, "--out", run, "--resume")
        return
    settings = out / "settings.toml"
    with atomic_file(settings) as handle:
        handle.write(
            f'model = "{MODEL}"\npairs_per_epoch = {PAIRS_PER_EPOCH}\nepochs = {EPOCHS}\n'
            f"seed = {SEED}\n"
        )
    _run("train", faces, "--out", run, "--config", settings)


def _median_pairs(scores: Path) -> dict[str, tuple[str, str]]:
    """Return the genuine and the impostor pair of median score."""
    with scores.open(encoding="utf-8", newline="") as handle:
        rows = sorted(csv.DictReader(handle), key=lambda row: float(row["score"]))
    pairs = {}
    for kind, label in (("genuine", "1"), ("impostor", "0")):
        of_kind = [row for row in rows if row["genuine"] == label]
        middle = of_kind[len(of_kind) // 2]
        pairs[kind] = (middle["left"], middle["right"])
    return pairs


def _show_verdicts(out: Path) -> None:
    """Write the drawn faces that the package brings, and verify two pairs of them."""
    for name in (ONE, SAME, OTHER):
        if not (out / name).exists():
            with atomic_file(out / name, "wb") as handle:
                handle.write((DRAWN / name).read_bytes())
    for title, name in (("Two photos of one person", SAME), ("And of another person", OTHER)):
        _tell(title)
        _run("verify", out / ONE, out / name, results=(0, 1))
    print(QUICK_END)


def _tell(step: str) -> None:
    print(f"\n{step}:")


def _run(*words: object, results: tuple[int, ...] = (0,)) -> None:
    """Print a command and run it; end the demo if its exit code is none of `results`."""
    print(f"$ {command_line(*words)}", flush=True)
    command = [sys.executable, "-m", "facepairs", *map(str, words)]
    # Given, because the process's own stderr is silenced for libraries.
    if subprocess.run(command, check=False, stderr=sys.stderr).returncode not in results:
        raise typer.Exit(ERROR)
