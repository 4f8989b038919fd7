"""The core alone verifies; `measure` adds measuring, still without TensorFlow."""

import json
import sys
from importlib.metadata import packages_distributions

import pytest
from packaging.utils import canonicalize_name
from processes.command_line import SEVERAL, Result
from processes.core_environment import extra_packages, link_core, run_in
from tiny.embedders import embedder

from facepairs.cli.app import COMMANDS, build_command
from facepairs.support.extras import EXTRAS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs links between folders")
FACES = "faces"


def run_several(environment, work, *lines):
    """Run commands in one process and a folder; each gives its exit code, stdout and stderr."""
    words = json.dumps([list(map(str, line)) for line in lines])
    done = run_in(environment, "-c", SEVERAL, words, cwd=work)
    assert done.returncode == 0, done.stderr
    results = [Result(*result) for result in json.loads(done.stdout)]
    assert not any("Traceback" in result.stderr for result in results), results
    return results


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """A function that runs commands with the core alone, in a folder with drawn faces."""
    work = tmp_path_factory.mktemp("core")
    environment = link_core(work / "site")

    def run(*lines):
        return run_several(environment, work, *lines)

    run.work = work
    (drawn,) = run(("data", "synth", "--out", FACES, "--people", 3, "--photos", 2))
    assert drawn.returncode == 0, drawn.stderr
    run.photos = sorted(str(path.relative_to(work)) for path in (work / FACES).glob("*/*.jpg"))
    rows = [
        f"{left},{right},{int(left.split('/')[1] == right.split('/')[1])}"
        for at, left in enumerate(run.photos)
        for right in run.photos[at + 1 :]
    ]
    (work / "pairs.csv").write_text("\n".join(["left,right,genuine", *rows, ""]))
    return run


def command_lines(command, words=()):
    """Return the words of every command of a group."""
    if not hasattr(command, "list_commands"):
        return [words]
    return [
        line
        for name in command.list_commands(None)
        for line in command_lines(command.get_command(None, name), (*words, name))
    ]


def test_every_command_shows_its_help(core):
    lines = [(), *command_lines(build_command())]
    assert len(lines) > len(COMMANDS)
    for words, shown in zip(lines, core(*((*words, "--help") for words in lines)), strict=True):
        assert shown.returncode == 0, words
        assert "Usage: " in shown.stdout, words


def test_it_verifies_searches_enrols_scores_and_checks(core):
    first, second = core.photos[:2]
    verified, searched, added, named, scored, shown, checked = core(
        ("verify", first, second, "--json"),
        ("search", first, FACES, "--json"),
        ("gallery", "add", "known", FACES, "--any-quality", "--json"),
        ("gallery", "identify", "known", first, "--json"),
        ("score", "pairs.csv", "--out", "scores.csv"),
        ("info", "default"),
        ("data", "check", FACES),
    )
    assert verified.returncode in (0, 1), verified.stderr
    verdict = json.loads(verified.stdout)
    assert [verdict[side]["faces"] for side in ("left", "right")] == [1, 1]
    found = {f"{FACES}/{photo['path']}" for photo in json.loads(searched.stdout)["photos"]}
    assert found == set(core.photos[1:])  # all but the photo itself
    assert json.loads(added.stdout)["photos"] == len(core.photos)
    assert json.loads(named.stdout)["faces"][0]["name"] == first.split("/")[1]
    assert [done.returncode for done in (scored, shown, checked)] == [0, 0, 0]
    assert "all SHA-256 checksums match" in shown.stdout


MISSING = {
    ("train", FACES, "--out", "run"): ("facepairs.train", "train"),
    ("crossval", FACES, "--lists", "lists", "--out", "run"): ("facepairs.crossval", "train"),
    ("calibrate", "default", FACES, "--out", "mine"): ("facepairs.calibrate", "measure"),
    ("export", "default", "--out", "phone"): ("facepairs export", "train"),
    ("bench", FACES): ("facepairs bench", "train"),
    ("serve",): ("facepairs serve", "serve"),
    ("gallery", "list", "postgresql://host/name"): ("a gallery in PostgreSQL", "postgres"),
    ("cache", "build", FACES, "--out", "cache", "--pair-count", "9"): (
        "facepairs cache build",
        "train",
    ),
    ("evaluate", "default", FACES): ("facepairs.evaluate", "measure"),
    ("evaluate", "scores.csv"): ("facepairs.evaluate", "measure"),
}  # fmt: skip


def test_a_missing_extra_is_one_line_for_people_and_an_object_for_programs(core):
    done = core(*([*words, *json_] for words in MISSING for json_ in ([], ["--json"])))
    for (words, (what, extra)), for_people, (code, out, err) in zip(
        MISSING.items(), done[::2], done[1::2], strict=True
    ):
        advice = f"in a clone of facepairs, run: pip install '.[{extra}]'"
        message = f"{what} needs the {extra} extra; {advice}"
        assert for_people == (2, "", f"facepairs: error: {message}\n"), words
        assert (code, err) == (2, ""), words
        assert json.loads(out) == {"error": {"kind": "missing_extra", "message": message}}


def test_the_quick_demo_needs_no_extra_and_the_whole_one_names_it(tmp_path):
    environment = link_core(tmp_path / "site")
    quick = run_in(environment, "-m", "facepairs", "demo", "--quick", cwd=tmp_path)
    assert (quick.returncode, quick.stderr) == (0, "")
    whole = run_in(environment, "-m", "facepairs", "demo", cwd=tmp_path)
    assert (whole.returncode, whole.stdout) == (2, "")
    assert "pip install '.[train]'" in whole.stderr


def test_an_extra_is_asked_for_by_each_of_its_packages():
    """The modules that are looked for come from the packages that the extra installs."""
    packages = packages_distributions()
    for extra, modules in EXTRAS.items():
        looked_for = {canonicalize_name(packages[module][0]) for module in modules}
        assert looked_for == extra_packages(extra), extra


def test_measure_calibrates_and_evaluates_on_photos(tmp_path):
    environment = link_core(tmp_path / "site", "measure")
    people = ("--people", 8, "--photos", 3)
    toml = embedder(tmp_path / "copied", align="landmarks", crop=0.625)
    lines = (
        ("data", "synth", "--out", FACES, *people),
        ("data", "synth", "--out", "others", *people, "--seed", 2),
        ("data", "check", FACES),
        ("calibrate", "default", FACES, "--out", "mine"),
        ("calibrate", toml, FACES, "--out", "embedder"),
        ("evaluate", "mine", "others", "--out", "scores.csv", "--report", "report.html"),
    )
    for words, done in zip(lines, run_several(environment, tmp_path, *lines), strict=True):
        assert done.returncode == 0, (words, done.stderr)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    code = (
        "import facepairs; found = facepairs.evaluate('scores.csv'); "
        "print(len(found.measurements[0].pairs) > 20)"
    )
    assert run_in(environment, "-c", code, cwd=tmp_path).stdout == "True\n"
