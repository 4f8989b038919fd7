"""The run's TensorBoard log, bounded in size: every epoch some numbers, now and then more.

Each epoch: scalars. At epochs 1 to 8, then 10, 12, 14, 16, 20, … (four for each doubling) and the
last one: precision and recall, the ROC curve and the hardest pairs, all of validation pairs. At the
end: up to 500 embeddings of validation people for the projector. At the start: the settings, for
the comparison of runs (HParams), and a grid of training pairs as the network sees them. Where
images are not wanted there is no face and no name: numbers of images stand for them.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.evaluation.metrics import roc
from facepairs.training.tensorboard.monitor import Ints, Pixels, Watched
from facepairs.training.tensorboard.pictures import pair_grid, roc_picture
from facepairs.training.tensorboard.projector import write_projector

SCALARS = ("loss", "val_auc", "val_score_spread", "learning_rate", "pairs_per_s", "input_wait")
THRESHOLDS = 101
HARDEST = 8  # pairs of each kind


class TensorBoardLog(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes the log into `folder`; `grid` uint8[H, W, 3] shows training pairs, None for none."""

    def __init__(
        self,
        folder: Path,
        watched: Watched,
        grid: Pixels | None,
        settings: dict[str, Any],
    ) -> None:
        super().__init__()
        self._folder = folder
        self._writer = tf.summary.create_file_writer(str(folder))
        self._watched = watched
        self._grid = grid
        self._settings = settings
        self._epoch = self._pictured = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        from tensorboard.plugins.hparams import api

        with self._writer.as_default():
            api.hparams(self._settings)
            if self._grid is not None:
                tf.summary.image("training pairs", self._grid[None], step=0)
        self._writer.flush()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch + 1
        with self._writer.as_default():
            for name in SCALARS:
                if name in (logs or {}):
                    tf.summary.scalar(name, (logs or {})[name], step=self._epoch)
        if pictured(self._epoch):
            self._show()
        self._writer.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self._epoch > self._pictured:
            self._show()
        self._project()
        self._writer.close()

    def _show(self) -> None:
        """Write what costs more than a number."""
        self._pictured, pairs, score = self._epoch, self._watched.pairs, self._watched.scores()
        with self._writer.as_default():
            _write_pr_curve(pairs.genuine, score, self._epoch)
            curve = roc(pairs.genuine, score)
            picture = roc_picture(curve.fmr, curve.tmr)
            tf.summary.image("validation ROC", picture[None], step=self._epoch)
            self._show_hardest(pairs, score)

    def _show_hardest(self, pairs: PairList, score: npt.NDArray[np.float64]) -> None:
        worst = hardest(pairs.genuine, score)
        rows = []
        for i in worst:
            left, right = (
                self._watched.name(int(side[i]))[1] for side in (pairs.left, pairs.right)
            )
            kind = "genuine" if pairs.genuine[i] else "impostor"
            rows.append(f"| {kind} | {score[i]:.4f} | {left} | {right} |")
        table = "\n".join(["| pair | score | left | right |", "| --- | --- | --- | --- |", *rows])
        tf.summary.text("hardest pairs, by name", table, step=self._epoch)
        if self._watched.thumbnails:
            images = np.concatenate([pairs.left[worst], pairs.right[worst]]).astype(np.int64)
            seen = self._watched.thumbnails(images) / np.float32(255)
            grid = pair_grid(seen, pairs.genuine[worst], [f"{score[i]:.3f}" for i in worst])
            tf.summary.image("hardest pairs", grid[None], step=self._epoch)

    def _project(self) -> None:
        watched, images = self._watched, self._watched.projected
        if watched.embed is None or not len(images):
            return
        thumbnails = watched.thumbnails(images) if watched.thumbnails else None
        names = [watched.name(int(image)) for image in images]
        write_projector(self._folder, watched.embed(images), names, thumbnails)


def pictured(epoch: int) -> bool:
    """Tell whether an epoch, counted from 1, is among four for each doubling."""
    return epoch % (1 << max(0, epoch.bit_length() - 3)) == 0


def hardest(genuine: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> Ints:
    """Give the lowest genuine and the highest impostor pairs, the hardest of each kind first."""
    order = np.argsort(score, kind="stable")
    falling = order[::-1]
    return np.concatenate([order[genuine[order]][:HARDEST], falling[~genuine[falling]][:HARDEST]])


def _write_pr_curve(
    genuine: npt.NDArray[np.bool_], score: npt.NDArray[np.float64], epoch: int
) -> None:
    """Write counts at thresholds from the lowest to the highest score, as its plugin reads them."""
    from tensorboard.plugins.pr_curve import metadata

    thresholds = np.linspace(score.min(), score.max(), THRESHOLDS)
    kinds = [np.sort(score[mask]) for mask in (genuine, ~genuine)]
    tp, fp = (len(kind) - np.searchsorted(kind, thresholds) for kind in kinds)
    tn, fn = len(kinds[1]) - fp, len(kinds[0]) - tp
    precision, recall = tp / np.maximum(tp + fp, 1), tp / max(len(kinds[0]), 1)
    tf.summary.write(
        "validation PR",
        tf.constant(np.stack([tp, fp, tn, fn, precision, recall]), tf.float32),
        step=epoch,
        metadata=tf.compat.v1.SummaryMetadata.FromString(
            metadata.create_summary_metadata(
                "validation pairs",
                "genuine pairs are the positives; threshold 0 is the lowest score, 1 the highest",
                THRESHOLDS,
            ).SerializeToString()
        ),
    )
