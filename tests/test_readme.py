"""The README is short and true: its commands, their output, its Python and its server run."""

import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from processes.command_line import facepairs
from processes.live_server import live_server

from facepairs.cli.demo import DRAWN

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs/tutorials/verify-in-a-web-app.md").read_text(encoding="utf-8")
LFW_PHOTOS = {
    "me_2019.jpg": "Abel_Pacheco/Abel_Pacheco_0001.jpg",
    "me_today.jpg": "Abel_Pacheco/Abel_Pacheco_0004.jpg",
    "friend.jpg": "Akhmed_Zakayev/Akhmed_Zakayev_0003.jpg",
}


def blocks(language: str) -> list[str]:
    """Return the text of every fenced block of a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def transcript() -> list[tuple[list[str], list[str]]]:
    """Return the commands that start with `$`, each with the lines of output below it."""
    steps: list[tuple[list[str], list[str]]] = []
    for block in blocks(""):
        lines = block.replace("\\\n", "").splitlines()
        for line in lines if block.startswith("$ ") else []:
            if line.startswith("$ facepairs "):
                steps.append((shlex.split(line.removeprefix("$ facepairs ")), []))
            else:
                steps[-1][1].append(line)
    return steps


def of_real_photos(words: list[str]) -> bool:
    """Return whether a command of the README needs LFW."""
    return any(word in LFW_PHOTOS or "lfw" in word for word in words)


def like(line: str) -> str:
    """Return a line of output without what differs between machines.

    These are numbers, spaces, and whether 30 people support the promise of a false match rate.
    """
    line = re.sub(r" \(at most [^)]*\)|: (balanced|FMR [\d.]+ %)", "", line)
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "0", line)).strip()


def check_output(shown: list[str], stdout: str) -> None:
    """Compare output with what the README shows of it, as far as `…`."""
    shown, printed = (
        [line for line in lines if not line.startswith("As verify decides")]
        for lines in (shown, stdout.splitlines())
    )
    if "…" in shown:
        shown = shown[: shown.index("…")]
        printed = printed[: len(shown)]
    assert [like(line) for line in shown] == [like(line) for line in printed]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a.jpg and b.jpg of one person."""
    here = tmp_path_factory.mktemp("readme")
    for name, photo in zip("ab", ("lunwin_1.jpg", "lunwin_2.jpg"), strict=True):
        (here / f"{name}.jpg").write_bytes((DRAWN / photo).read_bytes())
    return here


@pytest.fixture
def real_photos(lfw, tmp_path) -> Path:
    """A folder as the README has it: lfw/, and photos of one's own, which are LFW's here."""
    (tmp_path / "lfw").symlink_to(lfw)
    for name, photo in LFW_PHOTOS.items():
        (tmp_path / name).symlink_to(lfw / "lfw-deepfunneled" / photo)
    return tmp_path


@pytest.mark.lfw
def test_the_first_result_is_the_one_shown(real_photos):
    ran = []
    for words, shown in transcript():
        if of_real_photos(words) and words[0] == "verify":
            stdout = facepairs(*words, cwd=real_photos).stdout
            end = shown.index("…") if "…" in shown else len(shown)
            assert stdout.splitlines()[:end] == shown[:end]
            ran.append(words[0])
    assert ran == ["verify", "verify"]


def test_drawn_faces_are_judged_as_shown(tmp_path):
    ran = []
    for words, shown in transcript():
        if not of_real_photos(words):
            check_output(shown, facepairs(*words, cwd=tmp_path).stdout)
            ran.append(words[0])
    assert ran == ["demo", "verify", "verify"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_commands_that_train_run_in_order(tmp_path):
    (block,) = (text for text in blocks("") if "\nfacepairs bench" in text)
    drawn = ("--people", 40, "--photos", 4)
    facepairs("data", "synth", "--out", "photos", *drawn, check=0, cwd=tmp_path)
    for photo, name in zip(sorted((tmp_path / "photos").glob("*/*.jpg")), "ab", strict=False):
        (tmp_path / f"{name}.jpg").write_bytes(photo.read_bytes())
    shorter = {"train": ("--epochs", 1), "bench": ("--seconds", 0.1, "--repeats", 1)}
    ran = []
    for line in block.splitlines()[1:]:
        words = shlex.split(line, comments=True)[1:]
        facepairs(*words, *shorter.get(words[0], ()), cwd=tmp_path)
        ran.append(words[0])
    assert ran == ["data", "bench", "train", "evaluate", "verify"]
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_it_is_short_and_its_speeds_are_those_of_the_page_of_results():
    assert len(README.split()) <= 1_200
    page = (ROOT / "docs" / "results" / "speed.md").read_text(encoding="utf-8")
    speeds = re.search(
        r"`files` gives\s+([\d,]+) pairs/s.* ([\d.]+)\stimes a.* `memory` ([\d,]+),\s+(\d+) times",
        README,
        re.DOTALL,
    )
    files, times, memory, memory_times = speeds.groups()
    assert f"`files` gives {files} pairs/s" in page
    assert f"{times} times a Pillow generator" in page
    assert f"`memory` gives {memory} ({memory_times} times)" in page


def test_the_python_example(photos, monkeypatch, capsys):
    monkeypatch.chdir(photos)
    names: dict = {}
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), names)
    assert "same person" in capsys.readouterr().out
    a, b = names["embeddings"]
    assert float(a @ b) == pytest.approx(names["verdict"].score, abs=1e-5)


def test_the_web_application_of_the_tutorial_answers(photos):
    text = (ROOT / "examples" / "web_app.py").read_text(encoding="utf-8")
    (photos / "web_app.py").write_text(text)
    words = re.search(r"^(flask --app web_app run)$", TUTORIAL, re.MULTILINE).group(1).split()
    a, b = (photos / "a.jpg").read_bytes(), (photos / "b.jpg").read_bytes()
    server = subprocess.Popen(
        [sys.executable, "-m", *words, "--port", "0"],
        cwd=photos, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        lines = iter(server.stderr.readline, "")
        url = next(found.group() for line in lines if (found := re.search(r"http://[\w.:]+", line)))

        def post(**files: bytes) -> httpx.Response:
            return httpx.post(f"{url}/verify", files=files, timeout=60)

        with ThreadPoolExecutor(4) as pool:
            (values,) = set(pool.map(lambda _: post(a=a, b=b).text, range(4)))
        refused = [post(a=a, b=b"GIF89a"), post(a=a), post(a=a, b=bytes(20_000_000))]
    finally:
        server.kill()
        server.communicate()
    answer = json.loads(values)
    assert (answer["same"], answer["verdict"]) == (True, "same person")
    assert answer["probability"]
    assert answer["hints"].keys() == {"a", "b"}
    assert [one.status_code for one in refused] == [422, 400, 413]
    assert all(one.json()["error"] for one in refused)


def test_the_server_answers_what_the_readme_sends(photos):
    (lines,) = (text.splitlines() for text in blocks("") if text.startswith("facepairs serve"))
    serve, curl = lines[0].split(), lines[1]
    url = re.search(r"http://127.0.0.1:8756(/\S+)", curl)
    sent = re.findall(r"-F (\w+)=@(\S+)", curl)
    files = {name: (photos / path).read_bytes() for name, path in sent}
    with live_server(*serve[2:]) as server:
        answer = httpx.post(server.url + url.group(1), files=files, timeout=60).json()
    names = [path for _, path in sent]
    printed = facepairs("verify", *names, "--json", check=0, cwd=photos)
    expected = json.loads(printed.stdout)
    assert answer["same"] is expected["same"] is True
    assert answer.keys() == expected.keys()


def test_its_results_are_those_of_the_page_of_results():
    page = (ROOT / "docs" / "results" / "accuracy.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ")[1:] for line in README.splitlines() if " ± ." in line]
    assert len(rows) == 3
    for parts in rows:
        assert any(all(f"| {part} |" in line for part in parts) for line in page), parts
