"""README and docs: commands parse, Python runs, links resolve, layers and figures are true."""

import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield the page's name and the text of every fenced block of a language."""
    for page in PAGES:
        for found, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if found == language:
                yield name_of(page), text


def shell_commands() -> list[tuple[str, str]]:
    """Return the page's name and the text of every command in a block without a language."""
    commands = []
    for page, text in [*blocks(""), *blocks("sh")]:
        for line in text.replace("\\\n", " ").splitlines():
            command = re.split(r"\s#\s", line)[0].strip().removeprefix("$ ")
            if command.startswith(("facepairs ", "python ", "make ", "TF_CONFIG=")):
                commands.append((page, command))
    return commands


def parse(words: list[str]) -> None:
    """Parse a command of facepairs without running it; raise for an unknown option or value."""
    from facepairs.cli.app import build_command

    command: Any = build_command()
    while hasattr(command, "list_commands"):
        name = words.pop(0)
        command = command.get_command(None, name)
        assert command, name
    with mock.patch.dict(os.environ):  # global options set variables
        command.make_context(command.name, words)


def test_every_variable_of_the_environment_is_in_the_reference():
    names = re.compile(r"\bFACEPAIRS_[A-Z_]+\b")
    package = "".join(path.read_text("utf-8") for path in (ROOT / "facepairs").rglob("*.py"))
    reference = (DOCS / "reference" / "settings.md").read_text("utf-8")
    assert set(names.findall(package)) == set(names.findall(reference))


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
        for path in re.findall(r"`((?:scripts|tests|examples)/[\w/]+(?:\.\w+|/)?)", text):
            assert (ROOT / path).exists(), (page, path)
        for target in re.findall(r"`make ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (page, target)


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("reference/python-api.md", "keras_fit.py"),
        ("tutorials/verify-in-a-web-app.md", "web_app.py"),
    ],
)
def test_code_in_a_page_is_the_example_that_runs(page, example):
    code = (ROOT / "examples" / example).read_text(encoding="utf-8")
    assert f"```py\n{code}```" in (DOCS / page).read_text(encoding="utf-8")


def test_the_journey_of_an_image_names_functions_where_they_are():
    text = (DOCS / "explanation" / "input-pipeline.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\| [^|]+ \| `([\w.]+)`[^|]*\| `([\w/]+\.py)` \|", text, re.MULTILINE)
    assert len(steps) > 5
    for function, file in steps:
        code = (ROOT / "facepairs" / file).read_text(encoding="utf-8")
        for name in function.split("."):
            assert re.search(rf"^ *(def|class) {name}\b", code, re.MULTILINE), (function, file)


def test_links_of_the_readme_lead_to_files():
    """MkDocs checks those of the other pages."""
    for link in re.findall(r"\]\(([^)\s]+)\)", README.read_text(encoding="utf-8")):
        assert link.startswith(("https://", "#")) or (ROOT / link.partition("#")[0]).exists(), link


def test_python_runs(tmp_path, monkeypatch):
    from facepairs.data.synth.folder import write_synthetic_faces

    write_synthetic_faces(tmp_path / "faces", people=1, photos=2, seed=3)
    photos = sorted((tmp_path / "faces").glob("*/*.jpg"))
    for name, photo in zip(("a.jpg", "b.jpg"), photos, strict=True):
        shutil.copy(photo, tmp_path / name)
    shutil.copytree(ROOT / "facepairs" / "default_model", tmp_path / "run" / "bundle")
    monkeypatch.chdir(tmp_path)
    snippets = [(page, text) for page, text in blocks("python") if page != "README.md"]
    assert snippets
    for page, text in snippets:
        names: dict[str, Any] = {}
        exec(compile(text, page, "exec"), names)
        result = names["verdict" if "verdict" in names else "found"]
        assert result.point.errors.measured_on
        if "embeddings" in names:
            assert names["verdict"].score == pytest.approx(
                float(names["embeddings"][0] @ names["embeddings"][1]), abs=1e-4
            )


def test_the_toml_of_an_embedder_is_valid(tmp_path):
    from facepairs.bundles.embedder import EmbedderToml
    from facepairs.bundles.networks import RemoteNetwork
    from facepairs.support.validation import validate

    snippets = list(blocks("toml"))
    assert len(snippets) >= 2
    for page, text in snippets:
        table = tomllib.loads(text)
        if "file" in table:
            assert validate(table, EmbedderToml, page).size_px == 112
        else:  # a table of networks
            (network,) = (validate(one, RemoteNetwork, page) for one in table.values())
            assert network.embedder.size_px == 112


def test_the_layers_of_the_design_are_the_import_contracts():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    design = (DOCS / "explanation" / "design.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| \d+ \| ([^|]+) \|", design, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", cell)) for cell in table] == [
        {name.strip().removeprefix("facepairs.") for name in layer.split("|")} for layer in layers
    ]


def test_the_settings_that_depend_on_the_model_are_the_recipes():
    from facepairs.config import TrainConfig

    models = ("resnet", "fisher", "siamese", "difference")
    columns = [TrainConfig(model=name).resolve() for name in models]
    text = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8").partition("## All")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    assert {"batch_size", "learning_rate"} <= {name for name, _ in rows} <= set(vars(TrainConfig()))
    for name, cells in rows:
        for cell, config in zip(cells.split(" | "), columns, strict=True):
            value = config.max_epochs if name == "epochs" else getattr(config, name)
            if re.fullmatch(r"[\d.,]+", cell):
                assert float(cell.replace(",", "")) == value, (name, cell)


def test_the_errors_in_printed_verdicts_are_those_of_the_model():
    from facepairs import Verifier

    point = Verifier.load().operating_point()
    verdicts = [
        (page, text)
        for page, text in blocks("")
        if "at this threshold" in text and "\nerrors " in text and "--bundle" not in text
    ]
    assert verdicts
    for page, text in verdicts:
        errors, missed = re.findall(r"errors +at this threshold (.*)\n +(.*)", text)[0]
        assert f"{errors}; {missed}" == point.describe(), page
        assert f"(threshold {point.threshold:.4f}: {point.label})" in text, page


def test_pages_load_nothing_from_other_hosts():
    for page in [*DOCS.rglob("*.md"), *DOCS.rglob("*.css"), *DOCS.rglob("*.svg")]:
        text = page.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(src=|href=|url\(|!\[[^\]]*\]\()[\"']?https?:", text), page
