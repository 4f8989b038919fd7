"""One training from its network to its bundle: `TrainJob`, which `train` runs."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.bundles.bundle import Bundle
from facepairs.config import DEFAULT_EPOCHS, EMBEDDINGS, TrainConfig
from facepairs.data.article import ArticleSamplerForComparison
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler, Sampler, distinct_pairs
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadRun
from facepairs.evaluation.metrics import auc
from facepairs.models.network import FrozenBackboneNetwork, Network, build_network
from facepairs.models.replicas import synchronise
from facepairs.pipeline.dataset import Store, make_dataset, people_numbers
from facepairs.pipeline.records.build import people_digest
from facepairs.pipeline.records.store import RecordStore
from facepairs.training.inputs.pair_cache import cached_batches
from facepairs.training.loop.callbacks import (
    CollapseAlarm,
    ProfileSteps,
    ProgressReport,
    SaveOften,
    collapse,
)
from facepairs.training.run_folder.checkpoint import load_checkpoint, save_checkpoint
from facepairs.training.distributed.context import Team
from facepairs.training.export.trained_bundle import finish_bundle
from facepairs.training.fitting.eigenfaces import fit_eigenfaces
from facepairs.training.fitting.fisher import (
    VECTORS,
    describe_images,
    fit_mixture,
    start_projection,
)
from facepairs.training.inputs.initial_weights import take_weights
from facepairs.training.loop.train_loop import Progress, Schedule, Stopped, TrainLoop, training_blocks
from facepairs.training.run_folder.folder import RunFolder
from facepairs.training.tensorboard.log import TensorBoardLog
from facepairs.training.tensorboard.monitor import training_grid, watch

VALIDATION_PAIRS = 2000
PLACES = ("lists", "init")  # a bundle tells nothing of the machine it was made on
Say = Callable[[str], None]
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class TrainReport:
    """What a training came to; `interrupted` means that `--resume` goes on from the checkpoint."""

    out: Path
    interrupted: bool
    epochs: int
    seconds: float
    val_auc: float | None
    people: dict[str, int]
    bundle: Path | None
    threshold: float | None
    warning: str
    worker: int
    workers: int

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        paths = {"out": str(self.out), "bundle": str(self.bundle) if self.bundle else None}
        return {**asdict(self), **paths, "schema": 1}


class TrainJob:
    """Network, data and progress, joined; the steps of `train`, in their order."""

    def __init__(
        self,
        run: RunFolder,
        index: FaceIndex,
        split: PeopleSplit,
        store: Store,
        cache: RecordStore | None,
        config: TrainConfig,
        say: Say,
        team: Team,
    ) -> None:
        keras.utils.set_random_seed(config.seed)
        if config.deterministic:
            tf.config.experimental.enable_op_determinism()
        if config.model in EMBEDDINGS and len(split.training) < config.batch_size:
            config = config.replace(batch_size=len(split.training))  # a person once a batch
        self.run, self.index, self.split, self.config, self.say = run, index, split, config, say
        self.team = team
        with team.scope():
            self.network = self._built()
        if team.strategy:
            synchronise(self.network.head)
        watched = split.calibration if len(split.calibration) else split.training
        self.pairs = distinct_pairs(index.first, watched, config.calibration_pairs, config.seed)
        self.checked = _validation(self.pairs)  # after each epoch …
        self.checked_scores = np.zeros(0)  # … and what it gave last
        self._checking: tuple[Store, Any] | None = None
        self.store, self.cache = store, cache
        self.loop = TrainLoop(self.network, store, config.seed, self._validate, lambda: False, team)
        pairs = cache.pairs if cache else config.pairs_per_epoch
        steps = max(1, pairs // config.batch_size)
        # With `minutes` this is planned anew after each epoch; the first does not depend on it.
        epochs = min(config.most_epochs, DEFAULT_EPOCHS) if config.minutes else config.most_epochs
        epochs = epochs if self.network.trainable else 0
        self.schedule = Schedule(epochs, steps, config.learning_rate)
        self.start: dict[str, Any] = {}  # of the bundle that `init` names
        self.interrupted = False
        self.warning = ""
        self.images = store  # where `store` comes to hold vectors, these stay images

    def _built(self) -> Network:
        config = self.config
        return build_network(
            config.model, config.crop_px, config.image_size, config.augment, config.erase,
            photos=self.index.image_counts[self.split.training], **config.loss_settings,
        )  # fmt: skip

    def _sources(self) -> dict[str, Any]:
        """What a checkpoint must agree with to be resumed."""
        people = [len(part) for part in vars(self.split).values()]
        digest = people_digest(self.index, self.split.training)
        return {"index": self.index.fingerprint, "people": people, "training": digest}

    def restore(self) -> None:
        """Take up a checkpoint where there is one; raise BadConfig where workers differ in it."""
        self._take_up()
        here = [self._sources(), self.loop.progress.step, self.schedule, self.config]
        cache = self.cache.manifest if self.cache else None  # each host may have its own copy
        self.team.check_same(repr([*here, cache]), "images, settings, a cache or a checkpoint")

    def _take_up(self) -> None:
        path = self.run.checkpoint_path
        if not path.exists():
            if self.config.init:
                self.start = take_weights(self.config.init, self.network)
            return
        state = load_checkpoint(path, self.loop.variables)
        now = self._sources()  # a checkpoint of an earlier version may lack some of them
        if any(now.get(name) != value for name, value in state["sources"].items()):
            raise BadRun(
                f"{path}: made for other people or images than {self.index.root} gives now; "
                "start anew"
            )
        self.loop.progress = Progress(**state["progress"])
        self.start = state.get("start", {})
        if state["asked"] == [self.config.epochs, self.config.minutes]:
            self.schedule = replace(self.schedule, epochs=state["epochs"])
        self.say(f"resuming at step {self.loop.progress.step} of {self.schedule.steps}")

    def describe(self, should_stop: Callable[[], bool], tick: Tick) -> None:
        """Fit a frozen first part, unless something to go on from brought it; read its vectors.

        Asked to stop, it leaves nothing to go on from: `resume` then begins here anew. Of several
        workers the chief fits, and all describe a share each.
        """
        if not isinstance(self.network, FrozenBackboneNetwork):
            return

        def watched(done: int, total: int) -> None:
            tick(done, total)
            if self.team.any(should_stop()):  # none goes on without the others' shares
                raise Stopped

        seed, fresh = self.config.seed, not (self.loop.progress.step or self.start)
        images = np.flatnonzero(np.isin(self.index.person_of, self.split.training))
        if fresh:
            self.say("fitting local descriptors")
            if self.team.chief:
                fit_mixture(self.network, self.images, images, seed)
            self.team.take_chiefs(self.network.head.variables)
        self.say(f"describing {len(self.index):,} images, once")
        try:
            vectors = describe_images(
                self.network, self.images, len(self.index), self.run.path, watched, self.say,
                self.team,
            )  # fmt: skip
        except Stopped:
            self.interrupted = True
            return
        if fresh:
            if self.team.chief:
                start_projection(self.network, vectors, images, seed)
            self.team.take_chiefs(self.network.head.variables)
        self.store = self.loop.store = vectors

    def save(self) -> None:
        """Write the checkpoint and the history, if this worker writes the run folder."""
        if not self.team.chief:
            return
        state = {
            "progress": asdict(self.loop.progress),
            "epochs": self.schedule.epochs,
            "asked": [self.config.epochs, self.config.minutes],
            "sources": self._sources(),
            "start": self.start,
        }
        save_checkpoint(self.run.checkpoint_path, self.loop.variables, state)
        self.run.write_history(self.loop.progress.history)

    def train(
        self, should_stop: Callable[[], bool], images_in_tensorboard: bool, profile: bool
    ) -> None:
        """Run the loop to its end or to the stop that was asked for; save either way."""
        if self.config.model == "eigenfaces":
            self._fit_eigenfaces()
        if self.loop.progress.step >= self.schedule.steps:
            return
        config = self.config
        sampler = self._sampler()
        self.loop.should_stop = should_stop
        alarm = CollapseAlarm(self._warn)
        profiler = ProfileSteps(str(self.run.tensorboard_path), self.say)
        extra: list[keras.callbacks.Callback] = []
        if self.team.chief:
            extra = [
                ProgressReport(self.loop.progress, lambda: self.schedule, config.batch_size),
                alarm,
                self._tensorboard(sampler, images_in_tensorboard),
                *([profiler] if profile else []),
                SaveOften(config.checkpoint_minutes, self.save),
            ]
        callbacks = keras.callbacks.CallbackList(extra, model=None)
        try:
            self.loop.run(self._batches(sampler), self.schedule, callbacks, self._after_epoch)
        except Stopped:
            self.interrupted = True
            self.save()
        finally:
            profiler.close()
        self.warning = alarm.message

    def _fit_eigenfaces(self) -> None:
        images = np.flatnonzero(np.isin(self.index.person_of, self.split.training))
        count, components = fit_eigenfaces(self.network, self.store, images, self.config.seed)
        self.say(f"fitted {components} components to {count:,} images")

    def _sampler(self) -> Sampler:
        first, people, config = self.index.first, self.split.training, self.config
        if config.sampler == "article":
            share = config.genuine_share
            return ArticleSamplerForComparison(first, people, config.seed, share)
        if self.network.kind == "embedding":
            return DistinctPeopleSampler(
                first, people, config.seed, config.batch_size, config.several_share
            )
        return PairSampler(first, people, config.seed, config.genuine_share)

    def _batches(self, sampler: Sampler) -> Iterable[dict[str, Any]]:
        """Give the training's batches from the step on where it stands."""
        size, start = self.config.batch_size, self.loop.progress.step
        part = self.team.own(size)
        if self.cache:
            return cached_batches(self.cache, size, self.config.seed, start, part)
        steps = self.schedule.steps_per_epoch
        people = people_numbers(self.index.person_of, self.split.training)
        batches: Iterable[dict[str, Any]] = make_dataset(
            self.store, lambda: training_blocks(sampler, size, steps, start), size, people, part
        )
        return batches

    def _tensorboard(self, sampler: Sampler, faces: bool) -> keras.callbacks.Callback:
        config = self.config
        block = sampler.block(0, 0, min(16, config.batch_size))
        settings = {k: v for k, v in asdict(config).items() if k not in PLACES}
        stores = self.images, self.store
        watched = watch(
            self.network, self.index, self.checked, lambda: self.checked_scores, stores, faces
        )
        grid = training_grid(self.network, self.images, block, config.seed) if faces else None
        return TensorBoardLog(self.run.tensorboard_path, watched, grid, settings)

    def _warn(self, line: str) -> None:
        self.say(f"warning: {line}")
        self.run.log(line)

    def _after_epoch(self, schedule: Schedule, progress: Progress) -> Schedule:
        """Plan the epochs after the first, stop when time is up, save."""
        done = progress.step // schedule.steps_per_epoch
        if self.config.minutes:
            fitting = self.team.chiefs(self._fitting(done, progress))
            schedule = replace(schedule, epochs=int(fitting))
        self.schedule = schedule
        self.save()
        row = progress.history[-1]
        self.run.log(" ".join(f"{key}={value:.6g}" for key, value in row.items()))
        return schedule

    def _fitting(self, done: int, progress: Progress) -> int:
        """Plan anew how many epochs the minutes hold, at the speed of the last three.

        A machine that slows down thus still ends with a low learning rate, in time.
        """
        times = [0.0, *(row["seconds"] for row in progress.history)][-4:]
        epoch_s = (times[-1] - times[0]) / (len(times) - 1)
        left = max(0.0, self.config.minutes * 60 - progress.seconds)
        return max(done, min(self.config.most_epochs, done + int(left / epoch_s)))

    def _validate(self) -> dict[str, float]:
        score = self.loop.scores(self._checked_batches())
        self.checked_scores = score
        return {
            "val_auc": auc(self.checked.genuine, score),
            "val_score_spread": float(np.std(score)),
        }

    def _checked_batches(self) -> Any:
        """Give the validation pairs' dataset, the same each time: each new one is traced anew."""
        if self._checking is None or self._checking[0] is not self.store:
            # TensorFlow keeps generators: one that held `self` would keep all.
            checked, size = self.checked, self.config.batch_size
            dataset = make_dataset(self.store, lambda: iter([checked]), size)
            self._checking = (self.store, dataset)
        return self._checking[1]

    def finish(self, progress: Tick, manifest: dict[str, Any] | None) -> Path:
        """Export, calibrate unless `manifest` says how, and write the bundle."""
        self.say("exporting and calibrating")
        result = self._validate()
        if not self.warning:
            self.warning = collapse(result["val_score_spread"], result["val_auc"])
        self.loop.progress.history = self.loop.progress.history or [{"epoch": 0, **result}]
        config = {k: v for k, v in asdict(self.config).items() if k not in PLACES}
        training = {
            "protocol": self.config.protocol,
            "seed": self.config.seed,
            "people": len(self.split.training),
            "images": int(self.index.image_counts[self.split.training].sum()),
            "pairs": self.loop.progress.step * self.config.batch_size,
            "epochs": self.schedule.epochs,
            "seconds": round(self.loop.progress.seconds, 1),
            "val_auc": result["val_auc"],
            "config": config,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **(
                {"init": {k: v for k, v in self.start.items() if k != "known"}}
                if self.start
                else {}
            ),
        }
        self.save()  # exporting rounds the weights; a longer run goes on from these
        finish_bundle(
            self.run.bundle_path,
            self._alone(),
            self.index,
            self.pairs,
            self.config.frame_px,
            (self.split.training, self.split.calibration),
            training,
            progress,
            known=self.start.get("known", ()),
            given=manifest,
        )
        for vectors in self.run.path.glob(VECTORS):
            vectors.unlink()
        return self.run.bundle_path

    def _alone(self) -> Network:
        """Give the network on one device, which is what is exported."""
        if not self.team.strategy:
            return self.network
        network = self._built()
        for variable, trained in zip(network.variables, self.network.variables, strict=True):
            variable.assign(np.asarray(trained))
        return network

    def report(self, bundle: Path | None) -> TrainReport:
        """Sum the run up."""
        history = self.loop.progress.history
        return TrainReport(
            out=self.run.path,
            interrupted=self.interrupted,
            epochs=self.loop.progress.step // self.schedule.steps_per_epoch,
            seconds=round(self.loop.progress.seconds, 1),
            val_auc=history[-1]["val_auc"] if history else None,
            people={name: len(part) for name, part in vars(self.split).items()},
            bundle=bundle,
            threshold=Bundle.open(bundle).threshold if bundle else None,
            warning=self.warning,
            worker=self.team.worker,
            workers=self.team.workers,
        )


def _validation(pairs: PairList) -> PairList:
    """Give every k-th calibration pair: as many genuine as impostor ones, the same each epoch."""
    return pairs.where(slice(None, None, -(-len(pairs) // VALIDATION_PAIRS)))
