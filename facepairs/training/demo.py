"""The whole workflow on faces of people who do not exist, one printed command after another."""

import json
import os
import subprocess
import sys
import webbrowser
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from facepairs.support.words import command_line

PHOTOS_PER_PERSON = 8
DIFFICULTY = 1.0  # ends at an AUC of .95 to .99 with any seed
GENUINE, IMPOSTOR = "1", "0"


@dataclass(frozen=True)
class DemoStep:
    """A command, its exit code, and what it printed as JSON (None: it printed text)."""

    command: str
    exit_code: int
    result: dict[str, Any] | None


@dataclass
class DemoReport:
    """The commands of a demo; the AUC on unseen people is None unless all of them succeeded."""

    as_json: bool
    steps: list[DemoStep] = field(default_factory=list)
    auc: float | None = None

    def run(self, *words: object) -> int:
        """Run a command, print it first unless as JSON, and return its exit code."""
        command = command_line(*words)
        if self.as_json:
            words += ("--json",)
        else:
            print(f"\n$ {command}", flush=True)
        output = subprocess.PIPE if self.as_json else None
        done = subprocess.run(_command(words), stdout=output, text=True, check=False)
        result = json.loads(done.stdout) if done.stdout else None
        self.steps.append(DemoStep(command, done.returncode, result))
        return done.returncode

    def print(self, text: str) -> None:
        """Print a line of text, unless all is printed as JSON."""
        if not self.as_json:
            print(text)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"steps": [asdict(step) for step in self.steps], "auc": self.auc, "schema": 1}


def run_demo(
    out: Path, people: int, epochs: int, seed: int = 1, as_json: bool = False
) -> DemoReport:
    """Draw faces, train on them, measure the errors, and verify two pairs of unseen people.

    Each step is a `facepairs` command that a user would type; it is printed before it runs. At the
    end the report of the errors opens in a browser, if a person watches at a display.

    Args:
        out: Folder for faces, run, scores and report. Drawn faces and a stopped run are reused.
        people: Number of people to draw.
        epochs: Epochs of training; drawn faces vary less than photographs, so few suffice.
        seed: Of the faces and of the training.
        as_json: Print nothing, and run each command with --json.

    Returns:
        What was run; the last step is the one that failed, if any did.
    """
    report = DemoReport(as_json)
    faces, run, scores, page = out / "faces", out / "run", out / "scores.csv", out / "report.html"
    bundle = run / "bundle"
    if (run / "config.toml").exists():
        settings: tuple[object, ...] = ("--resume",)
    else:
        settings = ("--model", "siamese-small", "--epochs", epochs, "--seed", seed)
    steps: list[tuple[object, ...]] = [
        ("data", "check", faces),
        ("train", faces, "--out", run, *settings),
        ("evaluate", bundle, faces, "--out", scores, "--report", page),
        ("evaluate", bundle, "default", faces),
    ]
    if not faces.exists():
        steps.insert(
            0,
            ("data", "synth", "--out", faces, "--people", people, "--photos", PHOTOS_PER_PERSON,
             "--seed", seed, "--difficulty", DIFFICULTY),
        )  # fmt: skip
    for words in steps:
        if report.run(*words):
            return report
    for kind, label in ((GENUINE, "genuine"), (IMPOSTOR, "impostor")):
        left, right = _first_pair(scores, kind)
        report.print(f"\nOne {label} pair of people that the model has never met:")
        code = report.run("verify", faces / left, faces / right, "--bundle", bundle)
        if code not in (0, 1, 3):  # different people, or not to be decided, is a result
            return report
    report.auc = _auc(scores)
    report.print(f"\nAUC on people it has never met: {report.auc:.4f}")
    report.print(f"Its errors, with the photos that it got most wrong: {page}\n")
    report.print("The included model, `default`, knows photos and not drawings: of yours it tells")
    report.print("people apart from the start, and `facepairs train` begins with it.\n\nTry next:")
    report.print("  facepairs verify A.jpg B.jpg")
    report.print("  facepairs train PHOTOS --out runs/mine    (PHOTOS/Person_Name/photo.jpg)")
    report.print("  " + command_line("verify", "A.jpg", "B.jpg", "--bundle", bundle))
    if not as_json:
        open_page(page)
    return report


def open_page(page: Path) -> None:
    """Open a page in a browser, if stdout is a terminal of a machine that can show windows."""
    display = sys.platform in ("win32", "darwin") or {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
    if display and sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())


def _command(words: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", "facepairs", *map(str, words)]


def _first_pair(scores: Path, genuine: str) -> tuple[str, str]:
    """Return the first genuine ("1") or impostor ("0") pair of a scores file."""
    rows = (line.split(",") for line in scores.read_text(encoding="utf-8").splitlines()[1:])
    return next((row[0], row[1]) for row in rows if row[2] == genuine)


def _auc(scores: Path) -> float:
    command = _command(("evaluate", "--scores", scores, "--json"))
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return float(json.loads(output)["auc"])
