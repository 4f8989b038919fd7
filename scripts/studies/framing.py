"""What face framing finds, costs and brings, on scenes made from LFW's framed faces.

    python scripts/studies/framing.py LFW [--scenes 1000] [--bundle BUNDLE] [--pairs 1000]

LFW is the folder with lfw-deepfunneled/ and the official lists. A scene is a whole LFW frame of
250 x 250 pixels, scaled by 0.4 to 2, rotated by -20 to 20 degrees and pasted into a larger picture:
smooth noise, a gradient, a blurred photo, or another photo of LFW whose face is blurred. A face
counts as found if the frame of the largest face meets the pasted one with an intersection over
union of 0.5 or more. With a BUNDLE that was trained on View 1, pairs of pairsDevTest.txt are scored
as they are, framed again, and framed from scenes. Writes OUT/framing.json and OUT/framing.md.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from facepairs.cli.output import ERROR, print_error, progress_display
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_pairs
from facepairs.errors import FacepairsError
from facepairs.evaluation.metrics.curves import auc, auc_interval
from facepairs.evaluation.metrics.rates import accuracy, clopper_pearson
from facepairs.faces.detector import Face, overlap
from facepairs.faces.framing import (
    FRAME_BOXES,
    LFW_PX,
    correction_deg,
    find_faces,
    frame_face,
)
from facepairs.images.crop import CropSpec, load_crop
from facepairs.support.atomic import atomic_file
from facepairs.support.parallel import thread_map
from facepairs.verification.verifier import Verifier

WHOLE = CropSpec(LFW_PX, LFW_PX)
SCALES, MOST_TURN, LONG_PX = (0.4, 2.0), 20.0, (640, 1280)
BACKGROUNDS = ("noise", "gradient", "texture", "photo")
AGREES = 0.5
Image = npt.NDArray[np.uint8]


class Scene(NamedTuple):
    """A picture, the true position of its face, and what it was made of."""

    image: Image
    truth: Face
    background: str
    scale: float


def make_scene(face: Image, other: Image, seed: int, number: int) -> Scene:
    """Paste a face into a picture; the same seed and number give the same scene."""
    rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, number]))
    scale = float(np.exp(rng.uniform(*np.log(SCALES))))
    turn = float(rng.uniform(-MOST_TURN, MOST_TURN))
    long = int(rng.uniform(*LONG_PX))
    width, height = (long, long * 3 // 4) if rng.random() < 0.5 else (long * 3 // 4, long)
    background = BACKGROUNDS[int(rng.integers(len(BACKGROUNDS)))]
    picture = _background(background, width, height, other, rng)
    side = LFW_PX * scale
    half = min(side, width, height) / 2
    truth = Face(
        rng.uniform(half, width - half),
        rng.uniform(half, height - half),
        side / FRAME_BOXES,
        turn,
    )
    return Scene(_paste(picture, face, truth, scale), truth, background, scale)


def _paste(picture: Image, face: Image, truth: Face, scale: float) -> Image:
    size = round(LFW_PX * min(1.0, scale))
    small = cv2.resize(face, (size, size), interpolation=cv2.INTER_AREA)
    middle = (size - 1) / 2
    place = cv2.getRotationMatrix2D((middle, middle), truth.roll_deg, LFW_PX * scale / size)
    place[:, 2] += np.array([truth.x - 0.5, truth.y - 0.5]) - middle
    edge = max(1, size // 25)  # soft, because a hard edge could influence the detector
    soft = np.zeros((size, size), np.float32)
    soft[edge:-edge, edge:-edge] = 1
    soft = cv2.GaussianBlur(soft, (0, 0), edge / 2)
    canvas = picture.shape[1::-1]
    pasted = cv2.warpAffine(
        small, place, canvas, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    mask = cv2.warpAffine(soft, place, canvas)[..., None]
    return (pasted * mask + picture * (1 - mask)).astype(np.uint8)


def _background(
    kind: str, width: int, height: int, other: Image, rng: np.random.Generator
) -> Image:
    size = (width, height)
    if kind == "noise":
        coarse = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
        fine = rng.integers(0, 24, (height, width, 1))
        smooth = cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)
        return (smooth * 0.6 + 40 + fine).astype(np.uint8)
    if kind == "gradient":
        corners = rng.integers(0, 256, (2, 2, 3)).astype(np.uint8)
        return cv2.resize(corners, size, interpolation=cv2.INTER_LINEAR)
    if kind == "texture":
        small = cv2.GaussianBlur(other, (0, 0), LFW_PX / 20)
        return cv2.resize(small, size, interpolation=cv2.INTER_LINEAR)
    face = np.zeros((LFW_PX, LFW_PX), np.float32)
    cv2.ellipse(face, (LFW_PX // 2, LFW_PX // 2), (75, 95), 0, 0, 360, 1, -1)
    mask = cv2.GaussianBlur(face, (0, 0), 6)[..., None]
    hidden = other * (1 - mask) + cv2.GaussianBlur(other, (0, 0), 30) * mask
    side = max(size)
    large = cv2.resize(hidden.astype(np.uint8), (side, side), interpolation=cv2.INTER_LINEAR)
    left, top = (side - width) // 2, (side - height) // 2
    return large[top : top + height, left : left + width]


def detection(index: FaceIndex, scenes: int, seed: int) -> list[dict[str, Any]]:
    """Make scenes of different images and look for their faces; return a row per scene."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    chosen = rng.choice(len(index), 2 * scenes, replace=False).tolist()
    tick = progress_display()("scenes")

    def look(number: int) -> dict[str, Any]:
        face, other = (
            load_crop(index.path(image), WHOLE)
            for image in (chosen[number], chosen[scenes + number])
        )
        scene = make_scene(face, other, seed, number)
        started = time.thread_time()
        found = find_faces(scene.image)
        seconds = time.thread_time() - started
        agreement = [overlap(face, scene.truth) for face in found]
        return {
            "image": index.name(chosen[number]),
            "background": scene.background,
            "scale": round(scene.scale, 3),
            "turn": round(scene.truth.roll_deg, 1),
            "faces": len(found),
            "overlap": round(agreement[0], 3) if found else None,
            "best_overlap": round(max(agreement), 3) if found else None,
            "lean": round(found[0].roll_deg, 1) if found else None,
            "box_ratio": round(found[0].side_px / scene.truth.side_px, 3) if found else None,
            "seconds": round(seconds, 4),
        }

    rows = []
    for row in thread_map(look, range(scenes)):
        rows.append(row)
        tick(len(rows), scenes)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the faces found, in all scenes and in groups of scenes."""
    groups: dict[str, Callable[[dict[str, Any]], bool]] = {"all": lambda row: True}
    for name in BACKGROUNDS:
        groups[f"background {name}"] = lambda row, name=name: row["background"] == name
    for low, high in ((0.4, 0.6), (0.6, 0.9), (0.9, 1.4), (1.4, 2.1)):
        text = f"scale {low} to {min(high, SCALES[1])}"
        groups[text] = lambda row, low=low, high=high: low <= row["scale"] < high
    for low, high in ((0, 5), (5, 10), (10, 15), (15, 20.1)):
        text = f"turned by {low} to {high:.0f} degrees"
        groups[text] = lambda row, low=low, high=high: low <= abs(row["turn"]) < high
    table = {}
    for name, belongs in groups.items():
        members = [row for row in rows if belongs(row)]
        agree = int(sum((row["overlap"] or 0) >= AGREES for row in members))
        table[name] = {
            "scenes": len(members),
            "a_face_found": sum(row["faces"] > 0 for row in members),
            "frame_agrees": agree,
            "interval": clopper_pearson(agree, len(members)) if members else None,
            "agrees_among_all_faces": sum((row["best_overlap"] or 0) >= AGREES for row in members),
        }
    good = [row for row in rows if (row["overlap"] or 0) >= AGREES]
    lean = np.array([row["lean"] - row["turn"] for row in good])
    ratio = np.array([row["box_ratio"] for row in good])
    seconds = [row["seconds"] for row in rows]
    return {
        "groups": table,
        "lean_error_degrees": {"mean": float(lean.mean()), "sd": float(lean.std())},
        "box_ratio": {"mean": float(ratio.mean()), "sd": float(ratio.std())},
        "cpu_seconds_per_scene": {
            "median": float(np.median(seconds)),
            "p95": float(np.quantile(seconds, 0.95)),
        },
    }


class _Variants:
    """The crops that a network would see of the same photo, by the way it was framed."""

    def __init__(self, framing: CropSpec, seed: int) -> None:
        self._framing = framing
        self._seed = seed

    def crops(self, image: Image, other: Image, number: int) -> dict[str, Image | None]:
        scene = make_scene(image, other, self._seed, number)
        level = scene.truth.roll_deg
        found = {"image": find_faces(image), "scene": find_faces(scene.image)}
        faces = {key: value[0] if value else None for key, value in found.items()}
        wrong = faces["scene"] is None or overlap(faces["scene"], scene.truth) < AGREES
        truth = frame_face(scene.image, scene.truth, level, LFW_PX)
        return {
            "as it is": load_crop(image, self._framing),
            "framed anew": self._crop(image, faces["image"], True),
            "framed anew, not levelled": self._crop(image, faces["image"], False),
            "scene, framed by the truth": load_crop(truth, self._framing),
            "scene, framed": self._crop(scene.image, faces["scene"], True),
            "scene, framed, not levelled": self._crop(scene.image, faces["scene"], False),
            "scene, framed, where the face was found": None
            if wrong
            else self._crop(scene.image, faces["scene"], True),
        }

    def _crop(self, image: Image, face: Face | None, level: bool) -> Image | None:
        if face is None:
            return None
        frame = frame_face(image, face, correction_deg(face) if level else 0.0, LFW_PX)
        return load_crop(frame, self._framing)


def verification(
    index: FaceIndex, lfw: Path, verifier: Verifier, most: int, seed: int
) -> dict[str, Any]:
    """Score pairs of View 1's test list, framed in every way."""
    pairs = read_pairs(lfw / "pairsDevTest.txt", index)
    each = max(1, most // 2)
    chosen = np.concatenate(
        [np.flatnonzero(pairs.genuine)[:each], np.flatnonzero(~pairs.genuine)[:each]]
    )
    left, right, genuine = pairs.left[chosen], pairs.right[chosen], pairs.genuine[chosen]
    images = np.unique(np.concatenate([left, right]))
    variants, tick = _Variants(verifier.bundle.framing, seed), progress_display()("pairs")

    def embed(at: int) -> dict[str, npt.NDArray[np.float32] | None]:
        photo, other = (
            load_crop(index.path(int(images[number % len(images)])), WHOLE)
            for number in (at, at + 7)
        )
        crops = variants.crops(photo, other, at)
        return {
            name: None if crop is None else verifier.scorer.embed(crop[None])[0]
            for name, crop in crops.items()
        }

    rows = []
    for row in thread_map(embed, range(len(images))):
        rows.append(row)
        tick(len(rows), len(images))
    lefts, rights = np.searchsorted(images, left), np.searchsorted(images, right)
    return {
        name: _figures([row[name] for row in rows], lefts, rights, genuine, verifier)
        for name in rows[0]
    }


def _figures(
    rows: list[Any],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    genuine: npt.NDArray[np.bool_],
    verifier: Verifier,
) -> dict[str, Any]:
    have = np.array([row is not None for row in rows])
    both = have[left] & have[right]
    pairs = zip(left[both], right[both], strict=True)
    score = np.array([float(rows[a] @ rows[b]) for a, b in pairs])
    threshold = verifier.bundle.threshold
    return {
        "photos_without_a_face": int((~have).sum()),
        "pairs": int(both.sum()),
        "accuracy": accuracy(genuine[both], score, threshold),
        "auc": auc(genuine[both], score),
        "auc_interval": auc_interval(genuine[both], score),
    }


def markdown(found: dict[str, Any], scores: dict[str, Any] | None) -> str:
    """Return both tables as Markdown."""
    lines = [
        "| scenes | n | a face found | frame agrees | 95 % | among all faces |",
        "| --- " * 6 + "|",
    ]
    for name, row in found["groups"].items():
        n = row["scenes"]
        if n:
            shares = [row[key] / n for key in ("a_face_found", "frame_agrees")]
            low, high = row["interval"]
            cells = f"{shares[0]:.3f} | {shares[1]:.3f} | {low:.3f} to {high:.3f}"
            lines.append(f"| {name} | {n} | {cells} | {row['agrees_among_all_faces'] / n:.3f} |")
    for key in ("lean_error_degrees", "box_ratio", "cpu_seconds_per_scene"):
        text = ", ".join(f"{name} {value:.3f}" for name, value in found[key].items())
        lines.append(f"\n{key.replace('_', ' ')}: {text}")
    if scores:
        lines += ["", "| View 1 test pairs | pairs | accuracy | AUC | photos without a face |"]
        lines.append("| --- " * 5 + "|")
        for name, row in scores.items():
            low, high = row["auc_interval"]
            lines.append(
                f"| {name} | {row['pairs']} | {row['accuracy']:.3f} | {row['auc']:.3f} "
                f"({low:.3f} to {high:.3f}) | {row['photos_without_a_face']} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lfw", type=Path)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bundle", type=Path, help="a bundle of kind embedding, of View 1")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("framing_study"))
    options = parser.parse_args()
    cv2.setNumThreads(1)  # this script has threads of its own
    try:
        index = FaceIndex.scan(options.lfw / "lfw-deepfunneled")
        rows = detection(index, options.scenes, options.seed)
        found, scores = summary(rows), None
        if options.bundle:
            verifier = Verifier.load(options.bundle, threads=1)
            scores = verification(index, options.lfw, verifier, options.pairs, options.seed)
        text = markdown(found, scores)
        report = {"detection": found, "verification": scores, "scenes": rows, "seed": options.seed}
        for name, content in (("framing.json", json.dumps(report, indent=1)), ("framing.md", text)):
            with atomic_file(options.out / name) as handle:
                handle.write(content)
    except (FacepairsError, OSError) as error:
        print_error("error", str(error), False)
        return ERROR
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
