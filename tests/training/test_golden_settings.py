"""What a training reads and how its network is compiled, for each model.

`WRITE_GOLDEN=1 pytest` writes the file anew; look at what changes in it.
"""

import json
import re
from pathlib import Path

import psutil
import pytest
from golden import assert_golden, figures_of
from tiny.bundles import tiny_bundle

import facepairs
from facepairs.bundles.rates import OperatingPoint
from facepairs.config import TrainConfig
from facepairs.errors import BadConfig
from facepairs.recipes import RECIPES
from facepairs.training.distribution import Workers
from facepairs.training.fit import build_and_compile
from facepairs.training.inputs.data import TrainingData, open_store
from facepairs.training.inputs.people import describe_few_people, prepare
from facepairs.training.run_folder import Run, finished_run

KEPT = Path(__file__).parent / "golden.json"


@pytest.fixture(scope="module")
def people(faces):
    config = TrainConfig(align="none", model="difference", validation_share=0.2).resolve()
    return prepare(faces, config)


def test_each_model_reads_and_learns_as_it_did(people):
    found = {}
    for name in RECIPES:
        align = None if name == "resnet" else "none"  # it starts from the included model
        settings = {"align": align, "model": name, "pairs_per_epoch": 300, "epochs": 3}
        data = TrainingData.open(*people, TrainConfig(**settings).resolve(), "files")
        network, rate = build_and_compile(data, Workers())
        names = ("weight_decay", "global_clipnorm", "clipnorm", "beta_1", "beta_2", "epsilon")
        optimizer = {key: network.optimizer.get_config()[key] for key in names}
        excluded = [network.optimizer._use_weight_decay(one) for one in network.trainable_variables]
        loss = network.loss.get_config()
        pairs = {"calibration": data.calibration_pairs(), "validation": data.validation_pairs()}
        block = data.sampler().block(2, 0, 8)
        found[name] = [
            [optimizer, {key: loss[key] for key in sorted(loss) if key != "name"}, sum(excluded)],
            [rate.get_config(), *(float(rate(step)) for step in (0, 1, 30, 200))],
            [data.steps_per_epoch, data.config.batch_size, network.jit_compile, network.image_px],
            {key: [figures_of(one.left), figures_of(one.genuine)] for key, one in pairs.items()},
            [block.left.tolist(), block.right.tolist(), block.genuine.tolist()],
        ]
    found["images"] = figures_of(data.images)
    found["few"] = re.findall(r"\d+ \w+", describe_few_people(data.split))
    found["batches"] = [
        int(data.fixed_batches(data.store, data.validation_pairs()).cardinality()),
        sum(1 for _ in data.batches(data.store, 0, 2)),
    ]
    assert_golden(KEPT, found, rel=1e-5)


def test_devices_share_a_batch_and_its_normalisation(people):
    config = TrainConfig(align="none", model="siamese", batch_size=8).resolve()
    data, several = TrainingData.open(*people, config, "files"), Workers()
    several.replicas = 3
    with pytest.raises(BadConfig):
        build_and_compile(data, several)
    for several.replicas in (1, 2):
        network, _ = build_and_compile(data, several)
        layers = network.head._flatten_layers()
        shared = {layer.synchronized for layer in layers if hasattr(layer, "synchronized")}
        assert shared == {several.replicas > 1}


def test_auto_keeps_images_in_memory_where_they_take_a_quarter_of_it(people, monkeypatch):
    index, plan, _ = people
    needed, lines = 4 * 3 * len(index) * plan.spec.crop_px**2, []
    for available in (needed, needed - 4):
        memory = psutil.virtual_memory()._replace(available=available)
        monkeypatch.setattr(psutil, "virtual_memory", lambda memory=memory: memory)
        with facepairs.showing(log=lines.append):
            open_store(index, plan, "auto")
    assert [line.split()[1] for line in lines] == ["memory", "files"]
    assert (
        f"({needed / 4e6:,.0f} MB decoded, {needed / 1e6:,.0f} MB of memory are free)" in lines[0]
    )


def test_a_data_set_of_pairs_has_200_batches_of_64(faces):
    drawn = facepairs.pairs_dataset(faces, align="none")
    (left, right), genuine = next(iter(drawn))
    assert (left.shape, right.shape, genuine.shape) == ((64, 64, 64, 3), (64, 64, 64, 3), (64,))
    assert int(drawn.cardinality()) == 200


def run_of(out, **changes):
    fields = {
        "out": out, "interrupted": False, "epochs": 3, "epoch": 2, "seconds": 90.0,
        "wall_seconds": 150.0, "val_auc": 0.9, "val_people": 4, "people": {"training": 9},
        "operating_point": OperatingPoint(0.5, "balanced"),
    }  # fmt: skip
    return Run(**fields | changes)


def test_the_time_of_a_run_and_its_epoch_are_told(tmp_path):
    time = "3 epochs in 1.5 minutes, 2.5 minutes with preparation and export"
    kept = {2: "; epoch 2 was kept", 3: "", 0: "; the start was kept"}
    told = {epoch: run_of(tmp_path, epoch=epoch).describe_time() for epoch in kept}
    assert told == {epoch: time + words for epoch, words in kept.items()}


@pytest.mark.parametrize(
    ("given", "is_finished"),
    [
        ({"epochs": 3}, True),
        ({"epochs": 2}, True),
        ({"epochs": 4}, False),
        ({"minutes": 2.5}, True),
        ({"minutes": 2.51}, False),
        ({"minutes": 7.0}, True),  # as it was begun
    ],
)
def test_a_run_is_finished_unless_its_settings_leave_something_to_do(tmp_path, given, is_finished):
    begun = TrainConfig(model="siamese", minutes=7.0).resolve()
    (tmp_path / "config.toml").write_text(begun.to_toml())
    run = run_of(tmp_path)
    run.write()
    assert finished_run(tmp_path, begun) is None  # without a bundle
    tiny_bundle(tmp_path / "bundle", "embedding")
    assert Run.read(tmp_path) == run
    found = finished_run(tmp_path, TrainConfig(model="siamese", **given).resolve())
    assert found == (run if is_finished else None)
    damaged = {**run.to_json(), "operating_point": {"threshold": "x"}}
    (tmp_path / "result.json").write_text(json.dumps(damaged))
    assert Run.read(tmp_path) is None
