"""`train`, `evaluate` and `calibrate` as a notebook calls them, on drawn faces."""

import json

import keras
import pytest
from processes.command_line import in_process

import facepairs
from facepairs.errors import BadConfig, BadRun

pytestmark = pytest.mark.usefixtures("few_draws")
SMALL = {
    "model": "difference",
    "epochs": 1,
    "pairs_per_epoch": 32,
    "batch_size": 16,
    "calibration_pairs": 60,
}


class Losses(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_epoch_end(self, epoch, logs=None):
        self.losses.append(logs["loss"])


@pytest.fixture(scope="module")
def trained(many_faces, tmp_path_factory):
    """A finished run, what its callback saw, and its messages."""
    callback, lines = Losses(), []
    options = facepairs.TrainOptions(log=lines.append, images_in_tensorboard=False)
    run = facepairs.train(
        str(many_faces),
        str(tmp_path_factory.mktemp("runs") / "run"),
        facepairs.TrainConfig(**SMALL),
        callbacks=[callback],
        options=options,
    )
    return run, callback, lines


def test_a_run_has_its_history_settings_and_verifier(trained, many_faces):
    run, callback, lines = trained
    assert not run.interrupted
    assert [row["loss"] for row in run.history] == callback.losses
    assert run.config.image_size == 64  # the model's recipe
    assert run.bundle == run.out / "bundle"
    photos = sorted(many_faces.glob("*/*.jpg"))
    assert -1e6 < run.verifier().verify(photos[0], photos[1]).score < 1e6
    assert any(line.startswith("warning: few people") for line in lines)


def test_a_run_resumes_with_its_settings_given_again(trained, many_faces):
    run, _, _ = trained
    lines = []
    options = facepairs.TrainOptions(log=lines.append)
    for config in (None, facepairs.TrainConfig(**SMALL)):
        again = facepairs.train(many_faces, run.out, config, resume=True, options=options)
        assert again == run
        assert "is finished after 1 epoch" in lines.pop()
    with pytest.raises(BadConfig, match="resume keeps the run's own settings; leave out --seed"):
        facepairs.train(many_faces, run.out, facepairs.TrainConfig(**SMALL, seed=4), resume=True)
    with pytest.raises(BadRun, match="holds a run already"):
        facepairs.train(many_faces, run.out, facepairs.TrainConfig(**SMALL))
    with pytest.raises(BadConfig, match=r"config is \{'epochs': 3\}; give settings such as"):
        facepairs.train(many_faces, run.out, {"epochs": 3})
    with pytest.raises(BadConfig, match="resume needs the run folder"):
        facepairs.train(many_faces, resume=True)


def test_an_evaluation_is_a_summary_frames_plots_and_html(trained, many_faces, tmp_path):
    run, _, _ = trained
    scores = tmp_path / "scores.csv"
    found = facepairs.evaluate(run.verifier(), many_faces, scores_out=scores)
    printed = json.loads(in_process("evaluate", scores, "--json", check=0).stdout)
    assert found.summary.auc == printed["auc"]
    frame = found.to_frame()
    assert frame.auc.tolist() == [found.summary.auc]
    assert (*frame.auc_low, *frame.auc_high) == found.summary.auc_interval
    assert {"tar_at_far_0.01_low", "tar_at_far_0.01_high"} < set(frame)
    pairs = found.measurements[0].to_frame()
    assert len(pairs) == frame.genuine_pairs[0] + frame.impostor_pairs[0]
    assert (pairs.accepted == (pairs.score >= pairs.threshold)).all()
    assert found.plot("det")._repr_svg_().startswith("<?xml")
    with pytest.raises(BadConfig, match="there is no plot 'rock'"):
        found.plot("rock")
    assert "<td>AUC</td>" in found._repr_html_()
    assert "AUC  " in str(found)
    assert repr(found).startswith("Evaluation of run on ")
    both = facepairs.evaluate([scores, scores])
    assert len(both.to_frame()) == 2
    assert "first - second" in both._repr_html_()


def test_a_calibration_returns_its_bundle(many_faces, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for person in sorted(many_faces.iterdir())[:8]:
        (few / person.name).symlink_to(person)
    made = facepairs.calibrate("default", few, tmp_path / "mine")
    assert made.bundle.weights_licence == "research"
    assert "licence            research" in in_process("info", tmp_path / "mine", check=0).stdout
    assert facepairs.Verifier.load(tmp_path / "mine").bundle.threshold == made.summary.threshold
