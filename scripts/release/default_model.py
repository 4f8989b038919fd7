"""Rebuild the model that comes with the package: one network trained on all people of LFW.

    python scripts/release/default_model.py DATA --lists LISTS --view2 RUN/siamese --config \\
        scripts/release/default.toml

RUN/siamese is a method's folder of `facepairs crossval` with the bundles of all folds. Their scores
of the people that they were not trained on set the thresholds and the probabilities, and the model
card quotes View 2's accuracy. The network itself is trained on everybody with the same recipe, so
it cannot be measured on LFW. Ctrl-C saves; the same command goes on.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.default import FOLDER
from facepairs.bundles.error_table import ErrorTable
from facepairs.bundles.writer import check_replaceable, rewrite_bundle
from facepairs.cli.shared.output import ERROR, INTERRUPTED, log, print_error, progress_display
from facepairs.config import TrainConfig, from_table, load_config
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadData, FacepairsError
from facepairs.evaluation.lookalikes import CLUSTERS
from facepairs.evaluation.metrics.calibration import FittedCalibration, calibrate
from facepairs.evaluation.pair_scores import ScoredPairs, add_impostors, score_pairs
from facepairs.support.progress import MessageCallback
from facepairs.training.inputs.people import usable_photos
from facepairs.training.view2.folds import View2, check_unknown, read_view2
from facepairs.verification.verifier import Verifier

IMPOSTORS_PER_FOLD = 100_000
MEASURED_ON = "LFW View 2, people unseen in training"
SOURCE = "probability one half on the unseen people of LFW View 2's folds"
STANDS_FOR = (
    "These are networks of the same recipe, each tested on people that it was not trained on. "
    "This one was trained on all of these people, so it cannot be measured on LFW itself; its "
    "threshold and its probabilities come from the scores of those networks. Category: "
    "unrestricted, label-free outside data, because the face detector was trained on other photos."
)
NOTE = (
    "The photos are Labeled Faces in the Wild, deep-funneled (Huang et al., UMass Amherst "
    "TR 07-49, 2007; NIPS 2012): public figures in news pictures. Its authors warn that women, "
    "many ethnic groups, children and very old people are few in it or missing. They are real "
    "people, and the photos were published for research on face recognition; these weights derive "
    "from them and are given for research too. For anything else train on photos that you may use."
)
# Settings that may differ from those of the View 2 run: who is held out, and where files are.
FREE = (
    *("init", "lists", "cache", "seed", "skip_bad"),
    *("calibration_share", "test_share"),
)
KEYS = ("accuracy", "accuracy_standard_error", "folds")


def view2_figures(folder: Path) -> dict[str, Any]:
    """Return what the card quotes of a method's `result.json`; raises BadData."""
    path = folder / "result.json"
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"{path}: cannot be read ({error}); run facepairs crossval first") from None
    missing = [key for key in KEYS if not isinstance(result, dict) or result.get(key) is None]
    if missing:
        raise BadData(f"{path}: has no {missing[0]}; run facepairs crossval over all folds first")
    folds = [
        {"fold": fold["fold"], "accuracy": fold["accuracy"]}
        for fold in result["folds"]
        if isinstance(fold, dict) and {"fold", "accuracy"} <= fold.keys()
    ]
    if len(folds) < max(2, len(result["folds"])):
        raise BadData(f"{path}: folds must each have fold and accuracy, two or more of them")
    quoted = {key: result[key] for key in ("auc", "eer") if key in result}
    return {
        **{key: result[key] for key in KEYS},
        **quoted,
        "folds": folds,
        "stands_for": STANDS_FOR,
    }


def check_same_recipe(config: TrainConfig, folder: Path) -> str:
    """Check that the View 2 run used the settings of `config`; raises BadConfig.

    Returns:
        The fingerprint of the images of that run, or "".
    """
    path = folder / "config.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"{path}: cannot be read ({error}); give a folder of crossval") from None
    measured = vars(from_table(table.get("train", {}), str(path)))
    differing = [
        f"{name} = {value!r} (measured with {measured[name]!r})"
        for name, value in vars(config).items()
        if name not in FREE and value != measured[name]
    ]
    if differing:
        raise BadConfig(
            f"{path}: its figures are of another recipe than {', '.join(differing)}; use the same "
            "settings"
        )
    return str(table.get("data", {}).get("index", ""))


def calibration_of(view2: View2, folder: Path, log: MessageCallback) -> FittedCalibration:
    """Fit the calibration to the scores of each fold's network on the people of its set.

    The genuine pairs are those of View 2. The impostor pairs are of the same photos, and many more.

    Raises:
        BadRun: A fold's network knows people of its set.
        BadBundle: A fold has no bundle.
    """
    parts: list[ScoredPairs] = []
    for fold in range(1, len(view2.sets) + 1):
        bundle = Bundle.open(folder / f"fold-{fold:02d}" / "bundle")
        check_unknown(bundle, view2.index, view2.people_of(fold), fold)
        pairs = add_impostors(view2.index, view2.pairs_of(fold), fold, IMPOSTORS_PER_FOLD)
        log(f"fold {fold}: scoring {len(pairs):,} pairs")
        parts.append(score_pairs(Verifier(bundle), view2.index, pairs))
    genuine = np.concatenate([part.pairs.genuine for part in parts])
    score = np.concatenate([part.score for part in parts])
    fold_of = np.repeat(np.arange(len(parts)), [len(part.score) for part in parts])
    clusters = [part.cluster for part in parts if part.cluster is not None]
    numbered = None
    if len(clusters) == len(parts):  # each fold has its own
        cluster = np.concatenate(clusters).astype(np.int64)
        numbered = np.where(cluster > 0, cluster + CLUSTERS * fold_of, 0)
    left, right = (np.concatenate(side) for side in zip(*(p.people for p in parts), strict=True))
    return calibrate(
        genuine,
        score,
        fold_of,
        cluster=numbered,
        people=(left, right),
        source=SOURCE,
        measured_on=MEASURED_ON,
    )


def describe_clusters(errors: ErrorTable) -> str:
    """Return for the card how the FMR at the default threshold differs between clusters, or ""."""
    rates = sorted(row.fmr.rate for row in errors.clusters if row.fmr)
    if not rates:
        return ""
    middle, worst = np.median(rates), rates[-max(1, len(rates) // 10)]
    return (
        f"The photos of each fold's people fall into {CLUSTERS} clusters of look-alikes, "
        f"{len(rates)} in all. At the default threshold the median cluster accepts "
        f"{100 * middle:.1f} % of its strangers, and the worst tenth {100 * worst:.1f} % or more. "
        "Groups of people were not measured apart: facepairs infers nothing about people, and "
        "measures groups that you name (`facepairs evaluate --groups`)."
    )


def build(data: Path, lists: Path, view2: Path, config_file: Path, out: Path, run: Path) -> bool:
    """Train or resume, and write the bundle; return False if interrupted and saved."""
    config = load_config(config_file)
    check_replaceable(out)
    measured_on = check_same_recipe(config, view2)
    figures = view2_figures(view2)
    finding = progress_display()("finding faces")
    index, photos = usable_photos(FaceIndex.scan(data), config.align, config.skip_bad, log, finding)
    if measured_on not in ("", index.fingerprint):
        raise BadData(f"{view2}: was run on other images than {data} holds; give the same folder")
    calibration = calibration_of(read_view2(index, lists), view2, log)
    nobody = np.empty(0, np.int64)
    split = PeopleSplit(np.arange(len(index.people)), nobody, nobody)

    from facepairs.cli.shared.quiet import quiet_tensorflow, silence_libraries

    silence_libraries()
    quiet_tensorflow()
    from facepairs.training.options import TrainOptions
    from facepairs.training.train import train_people

    trained = train_people(
        index,
        photos.crop_plan(config.recipe.crop_spec, config.align),
        split,
        config,
        run,
        TrainOptions(
            log=log,
            progress=progress_display(),
            calibration=calibration,
        ),
        resume=(run / "config.toml").exists(),
    )
    if trained.interrupted:
        return False
    publish(Bundle.open(trained.bundle), out, figures, calibration)
    return True


def publish(
    trained: Bundle, out: Path, figures: dict[str, Any], calibration: FittedCalibration
) -> Bundle:
    """Write the bundle with its calibration, the protocol's figures and a card on both."""
    errors = msgspec.structs.replace(calibration.errors, clusters=())  # too small for a table
    changes = {
        "training": {**trained.raw["training"], "protocol": "everyone"},
        "results": {"view2": figures},
        "licence": "research",
        "note": NOTE,
        "failures": describe_clusters(calibration.errors) or None,
        **calibration.manifest_fields(),
    }
    return rewrite_bundle(trained, out, changes, errors=errors)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    parser.add_argument("--view2", type=Path, required=True, help="a method's folder of crossval")
    parser.add_argument("--config", type=Path, required=True, help="TOML file of the recipe")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--run", type=Path, default=Path("runs/default"), help="run folder")
    options = parser.parse_args(arguments)
    try:
        finished = build(
            options.data, options.lists, options.view2, options.config, options.out, options.run
        )
    except (FacepairsError, OSError) as error:
        print_error("error", str(error), False)
        return ERROR
    print(f"{options.out}" if finished else "stopped and saved; the same command goes on")
    return 0 if finished else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
