"""The main job on faces of people who do not exist: draw, train, measure, verify.

    python scripts/demo.py [FOLDER]

Every step is the command line that a user would type; it is printed before it runs.
"""

import json
import subprocess
import sys
from pathlib import Path

PEOPLE, PHOTOS, SEED = 400, 8, 1
SETTINGS = Path(__file__).with_name("demo.toml")


def facepairs(*arguments: object, allowed: tuple[int, ...] = (0,)) -> str:
    words = [str(argument) for argument in arguments]
    print(f"\n$ facepairs {' '.join(words)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "facepairs", *words], stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout, end="", flush=True)
    if done.returncode not in allowed:
        sys.exit(done.returncode)
    return done.stdout


def one_pair_of_each_kind(scores: Path) -> list[tuple[str, str]]:
    """Give the first genuine and the first impostor pair of the evaluation: unseen people."""
    rows = [line.split(",") for line in scores.read_text(encoding="utf-8").splitlines()[1:]]
    return [next((row[0], row[1]) for row in rows if row[2] == kind) for kind in ("1", "0")]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
    faces, run, scores = folder / "faces", folder / "run", folder / "scores.csv"
    if not faces.exists():
        facepairs("data", "synth", faces, "--people", PEOPLE, "--images", PHOTOS, "--seed", SEED)
    facepairs("data", "check", faces)
    if (run / "config.toml").exists():
        facepairs("train", faces, "--out", run, "--resume")
    else:
        facepairs("train", faces, "--out", run, "--config", SETTINGS)
    facepairs("evaluate", run / "bundle", faces, "--scores", scores)
    for (left, right), kind in zip(
        one_pair_of_each_kind(scores), ("genuine", "impostor"), strict=True
    ):
        print(f"\nOne {kind} pair of people the model has never seen:", end="")
        facepairs("verify", faces / left, faces / right, "--model", run / "bundle", allowed=(0, 1))
    auc = json.loads(
        subprocess.run(
            [sys.executable, "-m", "facepairs", "evaluate", "--scores", scores, "--json"],
            capture_output=True, text=True, check=True,
        ).stdout
    )["auc"]  # fmt: skip
    print(f"\nAUC on unseen people: {auc:.4f}")
    print("\nTry next:")
    print("  .venv/bin/facepairs train PHOTOS --out runs/mine    (PHOTOS/Person_Name/photo.jpg)")
    print(f"  .venv/bin/facepairs verify A.jpg B.jpg --model {run / 'bundle'}")


if __name__ == "__main__":
    main()
