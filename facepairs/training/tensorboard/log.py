"""The TensorBoard log of a run, limited in size.

Each epoch: scalars. At epochs 1 to 8, then 10, 12, 14, 16, 20, … (four per doubling) and the last
one: precision and recall, and the hardest validation pairs. At the end: up to 500
embeddings of validation people for the projector. At the start: the settings, for the comparison of
runs (HParams), and a grid of training pairs as the network sees them.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.training.tensorboard.monitor import Ints, Monitor, Pixels
from facepairs.training.tensorboard.pictures import pair_grid
from facepairs.training.tensorboard.projector import write_projector

SCALARS = ("loss", "val_auc", "val_score_spread", "learning_rate", "pairs_per_s", "input_wait")
THRESHOLDS = 101
HARDEST_PAIRS = 8  # of each kind


class TensorBoardLog(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes the TensorBoard log.

    Args:
        folder: Where to write.
        monitor: What the log shows.
        grid: uint8[H, W, 3], a picture of training pairs.
        settings: The settings, by name.
    """

    def __init__(
        self, folder: Path, monitor: Monitor, grid: Pixels, settings: dict[str, Any]
    ) -> None:
        super().__init__()
        self._folder = folder
        self._writer = tf.summary.create_file_writer(str(folder))
        self._monitor = monitor
        self._grid = grid
        # TensorBoard shows no lists.
        self._settings = {k: str(x) if isinstance(x, list) else x for k, x in settings.items()}
        self._epoch = self._detailed_epoch = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        from tensorboard.plugins.hparams import api

        with self._writer.as_default():
            api.hparams(self._settings)
            tf.summary.image("training pairs", self._grid[None], step=0)
        self._writer.flush()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch + 1
        with self._writer.as_default():
            for name in SCALARS:
                if name in (logs or {}):
                    tf.summary.scalar(name, (logs or {})[name], step=self._epoch)
        if is_detailed(self._epoch):
            self._write_details()
        self._writer.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self._epoch > self._detailed_epoch:
            self._write_details()
        self._write_projector()
        self._writer.close()

    def _write_details(self) -> None:
        """Write what takes more space than a number."""
        self._detailed_epoch = self._epoch
        pairs, score = self._monitor.validator.pairs, self._monitor.validator.scores
        with self._writer.as_default():
            _write_pr_curve(pairs.genuine, score, self._epoch)
            self._write_hardest(pairs, score)

    def _write_hardest(self, pairs: PairList, score: npt.NDArray[np.float64]) -> None:
        monitor = self._monitor
        worst = hardest_pairs(pairs.genuine, score)
        rows = []
        for i in worst:
            left, right = (monitor.name(int(side[i]))[1] for side in (pairs.left, pairs.right))
            kind = "genuine" if pairs.genuine[i] else "impostor"
            rows.append(f"| {kind} | {score[i]:.4f} | {left} | {right} |")
        table = "\n".join(["| pair | score | left | right |", "| --- | --- | --- | --- |", *rows])
        tf.summary.text("hardest pairs, by name", table, step=self._epoch)
        images = np.concatenate([pairs.left[worst], pairs.right[worst]]).astype(np.int64)
        faces = monitor.thumbnails(images) / np.float32(255)
        grid = pair_grid(faces, pairs.genuine[worst], [f"{score[i]:.3f}" for i in worst])
        tf.summary.image("hardest pairs", grid[None], step=self._epoch)

    def _write_projector(self) -> None:
        monitor, images = self._monitor, self._monitor.projector_images
        if monitor.embed is None or not len(images):
            return
        thumbnails = monitor.thumbnails(images)
        names = [monitor.name(int(image)) for image in images]
        write_projector(self._folder, monitor.embed(images), names, thumbnails)


def is_detailed(epoch: int) -> bool:
    """Return whether the log shows pictures of an epoch, counted from 1: four per doubling."""
    return epoch % (1 << max(0, epoch.bit_length() - 3)) == 0


def hardest_pairs(genuine: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> Ints:
    """Return the lowest genuine, then the highest impostor pairs, the hardest of each kind first.

    Args:
        genuine: bool[N].
        score: float64[N].
    """
    order = np.argsort(score, kind="stable")
    lowest_genuine = order[genuine[order]][:HARDEST_PAIRS]
    highest_impostors = order[~genuine[order]][::-1][:HARDEST_PAIRS]
    return np.concatenate([lowest_genuine, highest_impostors])


def _write_pr_curve(
    genuine: npt.NDArray[np.bool_], score: npt.NDArray[np.float64], epoch: int
) -> None:
    """Write precision and recall at thresholds from the lowest to the highest score."""
    from tensorboard.plugins.pr_curve import summary

    curve = summary.pb(
        "validation PR",
        genuine,
        (score - score.min()) / max(float(np.ptp(score)), 1e-9),
        THRESHOLDS,
        display_name="validation pairs",
        description="genuine pairs are positive; threshold 0 is the lowest score, 1 the highest",
    )
    tf.summary.experimental.write_raw_pb(curve.SerializeToString(), step=epoch)
