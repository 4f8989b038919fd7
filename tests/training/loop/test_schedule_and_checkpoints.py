"""Training continues at any step as if it had never stopped, and checkpoints detect damage."""

import itertools

import numpy as np
import pytest

from facepairs.data.sampler import PairSampler
from facepairs.errors import BadRun
from facepairs.support.progress import format_duration
from facepairs.training.loop.callbacks import ProgressReport, describe_collapse
from facepairs.training.loop.schedule import Schedule, TrainingProgress, training_blocks
from facepairs.training.run_folder.checkpoint import load_checkpoint, save_checkpoint


@pytest.mark.parametrize("start", [0, 3, 10, 17, 20, 41])
def test_pairs_do_not_depend_on_the_start_step(start):
    sampler = PairSampler(np.arange(0, 61, 3), range(20), seed=1)

    def pairs(first):
        blocks = training_blocks(sampler, 100, 20, first)  # an epoch is two blocks, one cut short
        flat = itertools.chain.from_iterable(
            zip(b.left.tolist(), b.right.tolist(), strict=True) for b in blocks
        )
        return list(itertools.islice(flat, (60 - first) * 100))

    assert pairs(start) == pairs(0)[start * 100 :]


def test_blocks_hold_a_multiple_of_the_batch_size():
    sampler = PairSampler(np.arange(0, 61, 3), range(20), seed=1)
    blocks = itertools.islice(training_blocks(sampler, 64, 50, 7), 12)
    assert all(len(block) % 64 == 0 for block in blocks)


def test_learning_rate_of_the_first_epoch_does_not_depend_on_the_number_of_epochs():
    short, long = Schedule(2, 100, 1e-3), Schedule(50, 100, 1e-3)
    rates = [[s.learning_rate(step) for step in range(100)] for s in (short, long)]
    assert rates[0] == rates[1]
    assert rates[0][0] < rates[0][49] == pytest.approx(1e-3)
    assert long.learning_rate(long.steps - 1) < 2e-5
    assert long.learning_rate(100) > long.learning_rate(2500) > long.learning_rate(4999)


def variables(*shapes):
    import keras

    return [keras.Variable(np.random.default_rng(i).random(s)) for i, s in enumerate(shapes)]


def test_loading_a_checkpoint_restores_variables_and_state_exactly(tmp_path):
    path = tmp_path / "checkpoint.npz"
    saved = variables((3, 4), (), (2,))
    values = [np.asarray(v).copy() for v in saved]
    save_checkpoint(path, saved, {"step": 5, "who": "Zoë"})
    for variable in saved:
        variable.assign(variable * 0)
    assert load_checkpoint(path, saved) == ({"step": 5, "who": "Zoë"}, [])
    assert all(np.array_equal(np.asarray(v), w) for v, w in zip(saved, values, strict=True))


def test_a_checkpoint_holds_the_weights_of_the_best_epoch(tmp_path):
    path, saved = tmp_path / "checkpoint.npz", variables((3, 4), (2,))
    best = [np.ones((3, 4), np.float32), np.zeros(2, np.float32)]
    save_checkpoint(path, saved, {"step": 5}, best)
    state, loaded = load_checkpoint(path, saved)
    assert state == {"step": 5}
    assert all(np.array_equal(one, other) for one, other in zip(best, loaded, strict=True))


def test_truncations_and_changed_bits_of_a_checkpoint_are_detected(tmp_path):
    path = tmp_path / "checkpoint.npz"
    saved = variables((3, 4), (2,))
    save_checkpoint(path, saved, {"step": 5})
    whole = path.read_bytes()
    values = [np.asarray(v).copy() for v in saved]
    for cut in range(0, len(whole), 37):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadRun, match="damaged"):
            load_checkpoint(path, saved)
    silent = 0
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            state, _ = load_checkpoint(path, saved)
        except BadRun:
            continue
        # Bytes that carry nothing (times, attributes) may flip; values may not.
        silent += 1
        assert state == {"step": 5}
        assert all(np.array_equal(np.asarray(v), w) for v, w in zip(saved, values, strict=True))
    assert silent < len(range(0, len(whole), 11)) / 2


def test_bits_that_claim_encryption_or_another_packing_are_damage(tmp_path):
    path = tmp_path / "checkpoint.npz"
    saved = variables((3, 4), (2,))
    save_checkpoint(path, saved, {"step": 5})
    whole = path.read_bytes()
    entry = whole.index(b"PK\x01\x02")
    for at, bit in ((entry + 8, 1), (entry + 8, 32), (entry + 10, 1), (entry + 6, 128)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        with pytest.raises(BadRun, match="damaged checkpoint"):
            load_checkpoint(path, saved)


@pytest.mark.slow
def test_every_changed_bit_of_a_checkpoint_is_detected_or_has_no_effect(tmp_path):
    path = tmp_path / "checkpoint.npz"
    saved = variables((3, 4), (2,))
    save_checkpoint(path, saved, {"step": 5})
    whole = path.read_bytes()
    values = [np.asarray(v).copy() for v in saved]
    for at, bit in itertools.product(range(len(whole)), range(8)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            state, _ = load_checkpoint(path, saved)
        except BadRun:
            continue
        assert state == {"step": 5}, (at, bit)
        assert all(np.array_equal(np.asarray(v), w) for v, w in zip(saved, values, strict=True))
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(BadRun, match="damaged"):
            load_checkpoint(path, saved)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    path = tmp_path / "checkpoint.npz"
    save_checkpoint(path, variables((3, 4)), {})
    with pytest.raises(BadRun, match="another model"):
        load_checkpoint(path, variables((4, 3)))


def test_describe_collapse_names_equal_scores_and_an_auc_of_one_half():
    assert "alike" in describe_collapse(val_auc=0.9, val_score_spread=1e-5)
    assert "alike" in describe_collapse(val_auc=0.9, val_score_spread=float("nan"))
    assert "no better than chance" in describe_collapse(val_auc=0.51, val_score_spread=1.0)
    assert describe_collapse(val_auc=0.8, val_score_spread=1.0) == ""


def test_durations_are_printed_as_clock_times():
    assert [format_duration(s) for s in (0, 59.6, 3600)] == ["0:00", "1:00", "1:00:00"]


def test_the_line_of_an_epoch_has_its_figures_and_the_time_left_of_the_training():
    lines, shown = [], []
    progress = TrainingProgress(step=10, seconds=60.0)
    report = ProgressReport(
        progress,
        lambda: Schedule(epochs=4, steps_per_epoch=10, peak=1e-3),
        lines.append,
        lambda label: lambda done, total: shown.append((label, done, total)),
    )
    report.on_epoch_begin(0)
    report.on_train_batch_end(10)
    row = {"loss": 0.5, "val_auc": 0.875, "pairs_per_s": 1234.0, "input_wait": 0.125}
    report.on_epoch_end(0, row)
    assert shown == [("epoch 1/4", 10, 10)]
    assert lines == [
        "epoch 1/4  loss 0.5000  validation AUC 0.8750  1,234 pairs/s  input wait 12.5%  3:00 left"
    ]
