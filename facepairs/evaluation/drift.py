"""Do photos still resemble those that a verifier was measured on? No labels are needed.

One photo of each person is compared with one of every other. Where strangers score higher than they
did, more of them pass; where faces are smaller or blurred, more genuine pairs are missed. The
calibration keeps three quantiles of the scores of strangers and of the sizes of faces, and how many
photos had which hint (`SampleFigures`). Without labels people are told apart by their embeddings:
photos are grouped by average linkage at the verifier's threshold for an FMR of .001. Photos are
taken in random order, one of each group, until half of the groups are there: among the last ones,
photos that fit no group would be too frequent.

The chance is that of as large a difference between two samples of one population: of scores by
Hotelling's test, whose covariance sums the influence of each pair by person, because pairs share
people; of sizes by the same test for independent photos; of hints by Fisher's exact test. The
chance of several tests is Bonferroni's. `scripts/studies/drift.py` measures how often it is below
.05 where nothing has changed.

References:
    Anderson, *An Introduction to Multivariate Statistical Analysis*, 2003, section 5.2: Hotelling.
    Aronow, Samii and Assenova, Political Analysis 23, 2015: pairs that share people.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.model import Model, open_model
from facepairs.bundles.rates import SAMPLE_SHARES, ErrorTable, SampleFigures
from facepairs.bundles.scorer import ScoreArray
from facepairs.data.pairs import csv_rows, person_of
from facepairs.errors import BadBundle, BadData, NotEnough
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints
from facepairs.evaluation.scores import parse_score
from facepairs.grouping.collection import find_photos
from facepairs.grouping.linkage import average_linkage, unit_rows
from facepairs.photos.face_sample import FaceSample
from facepairs.support.extras import require_extra
from facepairs.support.results import Result
from facepairs.support.words import command_line
from facepairs.verification.verifier import Verifier

MOST_PHOTOS, MOST_PEOPLE = 3_000, 1_000  # drawn
FEWEST_PEOPLE = 10
GROUPING_FMR = 0.001
LEVEL = 0.01  # of the chance below which photos have changed
SHARES = np.array(SAMPLE_SHARES)


class Change(msgspec.Struct, frozen=True):
    """What was compared with the calibration.

    Attributes:
        what: `scores`, `face sizes` (in pixels), or `hint KIND`.
        calibration: There: what 10, 50 and 90 % are below, or the share of photos with the hint.
        here: The same here.
        chance: The chance of such a difference if nothing has changed.
    """

    what: str
    calibration: list[float]
    here: list[float]
    chance: float


class DriftReport(Result, frozen=True, kw_only=True):
    """Whether photos resemble those that a verifier was measured on.

    Attributes:
        changed: Whether they differ by more than chance: `chance` is below 0.01.
        chance: The chance of differences as large as these if nothing has changed.
        model: The model's place, such as `default`.
        measured_on: What it was measured on, in words.
        source: The photos or scores.
        people: Number of people or, of scores whose photos have no folders of people, of photos.
        pairs: Number of pairs.
        changes: What was compared.
        advice: What to do, a line each.
    """

    changed: bool
    chance: float
    model: str
    measured_on: str
    source: str
    people: int
    pairs: int
    changes: list[Change]
    advice: list[str]


def drift(bundle: Path | str, source: Path | str) -> DriftReport:
    """Compare unlabelled photos, or scores of random pairs, with what a verifier was measured on.

    Args:
        bundle: A bundle, the TOML file of an external embedder, or `default`.
        source: Folder of photos, at any depth; or a CSV file with the columns left, right, score,
            of pairs drawn at random. Pairs that reach the threshold are then left out, because they
            may be genuine.

    Raises:
        BadBundle: The model cannot be opened, has no embeddings, or was measured without photos.
        BadData: The source cannot be read.
        NotEnough: It shows fewer than 20 people, as far as the verifier tells them apart.
    """
    require_extra("measure", "facepairs drift")
    model, source = open_model(bundle), Path(source)
    table, known = _reference(model)
    if source.is_file():
        people, pairs, changes = _drift_of_scores(source, model, table, known)
    else:
        people, pairs, changes = _drift_of_photos(source, model, table, known)
    chance = min(1.0, len(changes) * min(change.chance for change in changes))
    return DriftReport(
        changed=chance < LEVEL,
        chance=chance,
        model=model.place,
        measured_on=table.measured_on,
        source=str(source),
        people=people,
        pairs=pairs,
        changes=changes,
        advice=_advice(changes, model) if chance < LEVEL else [],
    )


def _reference(model: Model) -> tuple[ErrorTable, SampleFigures]:
    """Return what a model was measured on last, with its photos."""
    tables = (model.profile.own_errors, model.profile.errors)
    for table in tables:
        if table is not None and table.sample is not None:
            return table, table.sample
    calibrate = command_line("calibrate", model.place, "people/", "--out", "mine")
    raise BadBundle(f"{model.place}: has no statistics of photos to compare with; run: {calibrate}")


def sample_figures(verifier: Verifier, faces: Iterable[FaceSample]) -> SampleFigures | None:
    """Return what the first usable photo of each person looks like; None with too few people.

    Args:
        verifier: The model.
        faces: The faces of photos `Person_Name/photo.jpg`, from `Verifier.read`. Of more than 1,000
            people, so many are drawn.
    """
    usable: dict[str, FaceSample] = {}
    for face in faces:
        if not face.error:
            usable.setdefault(person_of(face.name), face)
    if len(usable) < FEWEST_PEOPLE or not verifier.model.network.embeds:
        return None
    shown = [*usable.values()]
    drawn = np.random.default_rng(0).permutation(len(shown))[:MOST_PEOPLE]
    chosen = [shown[place] for place in np.sort(drawn).tolist()]
    score, _, _ = _all_pairs(verifier, _rows(chosen))
    sides = [face.face.side_px for face in chosen if face.face]
    kinds = [hint.kind for face in chosen for hint in face.hints]
    return SampleFigures(
        people=len(chosen),
        scores=_quantiles(score),
        sides_px=_quantiles(np.array(sides)) if sides else None,
        hints={kind: kinds.count(kind) / len(chosen) for kind in sorted(set(kinds))},
    )


def _quantiles(values: Floats) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, SHARES).round(6).tolist()
    return low, middle, high


def _rows(faces: Sequence[FaceSample]) -> ScoreArray:
    return np.array([face.embedding for face in faces], np.float32)


def _all_pairs(verifier: Verifier, embeddings: ScoreArray) -> tuple[Floats, Ints, Ints]:
    """Return the scores of all pairs of rows, and the numbers of both."""
    left, right = np.triu_indices(len(embeddings), 1)
    chunks = (slice(at, at + 50_000) for at in range(0, len(left), 50_000))
    parts = [verifier.compare(embeddings[left[c]], embeddings[right[c]]) for c in chunks]
    return np.concatenate(parts).astype(np.float64), left, right


def one_of_each(embeddings: ScoreArray, threshold: float) -> Ints:
    """Return the places of one photo of each of half of the people, as embeddings tell them apart.

    Args:
        embeddings: float32[N, D].
        threshold: The score from which on photos show one person; scores are cosines.
    """
    rows = unit_rows(embeddings)
    groups = average_linkage(rows, 1 - threshold, evidence=0).labels(1 - threshold)
    order = np.random.default_rng(0).permutation(len(groups))
    first = np.sort(np.unique(groups[order], return_index=True)[1])
    return np.sort(order[first[: min((len(first) + 1) // 2, MOST_PEOPLE)]])


def _drift_of_photos(
    folder: Path, model: Model, table: ErrorTable, known: SampleFigures
) -> tuple[int, int, list[Change]]:
    verifier = Verifier(model)
    names, _ = find_photos(folder)
    chosen = np.random.default_rng(0).permutation(len(names))[:MOST_PHOTOS]
    seen = verifier.read([folder / names[place] for place in np.sort(chosen).tolist()])
    faces = [face for face in seen if not face.error]
    if len(faces) >= FEWEST_PEOPLE:
        threshold = table.threshold_for(GROUPING_FMR)
        faces = [faces[place] for place in one_of_each(_rows(faces), threshold).tolist()]
    _check_people(len(faces), folder)
    score, left, right = _all_pairs(verifier, _rows(faces))
    number = len(faces)
    changes = [change_of_scores(score, (left, right), known)]
    sides = np.array([face.face.side_px for face in faces if face.face])
    if known.sides_px and len(sides):
        below = sides[:, None] < np.array(known.sides_px)
        chance = _chance(below.mean(axis=0) - SHARES, _independent(SHARES, number), number, known)
        changes.append(Change("face sizes", [*known.sides_px], [*_quantiles(sides)], chance))
    kinds = [{hint.kind for hint in face.hints} for face in faces]
    for kind in sorted(set().union(known.hints, *kinds)):
        changes.append(_change_of_hint(kind, np.array([kind in one for one in kinds]), known))
    return number, len(score), changes


def _change_of_hint(kind: str, has: Bools, known: SampleFigures) -> Change:
    from scipy.stats import fisher_exact

    share, here = known.hints.get(kind, 0.0), int(has.sum())
    there = round(share * known.people)
    table = [[there, known.people - there], [here, len(has) - here]]
    return Change(f"hint {kind}", [share], [here / len(has)], float(fisher_exact(table).pvalue))


def _drift_of_scores(
    path: Path, model: Model, table: ErrorTable, known: SampleFigures
) -> tuple[int, int, list[Change]]:
    threshold = operating_point(model.profile).threshold
    assert threshold is not None
    names: list[str] = []
    scores: list[float] = []
    for line, row in csv_rows(path, ("left", "right", "score")):
        try:
            score = parse_score(row["score"]) if row["score"].strip() else threshold
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        if score < threshold:
            scores.append(score)
            names += [person_of(row[side]) or row[side] for side in ("left", "right")]
    people, number = np.unique(np.array(names, str), return_inverse=True)
    _check_people(len(people), path)
    left, right = number.reshape(-1, 2).T
    passed = table.at(threshold).fmr
    assert passed is not None
    change = change_of_scores(np.array(scores), (left, right), known, 1 - passed.value)
    return len(people), len(scores), [change]


def _check_people(people: int, source: Path) -> None:
    if people < FEWEST_PEOPLE:
        raise NotEnough(
            f"{source}: shows too few people, as far as this model tells them apart; give photos "
            f"of {2 * FEWEST_PEOPLE} or more"
        )


def change_of_scores(
    score: Floats, people: tuple[Ints, Ints], known: SampleFigures, most: float = 1.0
) -> Change:
    """Compare scores of pairs of strangers with those of the calibration.

    Args:
        score: float64[N].
        people: The people on both sides, int64[N] each, numbered from 0.
        known: The calibration's.
        most: The share of the calibration's pairs that `score` can show: those below a threshold.
    """
    shares, number = SHARES / most, int(max(side.max() for side in people)) + 1
    can_show = shares < 1
    shares, below = shares[can_show], score[:, None] < np.array(known.scores)[can_show]
    rates = below.mean(axis=0)
    influence = (below - rates) / len(score)
    sums = [sum(np.bincount(side, part, number) for side in people) for part in influence.T]
    by_person = np.array(sums) @ np.array(sums).T * number / (number - 1)
    covariance = by_person + _independent(shares, len(score))
    chance = _chance(rates - shares, covariance, number, known)
    here = np.quantile(score, shares).tolist()
    return Change("scores", [*known.scores][: len(shares)], here, chance)


def _independent(shares: Floats, number: int) -> Floats:
    """Return the covariance of the shares of independent values below rising limits."""
    return (np.minimum.outer(shares, shares) - np.outer(shares, shares)) / number


def _chance(gaps: Floats, covariance: Floats, number: int, known: SampleFigures) -> float:
    """Return the chance of gaps between as many people and those of the calibration."""
    from scipy.special import fdtrc

    both = covariance * (1 + number / known.people)
    squared, several = float(gaps @ np.linalg.solve(both, gaps)), len(gaps)
    free = number - several
    return float(fdtrc(several, free, squared * free / (several * (number - 1))))


def _advice(changes: Sequence[Change], model: Model) -> list[str]:
    """Return what to do about changes."""
    calibrate = command_line("calibrate", model.place, "people/", "--out", "mine")
    lines = [
        "the measured errors are those of other photos: measure again on labelled photos like "
        f"these, with facepairs evaluate; then: {calibrate}"
    ]
    changed = {change.what for change in changes if change.chance * len(changes) < LEVEL}
    if "face sizes" in changed or "hint small" in changed:
        lines.append("faces differ in size: check distance and resolution of the camera")
    if any(what.startswith("hint ") for what in changed - {"hint small"}):
        lines.append("photos have other weaknesses: check light, focus and angle of the camera")
    return lines
