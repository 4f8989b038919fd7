"""README and docs: commands parse, Python runs, links resolve, layers and figures are true."""

import csv
import json
import re
import shlex
import shutil
import statistics
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield the page's name and the text of every fenced block of a language."""
    for page in PAGES:
        for found, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if found == language:
                yield page.name, text


def shell_commands() -> list[tuple[str, str]]:
    """Return the page's name and the text of every command in a block without a language."""
    commands = []
    for page, text in [*blocks(""), *blocks("sh")]:
        for line in text.replace("\\\n", " ").splitlines():
            command = re.split(r"\s#\s", line)[0].strip()
            if command.startswith(("facepairs ", "python ", "make ", "TF_CONFIG=")):
                commands.append((page, command))
    return commands


def parse(words: list[str]) -> None:
    """Parse a command of facepairs without running it; raise for an unknown option or value."""
    from facepairs.cli.main import build_command

    command: Any = build_command()
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words)


def test_there_are_commands_to_check():
    assert len(shell_commands()) > 60


@pytest.mark.parametrize(("page", "command"), shell_commands())
def test_commands_exist_with_their_options(page, command):
    words = [word for word in shlex.split(command) if not word.startswith("TF_CONFIG=")]
    if words[0] == "facepairs":
        parse(words[1:])
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        script = (ROOT / words[1]).read_text()
        for option in (word for word in words if word.startswith("--")):
            assert f'"{option}"' in script


def test_scripts_and_targets_in_the_text_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:scripts|tests)/[\w/]+(?:\.\w+|/)?)", text):
            assert (ROOT / path).exists(), (page.name, path)
        for target in re.findall(r"`make ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (page.name, target)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_links_lead_to_pages_and_headings():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, heading = link.partition("#")
            target = page.parent / path
            assert target.exists(), (page.name, link)
            if heading:
                assert heading in anchors(target), (page.name, link)


def test_python_runs(tmp_path, monkeypatch):
    from facepairs.data.synth.folder import write_synthetic_faces

    write_synthetic_faces(tmp_path / "faces", people=1, images=2, seed=3)
    photos = sorted((tmp_path / "faces").glob("*/*.jpg"))
    for name, photo in zip(("a.jpg", "b.jpg"), photos, strict=True):
        shutil.copy(photo, tmp_path / name)
    shutil.copytree(ROOT / "facepairs" / "default_model", tmp_path / "run" / "bundle")
    monkeypatch.chdir(tmp_path)
    snippets = list(blocks("python"))
    assert snippets
    for _, text in snippets:
        names: dict[str, Any] = {}
        exec(compile(text, "snippet", "exec"), names)
        assert names["verdict"].score == pytest.approx(
            float(names["embeddings"][0] @ names["embeddings"][1]), abs=1e-4
        )
        assert names["embeddings"].shape == (2, 128)


def test_the_toml_of_an_embedder_is_valid():
    snippets = list(blocks("toml"))
    assert snippets
    for _, text in snippets:
        values = tomllib.loads(text)
        assert {"file", "size_px", "layout", "distance"} <= set(values)


def test_the_readme_is_short_and_lists_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    for page in PAGES[1:]:
        assert f"(docs/{page.name})" in text


def test_the_layers_of_the_readme_are_the_import_contracts():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    table = re.findall(r"^\| \d+ \| ([^|]+) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", cell)) for cell in table] == [
        {name.strip().removeprefix("facepairs.") for name in layer.split("|")} for layer in layers
    ]


def view2_accuracy(folder: Path) -> str:
    """Recompute mean accuracy and standard error over the folds from a method's scores file."""
    result = json.loads((folder / "result.json").read_text())
    thresholds = {fold["fold"]: fold["threshold"] for fold in result["folds"]}
    correct: dict[int, list[bool]] = {fold: [] for fold in thresholds}
    with open(folder / "scores.csv", newline="") as handle:
        for row in csv.DictReader(handle):
            accepted = float(row["score"]) >= thresholds[int(row["fold"])]
            correct[int(row["fold"])].append(accepted == (row["genuine"] == "1"))
    accuracy = [statistics.mean(answers) for answers in correct.values()]
    error = statistics.stdev(accuracy) / len(accuracy) ** 0.5
    return f"{statistics.mean(accuracy):.4f} ± {error:.4f}".replace("0.", ".")


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_published_view2_figures_follow_from_the_scores(page):
    from facepairs.evaluation.metrics.curves import auc

    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")]
    methods = sorted((ROOT / "scripts" / "results").glob("view2*/*/scores.csv"))
    assert len(methods) == 6
    for folder in (path.parent for path in methods):
        figures = view2_accuracy(folder)
        row = next((line for line in rows if figures in line), "")
        assert row, (folder.name, figures)
        with open(folder / "scores.csv", newline="") as handle:
            pairs = [(row["genuine"] == "1", float(row["score"])) for row in csv.DictReader(handle)]
        genuine, scores = zip(*pairs, strict=True)
        assert f"| {auc(genuine, scores):.4f} |".replace("0.", ".") in row
