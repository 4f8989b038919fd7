"""The package imports and its core works where modules and calls of Linux are missing."""

import ctypes
import subprocess
import sys
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from PIL import Image
from tiny.bundles import FRAME_PX, tiny_bundle

import facepairs
from facepairs.support import platform

# Imported before the removal: these belong to other packages and adapt to their system themselves.
WITHOUT = """
import sys
sys.path[:0] = {path!r}
import asyncio, ctypes, multiprocessing, socket, ssl, subprocess, tempfile, urllib.request, zipfile
import numpy, psutil, typer, rich.console, jinja2, PIL.Image, PIL.ImageFont
import concurrent.futures.process
import onnxruntime, filelock, uvicorn
for name in ("fcntl", "resource", "pwd", "grp", "termios", "posix_spawn"):
    sys.modules[name] = None
import os, signal
for name in ("posix_fallocate", "sched_getaffinity", "killpg",
             "getuid", "geteuid", "fork", "mkfifo"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGUSR1", "SIGALRM", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
sys.platform = {system!r}
"""
CORE = """
from pathlib import Path
import psutil
from facepairs import Verifier
from facepairs.evaluation.dataset_check import check_dataset
from facepairs.support.atomic import atomic_file, atomic_folder
from facepairs.support.lock import held
from facepairs.support.machine import describe
from facepairs.support.platform import cores, keep_freed_memory, return_freed_memory
keep_freed_memory(), return_freed_memory()
assert describe()["cores"] == cores() >= 1
assert describe()["memory_gb"] == round(psutil.virtual_memory().total / 1024**3, 1)
with held(Path("lock"), Path("what")), atomic_folder(Path("out")) as out:
    with atomic_file(out / "file") as handle:
        handle.write("text")
assert Path("out/file").read_text() == "text"
print(Verifier.load(sys.argv[1]).verify("a.png", "b.png").score)
"""
EVERY_MODULE = """
import importlib, pathlib
import facepairs
root = pathlib.Path(facepairs.__file__).parent
tensorflow = {"fisher", "models", "pipeline", "training", "bench"}
extras = {"beam", "postgres.py", "face_embedder.py"}
skipped = tensorflow | extras | {"__main__.py"}
files = [path.relative_to(root.parent) for path in sorted(root.rglob("*.py"))]
names = [".".join(path.with_suffix("").parts) for path in files if not skipped & set(path.parts)]
for name in names:
    importlib.import_module(name)
assert "tensorflow" not in sys.modules
print(len(names))
"""


def run(code, system, *words, cwd):
    return run_here(WITHOUT.format(path=sys.path, system=system) + code, *words, cwd=cwd)


def run_here(code, *words, cwd):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_works_and_modules_import_without_the_calls_of_linux(tmp_path):
    folder = tiny_bundle(tmp_path / "bundle", "embedding").folder
    places = [tmp_path / name for name in ("here", "linux", "win32")]
    for place in places:
        place.mkdir()
        for name, colour in (("a", 20), ("b", 220)):
            Image.new("RGB", (FRAME_PX, FRAME_PX), (colour, 90, 90)).save(place / f"{name}.png")
    here = run_here("import sys" + CORE, folder, cwd=places[0])
    assert run(CORE, "linux", folder, cwd=places[1]) == here
    score, modules = run(CORE + EVERY_MODULE, "win32", folder, cwd=places[2]).splitlines()
    assert score == here.strip() != ""
    assert int(modules) > 60


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc can do this")
def test_the_memory_of_a_batch_is_used_again_and_returned_on_request():
    code = """
import resource, psutil, numpy as np
from facepairs.support.platform import keep_freed_memory, return_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(20 * 2**20, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
keep_freed_memory()
first, again, held = faults(), faults(), psutil.Process().memory_info().rss
return_freed_memory()
print(again < first / 4, held - psutil.Process().memory_info().rss > 15 * 2**20)
"""
    assert run_here(code, cwd=None).split() == ["True", "True"]


def test_the_c_library_is_asked_as_its_header_numbers_it(monkeypatch):
    asked, trimmed = {}, []
    library = SimpleNamespace(mallopt=asked.__setitem__, malloc_trim=trimmed.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    platform.keep_freed_memory()
    platform.return_freed_memory()
    assert asked == {-3: 1 << 25, -1: (1 << 31) - 1, -2: 1 << 26, -8: platform.cores() + 1}
    assert trimmed == [0]


@pytest.mark.parametrize(("counted", "cores"), [(7, 7), (None, 1)])
def test_cores_are_counted_where_none_can_be_kept_from_a_process(monkeypatch, counted, cores):
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: counted)
    assert platform.cores() == cores


def test_what_is_kept_for_ever_is_not_destroyed():
    kept = {1}
    reference = weakref.ref(kept)
    platform.keep_for_ever(kept)
    del kept
    assert reference() == {1}


def test_no_module_but_platform_names_calls_of_one_system():
    words = ("fcntl", "posix_fallocate", "import resource", "mallopt", "malloc_trim", "os.killpg")
    words = (*words, "SIGKILL", "os.getuid", "os.fork", "sched_getaffinity", "import ctypes")
    for path in Path(facepairs.__file__).parent.rglob("*.py"):
        if path.name != "platform.py":
            text = path.read_text("utf-8")
            assert [word for word in words if word in text] == [], path


def test_windows_kills_the_process(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(sys, "platform", "win32")
        platform.kill_with_children(process)
        assert process.wait(30) != 0


def test_a_process_is_killed_with_its_children():
    code = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'],"
        " stdin=subprocess.PIPE); print(child.pid, flush=True); child.wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    platform.kill_with_children(process)
    process.communicate()
    assert process.returncode != 0
    for _ in range(200):  # the system may need a moment
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the child still runs")
    platform.kill_with_children(process)  # it has ended already
