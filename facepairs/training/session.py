"""What the stages of one training share: its options, its data, its state and its run folder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from facepairs.evaluation.metrics.calibration import FittedCalibration
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.training.distributed.context import DistributedContext
from facepairs.training.inputs.training_data import TrainingData
from facepairs.training.run_folder.folder import RunFolder
from facepairs.training.state import Checkpointer, TrainingState


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How a training runs, as opposed to what it learns (`TrainConfig`).

    Attributes:
        resume: Continue the run in the folder, if there is one.
        log: Receives messages.
        progress: Shows the progress of each phase.
        images_in_tensorboard: Whether the TensorBoard log may show faces and names.
        profile: Add a profile of five steps to the TensorBoard log.
        config_file: The TOML file of the settings, for error messages.
        store_folder: Where the memory store's array is kept; by default beside the run folder.
        calibration: Replaces the calibration on people set aside; nobody need then be set aside.
        devices: `one`, `all` or `auto`, as for `connect_devices`.
    """

    resume: bool = False
    log: MessageCallback = ignore_message
    progress: ProgressFactory = ignore_phases
    images_in_tensorboard: bool = True
    profile: bool = False
    config_file: Path | None = None
    store_folder: Path | None = None
    calibration: FittedCalibration | None = None
    devices: str = "one"


@dataclass(frozen=True)
class Session:
    """Everything that the stages of one training share."""

    run: RunFolder
    data: TrainingData
    state: TrainingState
    checkpointer: Checkpointer
    context: DistributedContext
    should_stop: Callable[[], bool]
    options: TrainOptions
