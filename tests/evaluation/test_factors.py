"""Errors by factor and by share discarded, against loops over pairs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_hand import slow_interval
from tiny.scores import invented

from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.factors import read_factors
from facepairs.evaluation.page.page import render_page
from facepairs.evaluation.scores import ScoredPairs, write_scores
from facepairs.verification.provenance import Provenance

CUT = 1.0
CAMERAS = ("door", "phone")


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> tuple[Path, ScoredPairs, dict[str, float], dict[str, str]]:
    """Return a folder with scores; the quality and the camera of their photos, but of some."""
    root = tmp_path_factory.mktemp("factors")
    pairs = invented(3000, folds=0)
    names = sorted({*pairs.left, *pairs.right})
    random = np.random.Generator(np.random.Philox(2))
    quality = dict(zip(names, random.integers(20, 90, len(names)).tolist(), strict=True))
    worst = [min(quality[a], quality[b]) for a, b in zip(*pairs.sides, strict=True)]
    score = pairs.score - np.where(pairs.genuine, (60 - np.array(worst)) / 40, 0)
    point = OperatingPoint(CUT, "x")
    origin = Provenance(model="mine", pairs="drawn", operating_point=point)
    pairs = replace(pairs, score=score, origin=origin)
    write_scores(root / "s.csv", pairs)
    camera = {name: CAMERAS[random.random() > 0.4] for name in names[:-9]}
    return root, pairs, quality, camera


def measured(world, text: str):
    root, *_ = world
    (root / "factors.csv").write_text(text)
    return evaluate(root / "s.csv", factors=root / "factors.csv")


def check_errors(errors, pairs, members):
    """Assert that errors are those of some pairs, which are counted one by one."""
    sides = tuple(np.array([int(name[7:9]) for name in side]) for side in pairs.sides)
    members, accepted = np.array(members), pairs.score >= CUT
    for rate, shown, wrong in (
        (errors.fmr, members & ~pairs.genuine, accepted),
        (errors.fnmr, members & pairs.genuine, ~accepted),
    ):
        value, interval = slow_interval(sides, shown, wrong)
        assert (rate.value, rate.of) == (value, int(shown.sum()))
        assert rate.interval == pytest.approx(interval, abs=1e-8)


def test_words_of_photos_have_levels_of_one_word_or_two(world):
    _, pairs, _, camera = world
    found = measured(world, "photo,Camera\n" + "".join(f"{k},{v}\n" for k, v in camera.items()))
    assert found.warnings == []
    (factor,) = found.summary.factors
    assert (factor.name, factor.discarded) == ("camera", [])
    assert list(factor.levels) == ["door", "door, phone", "phone", "not given"]
    for level, errors in factor.levels.items():
        members = []
        for names in zip(*pairs.sides, strict=True):
            words = {camera.get(name) for name in names}
            label = "not given" if None in words else ", ".join(sorted(words))
            members.append(label == level)
        check_errors(errors, pairs, members)


def test_photos_and_pairs_of_the_file_that_are_not_measured_are_counted(world):
    root, pairs, _, camera = world
    rows = "".join(f"{k},{v}\n" for k, v in camera.items())
    (line,) = measured(world, f"photo,camera\n{rows}No/one.png,door\nNo/two.png,door\n").warnings
    file = root / "factors.csv"
    known = f"2 of its {len(camera) + 2:,} photos are not in the pairs"
    assert line == f"{file}: {known} that are measured, such as No/one.png"
    text = f"left,right,years\n{pairs.right[0]},{pairs.left[0]},a\nNo/one.png,{pairs.left[0]},b\n"
    (line,) = measured(world, text).warnings
    assert line.startswith(f"{file}: 1 of its 2 pairs are not in the pairs")


def test_numbers_of_photos_have_quantiles_of_the_worse_photo_and_shares_discarded(world):
    _, pairs, quality, _ = world
    rows = "".join(f"{name};{number}\n" for name, number in quality.items())
    (factor,) = measured(world, "photo;quality\n" + rows).summary.factors
    worst = np.array([min(quality[a], quality[b]) for a, b in zip(*pairs.sides, strict=True)])
    ordered = sorted(worst[pairs.genuine].tolist())
    edges = [float(f"{np.quantile(ordered, share):.3g}") for share in (0.25, 0.5, 0.75)]
    ends = [-1e9, *edges, 1e9]
    assert next(iter(factor.levels)) == f"below {edges[0]:g}"
    for errors, low, high in zip(factor.levels.values(), ends, ends[1:], strict=False):
        check_errors(errors, pairs, [low <= value < high for value in worst.tolist()])
    assert (factor.worst, factor.discarded[0].share) == ("lowest", 0)
    for row in factor.discarded:
        kept = [value >= row.bound for value in worst.tolist()]
        check_errors(row.errors, pairs, kept)
        gone = sum(value < row.bound for value in ordered) / len(ordered)
        assert row.share == pytest.approx(gone)
    shares = [row.share for row in factor.discarded]
    assert (shares[0], shares[-1]) == (0, pytest.approx(0.5, abs=0.05))
    assert shares == sorted(set(shares))
    missed = [row.errors.fnmr.value for row in factor.discarded]
    assert missed[0] > missed[-1] + 0.05  # the score of bad photos is low


@pytest.mark.parametrize(("count", "kind"), [(4, str), (5, float)])
def test_four_different_values_are_words_even_if_they_are_numbers(tmp_path, count, kind):
    path = tmp_path / "f.csv"
    path.write_text(
        "photo,year\n" + "".join(f"a/{n}.jpg,{n},5\n" for n in range(count)).replace(",5", "")
    )
    (column,) = read_factors(path)
    assert {type(value) for value in column.values.values()} == {kind}
    words = "".join(f"a/{n}.jpg,w{n}\n" for n in range(20))
    path.write_text(f"photo,camera\n{words}a/x.jpg,\n")
    assert len(read_factors(path)[0].values) == 20
    path.write_text("photo,age\n" + "".join(f'a/{n}.jpg,"{n},5"\n' for n in range(5)))
    assert [*read_factors(path)[0].values.values()] == [0.5, 1.5, 2.5, 3.5, 4.5]


def years_between(one: str, other: str) -> int:
    return sum(13 * int(name[7:9]) + int(name[-8:-4]) for name in (one, other)) % 17


def test_factors_of_pairs_are_found_in_either_order_and_in_a_scores_file(world):
    _, pairs, _, _ = world
    years = [years_between(*pair) for pair in zip(*pairs.sides, strict=True)]
    rows = zip(pairs.right, pairs.left, years, strict=True)
    text = "".join(f"{one},{other},1,{number}\n" for one, other, number in rows)
    (factor,) = measured(world, f"left,right,genuine,years\n{text}").summary.factors
    assert (factor.name, factor.discarded) == ("years", [])
    edges = [float(name.partition(" ")[0]) for name in list(factor.levels)[1:]]
    ends = [-1e9, *edges, 1e9]
    for errors, low, high in zip(factor.levels.values(), ends, ends[1:], strict=False):
        check_errors(errors, pairs, [low <= value < high for value in years])


def test_the_report_shows_factors(world):
    _, _, quality, camera = world
    rows = [f"{name},{number},{camera.get(name, '')}" for name, number in quality.items()]
    found = measured(world, "\n".join(["photo,quality,camera", *rows]))
    tables = {table.key: table for table in found.tables()}
    assert {row[0].text for row in tables["factors-1"].rows} == {"quality", "camera"}
    shares = [row for factor in found.summary.factors for row in factor.discarded[1:]]
    assert sum("left out" in row[1].text for row in tables["factors-1"].rows) == len(shares) > 3
    assert "discarded-1" in found.figures()
    html = render_page(found, "")
    assert 'id="table-factors-1"' in html
    assert 'id="figure-discarded-1"' in html


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,camera\na,b\n", r"line 2: names no photo; give a column photo, or left and right"),
        ("photo,left,camera\na,b,c\n", r"line 2: names no photo"),
        ("photo,camera\n,door\n", r"line 2: names no photo"),
        ("photo\nPerson_00/Person_00_0001.png\n", r"no factors; add a column"),
        (
            "photo,camera\na/1.jpg,x\n",
            r"no pair has a value of camera.*a/1\.jpg.*such as Person_",
        ),
        ("photo,age\n" + "".join(f"a/{n}.jpg,{n}\n" for n in range(9)), r"no pair has .* age"),
        ("photo,camera\na/1.jpg,x\na/1.jpg,y\n", r"line 3: camera is 'y' here and 'x' above"),
        (
            "photo,age\n" + "".join(f"a/{n}.jpg,{n}\n" for n in range(30)) + "a/x.jpg,old\n",
            r"age has 31 different values, such as 'old'; give numbers, or at most 20",
        ),
    ],
)
def test_bad_files_of_factors_are_one_clear_line(world, text, message):
    with pytest.raises(BadData, match=message):
        measured(world, text)
