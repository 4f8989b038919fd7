"""The curves of a training: each epoch is written, and of a step nothing is even kept."""

import keras
import pytest

from facepairs.training.callbacks import EpochBoard


def run_step(board: keras.callbacks.TensorBoard) -> None:
    """Tell it of one training step, whose loss nothing can be made of."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
    board.set_model(model)
    board.on_train_begin()
    board.on_epoch_begin(0)
    board.on_train_batch_begin(0)
    board.on_train_batch_end(0, {"loss": object()})


def test_no_step_s_loss_becomes_a_tensor_which_tensorflow_would_keep(tmp_path):
    board = EpochBoard(tmp_path / "ours", write_graph=False)
    run_step(board)
    board.on_epoch_end(0, {"loss": 0.5})
    board.on_train_end()
    assert list((tmp_path / "ours").rglob("events.*"))


def test_keras_s_own_makes_one(tmp_path):
    # As long as this holds, `EpochBoard` is needed.
    with pytest.raises(ValueError, match="object"):
        run_step(keras.callbacks.TensorBoard(tmp_path, write_graph=False))
