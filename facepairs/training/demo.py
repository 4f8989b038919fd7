"""The whole workflow on faces of people who do not exist, one printed command after another."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

PHOTOS_PER_PERSON, SEED = 8, 1
GENUINE, IMPOSTOR = "1", "0"


def run_demo(out: Path, people: int, epochs: int) -> int:
    """Draw faces, train on them, measure the errors, and verify two pairs of unseen people.

    Each step is a `facepairs` command that a user would type; it is printed before it runs.

    Args:
        out: Folder for faces, run and scores. Drawn faces and a stopped run there are reused.
        people: Number of people to draw.
        epochs: Epochs of training; drawn faces vary less than photographs, so few suffice.

    Returns:
        0, or the exit code of the command that failed.
    """
    faces, run, scores = out / "faces", out / "run", out / "scores.csv"
    bundle = run / "bundle"
    if (run / "config.toml").exists():
        settings: tuple[object, ...] = ("--resume",)
    else:
        settings = ("--epochs", epochs, "--seed", SEED)
    steps: list[tuple[object, ...]] = [
        ("data", "check", faces),
        ("train", faces, "--out", run, *settings),
        ("evaluate", bundle, faces, "--out", scores),
    ]
    if not faces.exists():
        drawn = ("--people", people, "--photos", PHOTOS_PER_PERSON, "--seed", SEED)
        steps.insert(0, ("data", "synth", "--out", faces, *drawn))
    for words in steps:
        if code := _run(*words):
            return code
    for kind, label in ((GENUINE, "genuine"), (IMPOSTOR, "impostor")):
        left, right = _first_pair(scores, kind)
        print(f"\nOne {label} pair of people that the model has never seen:", end="")
        code = _run("verify", faces / left, faces / right, "--bundle", bundle)
        if code not in (0, 1):  # different people is a result
            return code
    print(f"\nAUC on unseen people: {_auc(scores):.4f}\n\nTry next:")
    print("  facepairs train PHOTOS --out runs/mine    (PHOTOS/Person_Name/photo.jpg)")
    print(f"  facepairs verify A.jpg B.jpg --bundle {bundle}")
    return 0


def _command(words: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", "facepairs", *map(str, words)]


def _run(*words: object) -> int:
    print(f"\n$ {shlex.join(['facepairs', *map(str, words)])}", flush=True)
    return subprocess.run(_command(words), check=False).returncode


def _first_pair(scores: Path, genuine: str) -> tuple[str, str]:
    """Return the first genuine ("1") or impostor ("0") pair of a scores file."""
    rows = (line.split(",") for line in scores.read_text(encoding="utf-8").splitlines()[1:])
    return next((row[0], row[1]) for row in rows if row[2] == genuine)


def _auc(scores: Path) -> float:
    command = _command(("evaluate", "--scores", scores, "--json"))
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return float(json.loads(output)["auc"])
