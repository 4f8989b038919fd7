"""Time while a process was stopped does not count as running time."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image
from tiny.bundles import FRAME_PX, tiny_bundle

from facepairs.training import clock

CHILD = """
import sys, time
from facepairs.training.clock import RunningClock
clock = RunningClock(0.05, 0.5)
started, real = clock(), time.perf_counter()
print(flush=True)
least, before = 0.0, started
while sys.argv[1] == "busy" and time.perf_counter() - real < 1.4:
    least, before = min(least, clock() - before), clock()
sys.stdin.readline()
print(clock() - started, time.perf_counter() - real, least)
"""


@pytest.mark.parametrize("what", ["busy", "waiting"])
@pytest.mark.skipif(
    not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped on this system"
)
def test_time_while_stopped_does_not_count(what):
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(1.2)
        os.kill(child.pid, signal.SIGCONT)
        ran, real, least = map(float, child.communicate(b"\n")[0].split())
    assert real >= 1.2
    assert ran <= real - 0.7
    assert ran >= 0.04  # of a gap, one interval between two readings counts
    assert least >= 0  # it never goes back, whichever thread finds the gap


def test_time_while_running_counts():
    around = time.perf_counter()
    started, within = clock.running_s(), time.perf_counter()
    before = started
    while time.perf_counter() - within < 0.2:
        now = clock.running_s()
        assert now >= before
        before = now
    within = time.perf_counter() - within
    assert within <= clock.running_s() - started <= time.perf_counter() - around


JUMPING = """
import sys, time
real, jumps = time.time, []
def jumping():
    jumps.append(1)
    return real() + (-1) ** len(jumps) * 1e8 * len(jumps)
time.time = jumping
from facepairs.cli.main import main
main(sys.argv[1:])
"""


def test_a_jumping_wall_clock_changes_nothing(tmp_path):
    folder = tiny_bundle(tmp_path / "bundle", "embedding").folder
    for number in range(3):
        photo = Image.new("RGB", (FRAME_PX, FRAME_PX), (90 * number, 30, 60))
        photo.save(tmp_path / f"{number}.png")
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n1.png,2.png\n")
    words = [
        "verify",
        "--pairs",
        "pairs.csv",
        "--out",
        "out.csv",
        "--bundle",
        folder,
        "--json",
        "--quiet",
    ]
    done = subprocess.run(
        [sys.executable, "-c", JUMPING, *map(str, words)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert 0 <= json.loads(done.stdout)["seconds"] < 600
