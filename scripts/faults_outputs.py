"""Commands that write something in a second or two: squeezed, as the others are, but not killed."""

import json
from collections.abc import Callable
from pathlib import Path

from faults_job import Broken, Job
from faults_process import Work, command_line


def _simple(
    name: str,
    words: Callable[[Path], tuple[object, ...]],
    output: str,
    whole: Callable[[Path], object],
) -> Job:
    """Describe a command that writes `output`, of which `whole` raises where it is not."""

    def work(place: Path) -> Work:
        return command_line(*words(place))

    def state(place: Path) -> bool:
        if not (place / output).exists():
            return False
        whole(place / output)
        return True

    return Job(name, work, work, (output,), state, state)


def evaluate_job(base: Path) -> Job:
    def words(place: Path) -> tuple[object, ...]:
        out = place / "out"
        return ("evaluate", "default", base / "faces", "--scores", out / "scores.csv",
                "--report", out / "report.html", "--report-dir", out / "plots")  # fmt: skip

    def whole(out: Path) -> None:
        from facepairs.evaluation.scores import read_scores

        if (out / "scores.csv").exists():
            read_scores(out / "scores.csv")
        report = out / "report.html"
        if report.exists() and not report.read_text().rstrip().endswith("</html>"):
            raise Broken(f"{report} is cut")
        if (out / "plots").exists() and not any((out / "plots").iterdir()):
            raise Broken("an empty folder of plots")

    return _simple("evaluate", words, "out", whole)


def export_job(base: Path) -> Job:
    def whole(out: Path) -> None:
        import onnx

        json.loads((out / "export.json").read_text())
        onnx.load(out / "network.onnx")

    return _simple("export", lambda place: ("export", "default", place / "out"), "out", whole)


def frame_job(base: Path) -> Job:
    return _simple(
        "frame",
        lambda place: ("data", "frame", base / "many", place / "out"),
        "out",
        lambda out: _photos(out, len(list((base / "many").glob("*/*.jpg")))),
    )


def synth_job(base: Path) -> Job:
    return _simple(
        "synth",
        lambda place: ("data", "synth", place / "out", "--people", 20, "--images", 3),
        "out",
        lambda out: _photos(out, 60),
    )


def _photos(folder: Path, wanted: int) -> None:
    from PIL import Image

    paths = list(folder.glob("*/*.jpg"))
    if len(paths) != wanted:
        raise Broken(f"{folder}: {len(paths)} photos, not {wanted}")
    for path in paths:
        with Image.open(path) as photo:
            photo.load()


def check_job(base: Path) -> Job:
    """It writes nothing."""
    return _simple("check", lambda place: ("data", "check", base / "faces"), "none", Path.stat)


PLAIN = {
    "evaluate": evaluate_job,
    "export": export_job,
    "frame": frame_job,
    "synth": synth_job,
    "check": check_job,
}
