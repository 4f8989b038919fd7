"""`facepairs demo`: the whole workflow on drawn faces."""

import json
import os
import re
import subprocess
import sys

import pytest
from processes.command_line import facepairs, in_process


def test_a_step_that_fails_ends_the_demo(tmp_path):
    person = tmp_path / "demo" / "faces" / "Somebody"
    person.mkdir(parents=True)
    (person / "photo.jpg").write_bytes(b"no image")
    done = facepairs("demo", "--out", tmp_path / "demo", check=2)
    assert "$ facepairs data check" in done.stdout
    assert "train" not in done.stdout
    assert not (tmp_path / "demo" / "run").exists()
    report = json.loads(in_process("demo", "--out", tmp_path / "demo", "--json", check=2).stdout)
    (step,) = report["steps"]
    assert step["command"] == f"facepairs data check {tmp_path / 'demo' / 'faces'}"
    assert step["exit_code"] == 1
    assert not step["result"]["ok"]
    assert report["auc"] is None


@pytest.mark.skipif(sys.platform != "linux", reason="terminals and displays of Linux")
@pytest.mark.parametrize(("terminal", "display"), [(True, True), (True, False), (False, True)])
def test_the_report_opens_in_a_terminal_with_a_display_alone(tmp_path, terminal, display):
    page, opened, browser = (tmp_path / name for name in ("page.html", "opened", "browser"))
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o700)
    unset = {"DISPLAY", "WAYLAND_DISPLAY"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"BROWSER": str(browser)} | ({"DISPLAY": ":0"} if display else {})
    code = "from pathlib import Path; from facepairs.training import demo"
    code += f"; demo.open_page(Path({str(page)!r}))"
    seen, written = os.openpty() if terminal else os.pipe()
    subprocess.run([sys.executable, "-c", code], stdout=written, env=environment, check=True)
    os.close(seen)
    os.close(written)
    assert opened.exists() == (terminal and display)
    assert not opened.exists() or opened.read_text().strip() == page.as_uri()


@pytest.mark.slow
def test_the_demo_draws_trains_measures_and_verifies(tmp_path):
    out = tmp_path / "demo"
    done = facepairs("demo", "--out", out, "--people", 60, "--epochs", 1, check=0)
    commands = re.findall(r"^\$ facepairs (\w+)", done.stdout, re.MULTILINE)
    assert commands == ["data", "data", "train", "evaluate", "evaluate", "verify", "verify"]
    assert done.stdout.count("\nverdict ") == 2
    assert re.search(r"^AUC on people it has never met: [01]\.\d{4}$", done.stdout, re.MULTILINE)
    assert len(list((out / "faces").iterdir())) == 60
    assert (
        f"Its errors, with the photos that it got most wrong: {out / 'report.html'}" in done.stdout
    )
    assert (out / "report.html").stat().st_size > 10_000
    again = facepairs("demo", "--out", out, "--json", check=0)  # the run is finished: resumes
    report = json.loads(again.stdout)
    names = [step["command"].split()[1] for step in report["steps"]]
    assert names == ["data", "train", "evaluate", "evaluate", "verify", "verify"]
    assert "--resume" in report["steps"][1]["command"]
    assert [step["result"]["same"] for step in report["steps"][-2:]] != [None, None]
    assert 0 <= report["auc"] <= 1
