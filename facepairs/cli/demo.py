"""`facepairs demo`: the whole workflow on faces of people who do not exist."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from facepairs.cli.shared.output import ERROR, UNDECIDED
from facepairs.support.atomic import atomic_file
from facepairs.support.extras import require_extras
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
  facepairs calibrate default PHOTOS --out mine              (needs facepairs[measure])
Input pipelines and training, on drawn people:
  facepairs demo                                             (needs facepairs[train])"""
PEOPLE, PHOTOS_PER_PERSON, EPOCHS, SEED = 320, 8, 6, 1
DIFFICULTY = 1.0  # ends at an AUC of .95 to .99 with any seed
END = """
Its errors, with the photos that it got most wrong: {page}

The included model, `default`, knows photos and not drawings: of yours it tells people apart from
the start, and `facepairs train` begins with it.

Try next:
  facepairs verify A.jpg B.jpg
  facepairs train PHOTOS --out runs/mine    (PHOTOS/Person_Name/photo.jpg)
  {verify}"""


def demo(
    out: Annotated[Path, Option(help="Folder to write.")] = Path("demo"),
    quick: Annotated[
        bool, Option("--quick", help="Verify three drawn faces, without training.")
    ] = False,
) -> None:
    """Show the whole workflow on drawn faces.

    With --quick: writes three drawn faces and verifies them with the included model, in a second
    and without any extra. Otherwise it needs facepairs[train], which brings TensorFlow.

    Draws, trains, measures errors and verifies two pairs. People look alike, and their photos
    differ in age and light, so some errors remain: expect an AUC of .95 to .99 on people that the
    model has never met, and a report of the errors, whose path is printed. Takes two to three
    minutes on two cores; started again, it resumes. Prints every command before it runs.
    """
    if quick:
        _show_verdicts(out)
        return
    require_extras(["train"], "facepairs demo")
    faces, run, scores, page = out / "faces", out / "run", out / "scores.csv", out / "report.html"
    bundle = run / "bundle"
    if not faces.exists():
        photos = ("--people", PEOPLE, "--photos", PHOTOS_PER_PERSON, "--difficulty", DIFFICULTY)
        _run("data", "synth", "--out", faces, *photos, "--seed", SEED)
    _run("data", "check", faces)
    resume = ("--resume",)
    settings = ("--model", "fisher", "--epochs", EPOCHS, "--seed", SEED)
    _run("train", faces, "--out", run, *(resume if (run / "config.toml").exists() else settings))
    _run("evaluate", bundle, faces, "--out", scores, "--report", page)
    _run("evaluate", bundle, "default", faces)
    for genuine, label in (("1", "genuine"), ("0", "impostor")):
        print(f"\nOne {label} pair of people that the model has never met:")
        rows = (line.split(",") for line in scores.read_text(encoding="utf-8").splitlines()[1:])
        left, right = next(row[:2] for row in rows if row[2] == genuine)
        _run("verify", faces / left, faces / right, "--bundle", bundle, results=(0, 1, UNDECIDED))
    verify = command_line("verify", "A.jpg", "B.jpg", "--bundle", bundle)
    print(END.format(page=page, verify=verify))


def _show_verdicts(out: Path) -> None:
    """Write the drawn faces that the package brings, and verify two pairs of them."""
    for name in (ONE, SAME, OTHER):
        if not (out / name).exists():
            with atomic_file(out / name, "wb") as handle:
                handle.write((DRAWN / name).read_bytes())
    for title, name in (("Two photos of one person", SAME), ("And of another person", OTHER)):
        print(f"\n{title}:")
        _run("verify", out / ONE, out / name, results=(0, 1))
    print(QUICK_END)


def _run(*words: object, results: tuple[int, ...] = (0,)) -> None:
    """Print a command and run it; end the demo if its exit code is none of `results`."""
    print(f"\n$ {command_line(*words)}", flush=True)
    command = [sys.executable, "-m", "facepairs", *map(str, words)]
    if subprocess.run(command, check=False).returncode not in results:
        raise typer.Exit(ERROR)
