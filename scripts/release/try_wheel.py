"""Install a built wheel into empty environments, try there what it promises, and measure it.

    python scripts/release/try_wheel.py dist/facepairs-0.2.0-py3-none-any.whl core measure train

Each name is an extra, or `core` for none. Each gets an environment of its own, which is deleted.
The table has the seconds of `pip install` and of the first verdict after it, the megabytes
(10^6 bytes) of all that was installed, and the seconds of commands afterwards (medians of 7).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

MAX_WHEEL_BYTES = 20_000_000
MAX_CORE_MB = 250
LEFT, RIGHT = "left.jpg", "right.jpg"
HEIC = (
    "import pillow_heif, PIL.Image; pillow_heif.register_heif_opener(); "
    f"PIL.Image.open('{LEFT}').save('left.heic')"
)
SERVE = """
import json, subprocess, sys, urllib.request
words = [sys.executable, "-m", "facepairs", "serve", "--port", "0", "--json"]
server = subprocess.Popen(words, stdout=subprocess.PIPE)
try:
    address = json.loads(server.stdout.readline())["url"]
    for path in ("/", "/healthz", "/v1/model", "/openapi.json"):
        urllib.request.urlopen(address + path).close()
finally:
    server.terminate()
"""
ENCRYPT = f"""
from facepairs import Gallery
with Gallery("secret.gallery", write=True, passphrase="three words only") as gallery:
    gallery.add("Ann Lee", ["{LEFT}"])
"""
POSTGRES = """
from facepairs import BadGallery, Gallery
try:
    Gallery("postgresql://127.0.0.1:1/none")
except BadGallery as error:
    assert "cannot be used" in str(error)
"""
PAIRS = ("score", "pairs.csv", "--out")
TRIALS = {  # commands by extra, after those of the core; each must not fail
    "core": [
        ("verify", LEFT, RIGHT),
        ("demo", "--quick"),
        (*PAIRS, "scores.csv"),
        ("evaluate", "scores.csv"),
    ],
    "train": [
        ("train", "faces", "--out", "run", "--model", "fisher", "--epochs", "1"),
        ("evaluate", "run/bundle", "faces"),
    ],
    "measure": [
        ("data", "check", "faces"),
        ("calibrate", "default", "faces", "--out", "mine"),
        ("evaluate", "default", "faces", "--report", "report.html"),
    ],
    "serve": [],
    "encrypt": [],
    "postgres": [],
    "heif": [("verify", "left.heic", RIGHT)],
    "beam": [(*PAIRS, "beam.csv", "--runner", "DirectRunner")],
}
CODE = {
    "serve": (SERVE,),
    "encrypt": (ENCRYPT,),
    "postgres": (POSTGRES,),
    "heif": (HEIC,),
    "all": (HEIC, SERVE, ENCRYPT),
}
TRIALS["all"] = TRIALS["measure"] + TRIALS["train"] + TRIALS["heif"]
RUNS = 7


class Environment:
    """A virtual environment with a wheel, and a folder of drawn faces to try it on."""

    def __init__(self, folder: Path, wheel: Path, extra: str = "core") -> None:
        venv.create(folder / "venv", with_pip=True)
        self.work = folder
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        before = self.megabytes()
        suffix = "" if extra == "core" else f"[{extra}]"
        began = time.monotonic()
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 f"{wheel.resolve()}{suffix}")  # fmt: skip
        self.install_s = time.monotonic() - began
        self.installed_mb = self.megabytes() - before

    def megabytes(self) -> float:
        """Return the size of all files of the environment."""
        files = (self.work / "venv").rglob("*")
        return sum(file.lstat().st_size for file in files if not file.is_dir()) / 1e6

    def run(self, *command: str) -> float:
        """Run a command of the environment and return its seconds; exit where it fails."""
        # Neither this checkout nor other packages may help.
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        variables = {name: value for name, value in os.environ.items() if name not in hidden}
        variables["FACEPAIRS_PHOTO_CACHE"] = str(self.work / "photos.sqlite")
        began = time.monotonic()
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.work, env=variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1):  # 1: `verify` has found different people
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return time.monotonic() - began

    def draw_faces(self) -> None:
        """Write the photos and lists that the trials need."""
        self.run("facepairs", "data", "synth", "--out", "faces", "--people", "40", "--photos", "4")
        photos = sorted((self.work / "faces").glob("*/*.jpg"))
        for name, photo in ((LEFT, photos[0]), (RIGHT, photos[1])):
            (self.work / name).write_bytes(photo.read_bytes())
        rows = [
            f"{photos[at]},{photos[at + step]},{int(step == 1)}\n"
            for at in range(0, len(photos) - 4, 4)
            for step in (1, 4)
        ]
        (self.work / "pairs.csv").write_text("left,right,genuine\n" + "".join(rows))

    def seconds(self, *command: str) -> float:
        """Return the median seconds of a command."""
        return statistics.median(self.run(*command) for _ in range(RUNS))


def check_size(wheel: Path) -> None:
    """Print the size of a wheel; exit if it is too large."""
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.1f} MB")
    if size > MAX_WHEEL_BYTES:
        sys.exit(f"the wheel is larger than {MAX_WHEEL_BYTES / 1e6:.0f} MB")


def try_extra(environment: Environment, extra: str = "core") -> list[str]:
    """Run the trials of an extra, and return the cells of its row."""
    if extra == "core" and environment.installed_mb > MAX_CORE_MB:
        sys.exit(f"the core takes {environment.installed_mb:.0f} MB, more than {MAX_CORE_MB}")
    environment.draw_faces()
    first_s = environment.run("facepairs", "verify", LEFT, RIGHT)
    for code in CODE.get(extra, ()):
        environment.run("python", "-c", code)
    for words in dict.fromkeys([*TRIALS["core"], *TRIALS[extra]]):
        environment.run("facepairs", *words)
    figures = [
        environment.install_s,
        first_s,
        environment.seconds("facepairs", "--version"),
        environment.seconds("facepairs", "verify", LEFT, RIGHT),
    ]
    return [extra, f"{environment.installed_mb:.0f}", *(f"{figure:.2f}" for figure in figures)]


def main(arguments: list[str] | None = None) -> int:
    """Print a table with a row for each extra."""
    parser = argparse.ArgumentParser(description="Install a wheel and try it.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("extras", nargs="+", choices=TRIALS)
    options = parser.parse_args(arguments)
    check_size(options.wheel)
    columns = ["extra", "installed MB", "pip install s", "first verdict s", "--version s",
               "verify s"]  # fmt: skip
    print(*columns, sep=" | ", flush=True)
    for extra in options.extras:
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(Path(folder), options.wheel, extra)
            print(*try_extra(environment, extra), sep=" | ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
