"""`facepairs runs` lists runs, finished or not, and says in which settings they differ."""

import json
import shutil

import pytest
from processes.command_line import in_process

from facepairs.support.lock import held


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    """A folder with a finished run `a` and a run `b` that was stopped in its last epoch."""
    folder = tmp_path_factory.mktemp("runs")
    left_out = shutil.ignore_patterns("tensorboard", "checkpoint.npz")
    for name in ("a", "b"):
        shutil.copytree(run.folder, folder / name, ignore=left_out)
    stopped = folder / "b"
    (stopped / "result.json").unlink()
    rows = json.loads((stopped / "history.json").read_text())
    (stopped / "history.json").write_text(json.dumps(rows[:1]))
    config = (stopped / "config.toml").read_text()
    (stopped / "config.toml").write_text(config.replace("seed = 0", "seed = 3"))
    (folder / "photos").mkdir()
    return folder


def test_runs_are_listed_with_their_figures(run, folder):
    header, first, second = in_process("runs", folder, check=0).stdout.splitlines()
    assert header.split()[:4] == ["run", "state", "model", "people"]
    people, auc = run.report["people"]["training"], f"{run.report['val_auc']:.4f}"
    assert first.split()[:4] == [str(folder / "a"), "finished", "siamese-small", str(people)]
    assert auc in first.split()
    assert second.split()[1:7] == ["stopped", "siamese-small", "-", "1", "of", "2"]


def test_named_runs_are_compared_by_their_settings(run, folder):
    words = ("runs", folder / "a", folder / "b")
    table = in_process(*words, check=0).stdout.partition("\n\n")[2].splitlines()
    assert [line.split() for line in table] == [
        ["setting", str(folder / "a"), str(folder / "b")],
        ["seed", "0", "3"],
    ]
    printed = json.loads(in_process(*words, "--json", check=0).stdout)
    assert printed["differing_settings"] == {"seed": [0, 3]}
    finished, stopped = printed["runs"]
    assert finished["val_auc"] == run.report["val_auc"]
    assert (finished["state"], finished["people"]) == ("finished", run.report["people"])
    assert (stopped["state"], stopped["epochs"], stopped["minutes"]) == ("stopped", 1, None)
    assert stopped["config"]["seed"] == 3


def test_a_run_in_use_is_running(folder):
    with held(folder / "b" / "run.lock", folder / "b"):
        assert "running" in in_process("runs", folder / "b", check=0).stdout


@pytest.mark.parametrize("damage", ['{"a": 1}', "[1]", "5", "null", "["])
def test_a_damaged_history_counts_as_empty(folder, tmp_path, damage):
    for name in ("a", "b"):
        shutil.copytree(folder / name, tmp_path / name)
        (tmp_path / name / "history.json").write_text(damage)
    first, second = json.loads(in_process("runs", tmp_path, "--json", check=0).stdout)["runs"]
    assert (first["state"], first["loss"]) == ("finished", None)
    assert (second["state"], second["epochs"]) == ("stopped", 0)


def test_a_folder_without_runs_is_refused(folder):
    done = in_process("runs", folder / "photos", check=2)
    assert done.stderr == (
        f"facepairs: error: {folder / 'photos'}: no run of `facepairs train` in it; name a run, or "
        "their folder\n"
    )
