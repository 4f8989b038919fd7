"""The notebooks of the tutorials run from their beginning to their end."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
TUTORIALS, EXAMPLES = ROOT / "docs" / "tutorials", ROOT / "examples" / "notebooks"
NOTEBOOKS = [*sorted(TUTORIALS.glob("*.ipynb")), *sorted(EXAMPLES.glob("*.ipynb"))]


def outputs(cell: nbformat.NotebookNode) -> str:
    """Return what a cell prints; TensorFlow's own messages, on stderr, are not kept."""
    streams = (output for output in cell.get("outputs", ()) if output.get("name") == "stdout")
    return "".join(output["text"] for output in streams)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    published = [outputs(cell) for cell in notebook.cells]
    place = EXAMPLES if path.parent == EXAMPLES else tmp_path  # one reads the repository's scores
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": place}}).execute()
    for cell, before in zip(notebook.cells, published, strict=True):
        assert bool(outputs(cell)) == bool(before), cell.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_published_notebooks_hold_their_outputs_and_no_private_paths(path):
    notebook = nbformat.read(path, as_version=4)
    text = "".join(map(outputs, notebook.cells))
    assert text
    assert not any(place in text for place in ("/home", "/work", "/tmp", "Traceback"))
    kinds = [output.get("name") for cell in notebook.cells for output in cell.get("outputs", ())]
    assert set(kinds) <= {"stdout", None}  # None: a value that shows itself
