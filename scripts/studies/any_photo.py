"""What finding and aligning faces in ordinary photos costs: scenes made from LFW's test people.

    python scripts/studies/any_photo.py DATA --lists LISTS --bundle BUNDLE --out study

DATA is LFW, LISTS the folder of its official lists, BUNDLE was trained on View 1 with
`--align landmarks`. Photos of View 1's test people are made into ordinary ones:

- scene: scaled by .4 to 2, turned by up to 20 degrees and pasted into a larger picture;
- steep scene: the same, turned by 20 to 60 degrees;
- turned 90, 180 or 270; mouth and chin covered; eyes covered: the photo itself, changed.

`Verifier.detect` looks for the face in each, as a JPEG. Landmarks are compared with those
found in LFW's photo, mapped by the known transform; errors are mean distances in parts of the eye
distance. Embeddings of the changed photos decide the same pairs as those of the photos themselves:
all pairs of the photos, each person's genuine pairs counted as one; intervals of 95 % are over
people, as the product's. With --groups, the faces of photos annotated by dlib are looked for, too.
The study can be interrupted; the same command goes on.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from annotated_photos import annotated_figures
from looks import SAME_FACE, Row, Study, all_rows
from pictures import (
    BACKGROUNDS,
    TURNS_DEG,
)

from facepairs.cli.shared.output import ERROR, print_error, showing_on_stderr
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.errors import BadConfig, FacepairsError
from facepairs.evaluation.metrics.intervals import (
    clopper_pearson,
    difference_interval,
    spread_over_people,
)
from facepairs.photos.detector import DETECTOR
from facepairs.support.atomic import atomic_file
from facepairs.support.results import json_text
from facepairs.verification.verifier import Verifier

CONFIDENT = 0.95  # probability

Floats = npt.NDArray[np.floating[Any]]


def groups_of(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each kind of picture, and of scenes by size, angle and background."""
    kinds = list(dict.fromkeys(row.kind for row in rows))
    for kind in kinds:
        members = [row for row in rows if row.kind == kind]
        yield kind, members
        if kind == "scene":
            yield from _by(members, "scale", (0.4, 0.6, 0.9, 1.4, 2.01), lambda row: row.scale)
            yield from _by(members, "degrees", (0, 5, 10, 15, 20.1), lambda row: abs(row.turn_deg))
            for name in BACKGROUNDS:
                yield f"scene, {name}", [row for row in members if row.background == name]
        if kind == "steep scene":
            yield from _by(members, "degrees", (20, 30, 45, 60.1), lambda row: abs(row.turn_deg))


def _by(
    rows: list[Row], name: str, edges: tuple[float, ...], value: Callable[[Row], float]
) -> Iterator[tuple[str, list[Row]]]:
    for low, high in pairwise(edges):
        members = [row for row in rows if low <= value(row) < high]
        yield f"{rows[0].kind if rows else ''}, {name} {low:g} to {high:.2g}", members


def detection(rows: list[Row]) -> dict[str, Any]:
    """Count the faces found in some pictures, and summarise the errors of their landmarks."""
    errors = np.array([row.error for row in rows if row.error is not None])
    right = errors[errors <= SAME_FACE]
    among = sum(row.best_error is not None and row.best_error <= SAME_FACE for row in rows)
    reasons = [row.reason for row in rows if row.reason]
    return {
        "pictures": len(rows),
        "a_face_found": len(errors),
        "the_face_found": len(right),
        "interval": clopper_pearson(len(right), len(rows)),
        "among_all_faces": among,
        "refused": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
        "median_error": float(np.median(right)) if len(right) else None,
        "p95_error": float(np.quantile(right, 0.95)) if len(right) else None,
    }


class Pairs:
    """All pairs of the photos, and what embeddings decide about them.

    Args:
        person: int[N], rising.
        direct: float[N, D], embeddings of LFW's photos; NaN where no face was found.
        verifier: Whose threshold and calibration decide.
    """

    def __init__(
        self, person: npt.NDArray[np.integer[Any]], direct: Floats, verifier: Verifier
    ) -> None:
        self._person, self._direct, self._profile = person, direct, verifier.model.profile
        self._people, self._begin = np.unique(person, return_index=True)
        everybody = np.ones((1, len(self._people)))
        self._weights = np.concatenate([everybody, everybody - np.eye(len(self._people))])

    def compare(self, changed: Floats, both: bool) -> dict[str, Any] | None:
        """Compare changed photos with the photos themselves on the same pairs.

        Returns None without genuine or without impostor pairs.

        Args:
            changed: float[N, D], NaN for photos that were not changed or without a face.
            both: Both photos of a pair are changed ones; otherwise the second is LFW's own.
        """
        rows = np.flatnonzero(~np.isnan(changed[:, 0]) & ~np.isnan(self._direct[:, 0]))
        columns = rows if both else np.flatnonzero(~np.isnan(self._direct[:, 0]))
        genuine = self._person[rows, None] == self._person[columns]
        valid = rows[:, None] != columns
        if not (genuine & valid).any() or genuine.all():
            return None
        second = changed if both else self._direct
        new = self._decide(changed[rows] @ second[columns].T, genuine)
        old = self._decide(self._direct[rows] @ self._direct[columns].T, genuine)
        shares = {
            name: self._balanced(values, valid, rows, columns)
            for name, values in {
                "accuracy": new[0], "direct": old[0],
                "confident_and_wrong": new[1], "direct_confident_and_wrong": old[1],
            }.items()
        }  # fmt: skip
        difference = shares["accuracy"] - shares["direct"]
        without = np.where(np.isnan(difference[1:]), difference[0], difference[1:])
        spread = spread_over_people(difference[0] - without, np.zeros(len(without)))
        people = len(np.unique(self._person[rows[(genuine & valid).any(axis=1)]]))
        low, high = difference_interval(float(difference[0]), spread, 1 / (2 * people))
        return {
            "photos": len(rows),
            "genuine_pairs": int((genuine & valid).sum()) // (2 if both else 1),
            "impostor_pairs": int((~genuine).sum()) // (2 if both else 1),
            **{name: float(share[0]) for name, share in shares.items()},
            "difference": float(difference[0]),
            "interval": (low, high),
        }

    def _decide(
        self, score: Floats, genuine: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which pairs are decided correctly, and which confidently and wrongly."""
        correct = (score >= self._profile.balanced_threshold) == genuine
        assert self._profile.calibration is not None
        probability = self._profile.calibration.probability(score)
        confident = np.where(genuine, probability <= 1 - CONFIDENT, probability >= CONFIDENT)
        return correct, confident

    def _balanced(
        self,
        values: npt.NDArray[np.bool_],
        valid: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.integer[Any]],
        columns: npt.NDArray[np.integer[Any]],
    ) -> Floats:
        """Return the mean over both classes, of all people and without each of them."""
        hits, pairs = (self._by_people(one, rows, columns) for one in (values & valid, valid))
        own, of = np.diag(hits).copy(), np.diag(pairs).copy()
        has = of > 0
        share = np.divide(own, of, out=np.zeros_like(own), where=has)
        np.fill_diagonal(hits, 0)
        np.fill_diagonal(pairs, 0)
        weights = self._weights
        with np.errstate(invalid="ignore"):  # without the only one there is no genuine pair
            genuine = (weights @ share) / (weights @ has.astype(np.float32))
            right, of_all = (((weights @ one) * weights).sum(axis=1) for one in (hits, pairs))
            mean: Floats = (genuine + right / of_all) / 2
        return mean

    def _by_people(
        self,
        values: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.integer[Any]],
        columns: npt.NDArray[np.integer[Any]],
    ) -> npt.NDArray[np.float32]:
        """Sum a matrix of pairs of photos to one of pairs of people."""
        table = np.zeros((len(self._people), len(self._people)), np.float32)
        left, right = (np.searchsorted(self._people, self._person[one]) for one in (rows, columns))
        lefts, at = np.unique(left, return_index=True)
        rights, below = np.unique(right, return_index=True)
        sums = np.add.reduceat(values.astype(np.float32), at, axis=0)
        table[np.ix_(lefts, rights)] = np.add.reduceat(sums, below, axis=1)
        return table


def embeddings(rows: Iterable[Row], count: int, by_truth: bool = False) -> Floats:
    """Return float32[count, D] by the number of the photo, NaN where a row has no embedding."""
    found = {row.photo: row.by_truth if by_truth else row.embedding for row in rows}
    known = [values for values in found.values() if values is not None]
    table = np.full((count, len(known[0]) if known else 1), np.nan, np.float32)
    for photo, values in found.items():
        if values is not None:
            table[photo] = values
    return table


def figures(study: Study, rows: list[Row]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures of detection and of verification for every group of pictures."""
    count = len(study.photos)
    person = study.index.person_of[study.photos]
    direct = embeddings((row for row in rows if row.kind == "LFW's photo"), count)
    pairs = Pairs(person, direct, study.verifier)
    found, decided = {}, {}
    for name, members in groups_of(rows):
        if not members:
            continue
        found[name] = detection(members)
        right = [row for row in members if row.error is not None and row.error <= SAME_FACE]
        if name == "LFW's photo" or not right:
            continue
        if "," in name:  # a part of the scenes
            decided[f"{name}, found"] = pairs.compare(embeddings(right, count), both=False)
            continue
        both = name == "scene"
        decided[name] = pairs.compare(embeddings(members, count), both)
        decided[f"{name}, where the face was found"] = pairs.compare(embeddings(right, count), both)
        if name in TURNS_DEG:
            decided[f"{name}, aligned by the truth"] = pairs.compare(
                embeddings(members, count, by_truth=True), both
            )
    return found, {name: row for name, row in decided.items() if row}


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".replace("0.", ".", 1)


def markdown(result: dict[str, Any]) -> str:
    """Return the tables of the study as Markdown."""
    lines = [
        "| pictures | n | a face found | the face (95 %) | among all faces | median error | 95 % |",
        "| --- " * 7 + "|",
    ]
    for name, row in result["detection"].items():
        n = row["pictures"]
        low, high = row["interval"]
        cells = (
            f"{_share(row['the_face_found'] / n)} ({_share(low)} to {_share(high)})",
            _share(row["among_all_faces"] / n),
            _share(row["median_error"]),
            _share(row["p95_error"]),
        )
        lines.append(f"| {name} | {n} | {_share(row['a_face_found'] / n)} | {' | '.join(cells)} |")
    lines += [
        "",
        "| pairs of | photos | accuracy | of LFW's photos | difference in points (95 %) | "
        "confident and wrong | of LFW's photos |",
        "| --- " * 7 + "|",
    ]
    for name, row in result["verification"].items():
        low, high = (100 * value for value in row["interval"])
        lines.append(
            f"| {name} | {row['photos']} | {_share(row['accuracy'])} | {_share(row['direct'])} | "
            f"{100 * row['difference']:+.2f} ({low:+.2f} to {high:+.2f}) | "
            f"{_share(row['confident_and_wrong'])} | {_share(row['direct_confident_and_wrong'])} |"
        )
    if groups := result.get("groups"):
        low, high = groups["interval"]
        errors = ", ".join(f"{name} {_share(v)}" for name, v in groups["median_error"].items())
        bare = [row for row in groups["photos"].values() if not row["annotated"]]
        lines += [
            "",
            f"Annotated photos: {groups['found']} of {groups['faces']} faces found "
            f"({_share(low)} to {_share(high)}), {sum(r['other_faces'] for r in bare)} faces on "
            f"{len(bare)} photos without annotations; median landmark error "
            f"{_share(groups['median_mean_error'])}, 95 % {_share(groups['p95_mean_error'])}; by "
            f"landmark: {errors}.",
        ]
    return "\n".join(lines) + "\n"


def failures(study: Study, rows: list[Row]) -> list[dict[str, Any]]:
    """Return the pictures in which another face than the right one was found, or none."""
    bad = [row for row in rows if row.error is None or row.error > SAME_FACE]
    names = ("kind", "scale", "turn_deg", "background", "faces", "reason", "error", "best_error")
    return [
        {"photo": study.index.name(int(study.photos[row.photo]))}
        | {name: getattr(row, name) for name in names}
        for row in bad
    ]


def choose_photos(index: FaceIndex, lists: Path, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return photos of View 1's test people by rising number, all or `most` drawn at random.

    Two photos of everybody who has several come first: they are what genuine pairs are made of.
    """
    people = np.concatenate(read_people(lists / "peopleDevTest.txt", index))
    rng = np.random.Generator(np.random.Philox(key=seed))
    pairs, rest = [], []
    for person in people:
        photos = rng.permutation(np.array(index.images_of(int(person)))).tolist()
        pairs += photos[:2] if len(photos) > 1 else []
        rest += photos[2:] if len(photos) > 1 else photos
    order = [*rng.permutation(pairs).tolist(), *rng.permutation(rest).tolist()]
    return np.sort(np.array(order[: most or None], np.int64))


def open_verifier(path: Path) -> Verifier:
    """Open the bundle; raises BadConfig if it cannot serve here."""
    verifier = Verifier.load(path, threads=1)
    model = verifier.model
    model.check_embeds("the study compares them")
    if not model.aligned or model.profile.calibration is None:
        raise BadConfig(f"{path}: the study needs a bundle of siamese, trained on aligned faces")
    return verifier


def run(options: argparse.Namespace) -> dict[str, Any]:
    index = FaceIndex.scan(options.data)
    verifier = open_verifier(options.bundle)
    photos = choose_photos(index, options.lists, options.scenes, options.seed)
    study = Study(index, photos, verifier, options.seed, options.changed)
    about = {
        "schema": 1,
        "detector": DETECTOR,
        "network_sha256": verifier.model.network.embedder_sha256,
        "photos": len(photos),
        "changed_photos": min(options.changed, len(photos)),
        "seed": options.seed,
    }
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    rows = all_rows(study, options.out / f"parts-{digest}")
    found, decided = figures(study, rows)
    result = {**about, "detection": found, "verification": decided}
    if options.groups:
        result["groups"] = annotated_figures(verifier, options.groups)
    result["failures"] = failures(study, rows)
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of the official lists")
    parser.add_argument("--bundle", type=Path, required=True, help="trained on View 1, aligned")
    parser.add_argument("--scenes", type=int, default=0, help="photos to use; 0 for all")
    parser.add_argument("--changed", type=int, default=300, help="of these, changed in every way")
    parser.add_argument("--groups", type=Path, help="photos annotated by dlib")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/any-photo"))
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    cv2.setNumThreads(1)  # photos are read by threads of their own
    try:
        with showing_on_stderr():
            result = run(options)
        text = markdown(result)
        for name, content in (("result.json", json_text(result) + "\n"), ("result.md", text)):
            with atomic_file(options.out / name) as handle:
                handle.write(content)
    except (FacepairsError, OSError) as error:
        print_error(getattr(error, "kind", "error"), str(error), options.json)
        return ERROR
    print(json_text(result) if options.json else text, end="\n" if options.json else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
