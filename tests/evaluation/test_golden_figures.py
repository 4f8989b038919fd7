"""All figures of small invented populations, as they were when slow versions agreed with them.

`WRITE_GOLDEN=1 pytest` writes the files anew; look at what changes in them.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from golden import assert_golden
from tiny.bundles import error_table
from tiny.scores import invented

from facepairs.bundles.error_profile import Calibration, ErrorProfile
from facepairs.bundles.rates import OperatingPoint
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.fitting import calibrate
from facepairs.evaluation.grouping import agreement, measure_grouping
from facepairs.evaluation.identification import identification_figures, split_people
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.evaluation.planning import plan, shown_rates
from facepairs.evaluation.report.tables import evaluation_tables
from facepairs.evaluation.scores import ScoredPairs, failed_pairs, write_scores
from facepairs.evaluation.summary import About
from facepairs.support.results import to_plain
from facepairs.verification.provenance import Provenance

KEPT = Path(__file__).parent / "golden"


def with_everything(seed: int, folds: int) -> ScoredPairs:
    """Return scored pairs with look-alikes, failures, faces, and a model that made them."""
    pairs = invented(1_600, seed, 1.5, folds)
    random = np.random.Generator(np.random.Philox(seed + 100))
    alike = ~pairs.genuine & (random.random(1_600) < 0.3)
    again = ~pairs.genuine & (random.random((4, 1_600)) < 0.3)
    names = sorted({*pairs.left, *pairs.right})
    failures = dict.fromkeys(names[5::31], "no_face") | {names[7]: "unreadable"}
    bad = [bool({*pair} & failures.keys()) for pair in zip(*pairs.sides, strict=True)]
    rows = zip(*pairs.sides, pairs.genuine.tolist(), pairs.fold.tolist(), strict=True)
    numbers = random.random((len(names), 4)).round(3) * (90, 1, 0.5, 40)
    origin = Provenance(
        model="mine",
        pairs="drawn",
        calibration=Calibration(1.5, -1.3, lookalikes=True),
        operating_point=OperatingPoint(1.4, "fmr-0.1", 0.1, "look-alikes"),
        failures=failures,
        faces=dict(zip(names, map(tuple, numbers.tolist()), strict=True)),
    )
    return replace(
        replace(pairs, alike=LookAlikes(alike, again)).without_photos(failures),
        failed=failed_pairs([row for row, is_bad in zip(rows, bad, strict=True) if is_bad]),
        origin=origin,
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """An evaluation of two scores files with everything that can be given."""
    root = tmp_path_factory.mktemp("golden")
    write_scores(root / "one.csv", with_everything(1, 0))
    write_scores(root / "two.csv", with_everything(2, 0))
    people = [f"Person_{number:02}" for number in range(20)]
    files = {
        "groups": ["person,group", *(f"{name},{'aabbbc'[k % 6]}" for k, name in enumerate(people))],
        "families": ["person,family", *(f"{name},{k // 2}" for k, name in enumerate(people[:8]))],
    }
    for name, lines in files.items():
        (root / f"{name}.csv").write_text("\n".join(lines) + "\n")
    given = {name: root / f"{name}.csv" for name in files}
    return evaluate([root / "one.csv", root / "two.csv"], **given, factors="faces")


def figures_of(summaries):
    """Return summaries without the paths of what was measured."""
    return [msgspec.structs.replace(one, about=About(name=one.about.name)) for one in summaries]


def test_every_figure_of_an_evaluation(both):
    found = {"models": figures_of(both.result.models), "comparison": both.comparison}
    assert_golden(KEPT / "evaluation.json", found)


def test_every_cell_of_the_tables(both):
    tables = both.with_command("facepairs evaluate").tables()
    tables += evaluation_tables(both.measurements[:1], None)
    cells = [[table.key, table.columns, table.rows] for table in tables if table.key != "history"]
    root = str(both.measurements[0].summary.about.source).removesuffix("one.csv")
    dated = re.compile(r"\d{4}-\d\d-\d\dT.*")
    text = json.dumps(to_plain(cells)).replace(root, "")
    rows = [
        [key, columns, [row for row in rows if not dated.match(str(row[-1][0]))]]
        for key, columns, rows in json.loads(text)
    ]
    assert_golden(KEPT / "tables.json", rows)


STYLE = "alpha color facecolor edgecolor linewidth linestyle zorder fontsize rotation ha visible"
POINTS = ("xydata", "offsets", "data", "array", "sizes", "position")


def test_everything_that_figures_draw(both):
    drawn = {}
    for key, figure in both.figures().items():
        axes = figure.figure.axes[0]
        legends = [one for one in (axes.get_legend(), *figure.figure.legends) if one]
        artists = [
            *(*axes.lines, *axes.collections, *axes.patches, *axes.images, *axes.texts),
            *(text for legend in legends for text in (legend.get_frame(), *legend.get_texts())),
            *(axes.spines["top"], axes.spines["left"], axes.xaxis.label, axes.get_xgridlines()[0]),
            *(*axes.get_xticklabels()[:1], axes.get_yticklines()[0]),
        ]
        ends = [*figure.figure.get_size_inches(), *axes.get_xlim(), *axes.get_ylim()]
        ends += [axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale(), axes.get_yscale()]
        drawn[key] = [ends, [plain_artist(artist) for artist in artists]]
    assert_golden(KEPT / "drawn.json", drawn, rel=1e-4)


def plain_artist(artist):
    """Return what is drawn and how: the style, and mean, spread and number of its points."""
    names = [name for name in STYLE.split() if hasattr(artist, f"get_{name}")]
    style = " ".join(f"{name}={getattr(artist, f'get_{name}')()}" for name in names)
    points = [getattr(artist, f"get_{name}")() for name in POINTS if hasattr(artist, f"get_{name}")]
    numbers = np.array([0.0, *numbers_in(points)])
    style = re.sub(r"np\.float64\((.*?)\)", r"\1", style)
    return [style, float(np.nanmean(numbers)), float(np.nanstd(numbers)), len(numbers)]


def numbers_in(value):
    if isinstance(value, np.ndarray):
        return np.ma.filled(value.astype(np.float64), 0).ravel().tolist()
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers_in(part)]
    return [value] if isinstance(value, int | float) else []


def test_every_figure_over_folds(tmp_path):
    bare = replace(with_everything(3, 4), origin=None, failed=None)
    write_scores(tmp_path / "s.csv", bare)
    (summary,) = evaluate(tmp_path / "s.csv").result.models
    assert_golden(KEPT / "folds.json", figures_of([summary]))


def photos(people: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings of one to five photos of each person, around eight looks."""
    random = np.random.default_rng(seed)
    look = random.normal(size=(8, 16))[np.arange(people) % 8]
    centres = look + 0.9 * random.normal(size=(people, 16))
    person = np.repeat(np.arange(people), 1 + np.arange(people) % 5)
    rows = centres[person] + noise * random.normal(size=(len(person), 16))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), person


def test_every_figure_of_identification():
    rows, person = photos(120, 0.8)
    profile, split = ErrorProfile(errors=error_table()), split_people(person)
    found = [
        identification_figures(profile, rows, person, split, compare)
        for compare in (cosines, lambda one, other: np.round(20 * cosines(one, other)) / 20)
    ]
    person = np.repeat(np.arange(301), [1] * 299 + [2, 2])
    rows = np.random.default_rng(0).normal(size=(303, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    few = identification_figures(profile, rows, person, split_people(person), cosines)
    assert few.points[1].fpir.value == 0.1  # of 300 strangers
    assert_golden(KEPT / "identification.json", [*found, few])


def cosines(one, other):
    return (one * other).sum(axis=1)


def test_every_figure_of_groups():
    heaps = [FaceHeap(*photos(30, 0.4, seed)) for seed in (1, 2)]
    heaps[1] = heaps[1]._replace(person=heaps[1].person + 20, cohort=photos(20, 0.4, 3)[0])
    random = np.random.default_rng(4)
    person = np.repeat(np.arange(40), random.integers(1, 12, 40))
    moved = random.random(len(person)) < 0.15
    group = np.where(moved, random.integers(0, 50, len(person)), person)
    errors = measure_grouping(heaps, error_table())
    figures = [
        msgspec.structs.replace(
            errors, **{k: getattr(errors, k)[::12] for k in ("cuts", "linked", "mixed")}
        ),
        agreement(person, group),
        agreement(person, group).rows(),
        agreement(person, person).rows(),
    ]
    assert_golden(KEPT / "groups.json", figures)


def test_every_figure_of_a_calibration():
    rows, person = photos(160, 0.8, 5)
    left, right = np.triu_indices(len(person), 1)
    genuine = person[left] == person[right]
    score = (rows[left] * rows[right]).sum(axis=1).astype(np.float64)
    alike = (person[left] % 8 == person[right] % 8) & ~genuine
    again = [alike & (left % 7 != k) for k in range(4)]
    fitted = calibrate(
        genuine,
        score,
        PeopleOfPairs(
            (person[left], person[right]), len(left), (person[left] // 2, person[right] // 2)
        ),
        lookalike=LookAlikes(alike, np.array(again)),
    )
    table = fitted.errors
    every = {k: getattr(table, k)[::9] for k in ("thresholds", "fmr", "lookalike_fmr", "fnmr")}
    shown = msgspec.structs.replace(fitted, errors=msgspec.structs.replace(table, **every))
    assert_golden(KEPT / "calibration.json", [shown, len(table.thresholds)])


def test_every_figure_of_plans():
    plans = [plan(0.001, 0.03), plan(0.02, 0.1, photos=2, share=0.3, power=0.9), plan(fmr=1e-5)]
    folders = [shown_rates(np.array(counts)) for counts in ([4] * 90, [1, 2, 3, 0, 9] * 60, [2, 1])]
    assert_golden(KEPT / "plans.json", [plans, folders])
