"""The whole workflow on the command line: train, evaluate, verify, resume, refuse."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from drawn.crop_plans import face_plan
from PIL import Image
from processes import ctrl_c
from processes.checkpoints import saved_arrays
from processes.command_line import command, facepairs, in_process

from facepairs.bundles.bundle import Bundle
from facepairs.support.lock import held

pytestmark = pytest.mark.usefixtures("few_draws", "few_validation_pairs")


def test_training_leaves_a_whole_run_folder(run):
    out, report, messages = run
    assert {p.name for p in out.iterdir()} == {
        "bundle", "checkpoints", "config.toml", "history.json", "log.txt", "result.json",
        "tensorboard",
    }  # fmt: skip
    assert report["epochs"] == 2
    assert report["bundle"] == str(out / "bundle")
    assert sum(report["people"].values()) == 24
    assert "epoch 2/2" in messages
    history = json.loads((out / "history.json").read_text())
    assert [row["epoch"] for row in history] == [1, 2]
    assert all(0 <= row["val_auc"] <= 1 and row["pairs_per_s"] > 0 for row in history)
    names = "MODEL_CARD.md identities.json manifest.json measured.json model.keras network.onnx"
    assert {p.name for p in (out / "bundle").iterdir()} == set(names.split())


def test_evaluation_is_on_people_the_bundle_does_not_know(run, faces, tmp_path):
    scores = tmp_path / "scores.csv"
    done = in_process("evaluate", run.bundle, faces, "--out", scores, "--json", check=0)
    summary = json.loads(done.stdout)
    for key in ("accuracy", "operating_points", "auc", "eer", "tar_at_far", "genuine_pairs",
                "impostor_pairs", "schema"):  # fmt: skip
        assert key in summary
    assert summary["people"] == run.report["people"]["test"]
    assert summary["pairs_with_known_people"] == 0
    assert summary["genuine_pairs"] == 6 * summary["people"]
    alone = json.loads(in_process("evaluate", scores, "--json", check=0).stdout)
    assert alone["auc"]["value"] == pytest.approx(summary["auc"]["value"])


def test_pairs_with_known_people_are_counted(run, faces, tmp_path):
    people = sorted(p.name for p in faces.iterdir())
    rows = [f"{p}/{p}_0001.jpg,{p}/{p}_0002.jpg,1" for p in people]
    rows += [f"{p}/{p}_0001.jpg,{q}/{q}_0001.jpg,0" for p, q in itertools.pairwise(people)]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["left,right,genuine", *rows]) + "\n", encoding="utf-8")
    done = in_process("evaluate", run.bundle, faces, "--pairs", pairs, "--json", check=0)
    assert "the figures are too good" in done.stderr
    assert json.loads(done.stdout)["pairs_with_known_people"] > 0


ERRORS = ("fmr", "lookalike_fmr", "fnmr")


def test_verify_has_verdict_exit_code_and_json(run, faces):
    folder = sorted(faces.iterdir())[0]
    one, other = sorted(folder.iterdir())[:2]
    bundle = ("--bundle", run.bundle)
    done = facepairs("verify", one, other, *bundle, "--json")
    verdict = json.loads(done.stdout)
    assert set(verdict) == {
        "verdict", "same", "probability", "prior", "score", "operating_point", "left", "right",
        "model", "schema", "faces",
    }  # fmt: skip
    assert verdict["operating_point"]["errors"].keys() >= {"fmr", "fnmr", "measured_on"}
    assert done.returncode == (0 if verdict["same"] else 1)
    assert verdict["same"] == (verdict["score"] >= verdict["operating_point"]["threshold"])
    back = json.loads(in_process("verify", other, one, *bundle, "--json").stdout)
    assert back["score"] == verdict["score"]
    itself = in_process("verify", one, one, *bundle)
    assert "verdict" in itself.stdout


def test_verification_never_loads_tensorflow(run, faces):
    code = (
        "import json, sys; from facepairs.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    code = None\n"
        "    try: main(words)\n"
        "    except SystemExit as ended: code = ended.code\n"
        "    assert code in (0, 1), words\n"
        "heavy = {'tensorflow', 'keras', 'sklearn', 'rich', 'matplotlib'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), file=sys.stderr)"
    )
    one, other = sorted(sorted(faces.iterdir())[0].iterdir())[:2]
    lines = [
        ["--help"],
        ["train", "--help"],
        ["verify", str(one), str(other), "--bundle", str(run.bundle)],
        ["info", str(run.bundle)],
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(lines)], capture_output=True, text=True, check=True
    )
    assert done.stderr.endswith("HEAVY []\n")


def test_the_two_decoders_score_alike(run, faces):
    import keras

    from facepairs.data.index import FaceIndex
    from facepairs.pipeline.files import FileStore
    from facepairs.verification.verifier import Verifier

    index = FaceIndex.scan(faces)
    verifier = Verifier.load(run.bundle)
    spec = verifier.bundle.framing
    store = FileStore(index, face_plan(index, spec.crop_px, spec.frame_px))
    pixels = store.loader(len(index))(np.arange(len(index), dtype=np.int32))
    import facepairs.models.fisher.tower  # noqa: F401 - registers its layers

    model = keras.saving.load_model(run.bundle / "model.keras", safe_mode=True)
    left, right = np.arange(0, 40), np.arange(40, 80)
    embedding = np.asarray(model(pixels.numpy()))
    trained = (embedding[left] * embedding[right]).sum(axis=1)
    paths = [index.path(i) for i in range(len(index))]
    assert verifier.score_images(paths, left, right) == pytest.approx(trained, abs=0.01)


def check_stopped(out: Path, messages: str) -> None:
    assert "--resume" in messages
    assert not (out / "bundle").exists()
    assert not (out / "run.lock").exists()


@pytest.mark.slow
def test_ctrl_c_saves_and_resume_ends_as_the_same_seed_does_from_another_store(
    short_run, short_settings, faces, tmp_path, monkeypatch
):
    out = tmp_path / "stopped"
    words = ("train", faces, "--out", out, "--config", short_settings, "--store", "files")
    with monkeypatch.context() as patch:
        ctrl_c.press_after(patch, 5)  # in the second epoch
        check_stopped(out, in_process(*words, check=130).stderr)
    resumed = in_process("train", faces, "--out", out, "--resume", "--json", check=0)
    assert json.loads(resumed.stdout)["threshold"] == Bundle.open(short_run.bundle).threshold
    assert saved_arrays(out) == saved_arrays(short_run.folder)
    assert (out / "bundle" / "manifest.json").is_file()


@pytest.mark.slow
def test_ctrl_c_stops_the_process_of_a_training(difference_run, faces, tmp_path):
    out, settings = tmp_path / "stopped", difference_run.folder / "config.toml"
    training = subprocess.Popen(
        command("train", faces, "--out", out, "--config", settings),
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert training.stderr is not None
    for line in training.stderr:
        if line.startswith("epoch 1/2"):
            training.send_signal(signal.SIGINT)
            break
    messages = training.stderr.read()
    training.stderr.close()
    assert training.wait(timeout=240) == 130, messages
    check_stopped(out, messages)


def test_a_run_in_use_and_a_finished_one_are_not_overwritten(run, faces, settings, tmp_path):
    done = in_process("train", faces, "--out", run.folder, "--config", settings, check=2)
    assert "--resume" in done.stderr
    with held(tmp_path / "run.lock", tmp_path):
        done = in_process("train", faces, "--out", tmp_path, "--config", settings, check=2)
    assert f"in use by process {os.getpid()}" in done.stderr


@pytest.fixture
def spoiled(many_faces, tmp_path):
    """Everything that can be wrong with a folder of faces."""
    root = tmp_path / "spoiled"
    for person in sorted(many_faces.iterdir())[:30]:
        shutil.copytree(person, root / person.name)
    people = sorted(root.iterdir())
    photos = [sorted(p.iterdir()) for p in people]
    photos[0][0].write_bytes(photos[0][0].read_bytes()[:2000])
    photos[1][0].write_text("this is text\n")
    photos[2][0].write_bytes(b"")
    (root / "Nobody_Here").mkdir()
    (root / "Loop").symlink_to(root)
    photos[4][0].write_bytes(photos[3][0].read_bytes())
    for extra in photos[5][1:]:
        extra.unlink()
    return root, people, photos


def test_data_check_lists_every_problem_and_training_refuses(spoiled, settings, tmp_path):
    root, people, photos = spoiled
    done = in_process("data", "check", root, "--no-labels", "--json", check=1)
    report = json.loads(done.stdout)
    named = {(f["kind"], path) for f in report["findings"] for path in f["paths"]}
    paths = {path for _, path in named}
    for photo in (photos[0][0], photos[1][0], photos[2][0], photos[3][0], photos[4][0]):
        assert f"{photo.parent.name}/{photo.name}" in paths
    assert {"Nobody_Here", "Loop"} <= paths
    assert not any(people[5].name in path for path in paths)  # one photo is normal
    assert in_process("data", "check", root, "--no-labels", check=1).stdout.count("error") >= 4

    out = tmp_path / "run"
    done = in_process("train", root, "--out", out, "--config", settings, check=2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(photos[0][0]) in done.stderr
    assert "facepairs data check" in done.stderr
    assert not (out / "config.toml").exists()


@pytest.mark.slow
def test_training_leaves_bad_photos_out_on_request(spoiled, settings, tmp_path):
    words = ("--out", tmp_path / "run", "--config", settings, "--skip-bad")
    done = in_process("train", spoiled[0], *words, check=0)
    assert "3 unusable files skipped" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["train", "{tmp}/nowhere"], "No such file"),
        (["train", "{faces}", "--model", "lenet"], "'lenet' is not one of 'resnet'"),
        (["train", "{faces}", "--epochs", "x"], "--epochs"),
        (["train", "{faces}", "--resume", "--out", "{tmp}/none"], "nothing to resume"),
        (["train", "{faces}", "--config", "{tmp}/none.toml"], "No such file"),
        (["verify", "a.jpg", "b.jpg", "--bundle", "{tmp}"], "manifest.json"),
        (["evaluate"], "SOURCE"),
        (["evaluate", "{tmp}/none.csv"], "No such file"),
        (["evaluate", "{tmp}/none", "{faces}"], "missing"),
        (["info", "{tmp}"], "manifest.json"),
        (["data", "check", "{tmp}/nowhere"], "No such file"),
        (["data", "synth", "--out", "{faces}", "--people", "2"], "{faces}"),
        (["data", "fetch", "mnist", "--out", "{tmp}"], "mnist"),
        (["nonsense"], "nonsense"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(arguments, why, faces, tmp_path):
    filled = [a.format(tmp=tmp_path, faces=faces) for a in arguments]
    done = in_process(*filled, check=2)
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert why.format(faces=faces) in done.stderr
    if filled[0] != "data" or filled[1] == "fetch":
        done = in_process(*filled, "--json", check=2)
        error = json.loads(done.stdout)["error"]
        assert set(error) == {"kind", "message"}


def test_verify_names_the_image_that_cannot_be_read(run, faces, tmp_path):
    good = next(next(faces.iterdir()).iterdir())
    bundle = ("--bundle", run.bundle)
    done = in_process("verify", good, tmp_path / "none.jpg", *bundle, "--json", check=2)
    assert json.loads(done.stdout)["error"]["kind"] == "image"
    (tmp_path / "text.jpg").write_text("text")
    done = in_process("verify", tmp_path / "text.jpg", good, *bundle, check=2)
    assert "text.jpg" in done.stderr


def test_verify_reads_every_image_format(run, faces, tmp_path):
    photo = sorted(next(faces.iterdir()).iterdir())[0]
    image = Image.open(photo)
    bundle = ("--bundle", run.bundle)
    kinds = {
        "a.png": image,
        "b.webp": image,
        "c.bmp": image,
        "gray.jpg": image.convert("L"),
        "palette.png": image.quantize(64),
        "alpha.png": image.convert("RGBA"),
        "cmyk.jpg": image.convert("CMYK"),
    }
    same = json.loads(in_process("verify", photo, photo, *bundle, "--json").stdout)
    for name, kind in kinds.items():
        kind.save(tmp_path / name, **({"lossless": True} if name.endswith("webp") else {}))
        verdict = json.loads(in_process("verify", photo, tmp_path / name, *bundle, "--json").stdout)
        if name in ("a.png", "b.webp", "c.bmp", "alpha.png"):
            assert verdict["score"] == pytest.approx(same["score"], abs=1e-5)


def test_every_command_has_help_with_an_example():
    from facepairs.cli.main import build_command

    def commands(group, path):
        yield path
        for name, one in getattr(group, "commands", {}).items():
            yield from commands(one, [*path, name])

    every = list(commands(build_command(), []))
    assert ["data", "check"] in every
    for path in every:
        text = " ".join(in_process(*path, "--help", check=0).stdout.split())
        assert re.search(f"Examples?: {' '.join(['facepairs', *path])}", text), path
