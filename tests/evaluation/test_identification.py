"""Open-set identification: who is known, figures by hand, and the command on drawn people."""

import json
from pathlib import Path

import numpy as np
import pytest
from processes.command_line import in_process
from tiny.bundles import AMONG_LOOKALIKES, error_table, tiny_bundle

from facepairs.bundles.error_profile import ErrorProfile
from facepairs.bundles.scorer import ScoreArray
from facepairs.errors import NotEnough
from facepairs.evaluation.identification import (
    GALLERY,
    OWN,
    identification_figures,
    split_people,
)
from facepairs.evaluation.metrics.arrays import Ints

PROFILE = ErrorProfile(errors=error_table())  # FMR .4 at 0, .01 at .5, 0 at 1


def people(counts: list[int]) -> Ints:
    return np.repeat(np.arange(len(counts)), counts)


def embed(person: Ints, noise: float, width: int = 32) -> ScoreArray:
    """Return embeddings of length 1: those of one person lie close together."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(person.max() + 1, width))[person]
    rows += noise * rng.normal(size=rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def dot(left: ScoreArray, right: ScoreArray) -> ScoreArray:
    return np.einsum("nd,nd->n", left, right)


def test_half_of_the_people_with_several_photos_are_known() -> None:
    person = people([1, 2, 5, 1, 3, 9, 2])
    enrolled, known, strangers = split = split_people(person)
    together = np.concatenate(split)
    assert sorted(together.tolist()) == list(range(len(person)))
    assert set(person[enrolled]) == set(person[known])
    assert not set(person[enrolled]) & set(person[strangers])
    assert {0, 3} <= set(person[strangers].tolist())
    counts = np.bincount(person)
    for one in set(person[enrolled].tolist()):
        assert (person[enrolled] == one).sum() == min(3, counts[one] - 1)
    assert [part.tolist() for part in split_people(person)] == [part.tolist() for part in split]
    with pytest.raises(NotEnough):
        split_people(people([1, 4, 1]))


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.0])
def test_figures_agree_with_a_slower_way(noise: float) -> None:
    person = people([1] * 20 + [2, 3, 5, 8] * 12)
    rows, split = embed(person, noise), split_people(person)
    figures = identification_figures(PROFILE, rows, person, split, dot)
    enrolled: dict[int, list[int]] = {}
    for place in split.enrolled.tolist():
        enrolled.setdefault(int(person[place]), []).append(place)
    ranks: dict[int, list[int]] = {}
    found: dict[int, list[float]] = {}
    taken: dict[int, list[float]] = {}
    for place in [*split.known, *split.strangers]:
        scores = {
            one: max(float(dot(rows[[k]], rows[[place]])[0]) for k in own_photos)
            for one, own_photos in enrolled.items()
        }
        own, best = int(person[place]), max(scores.values())
        if own in scores:
            rank = sum(score >= scores[own] for score in scores.values())
            ranks.setdefault(own, []).append(rank)
            found.setdefault(own, []).append(best if rank == 1 else -np.inf)
        else:
            taken.setdefault(own, []).append(best)

    def share(lists: dict[int, list[float]], threshold: float) -> float:
        return float(np.mean([np.mean(np.array(x) >= threshold) for x in lists.values()]))

    assert (figures.known, figures.strangers) == (len(ranks), len(taken)) == (24, 44)
    assert figures.enrolled + figures.known_probes + figures.stranger_probes == len(person)
    for rank, one in figures.cmc.items():
        assert one.value == pytest.approx(
            np.mean([np.mean(np.array(x) <= rank) for x in ranks.values()])
        )
        assert one.interval[0] <= one.value <= one.interval[1]
    supported = [point for point in figures.points if point.threshold is not None]
    assert [(point.set_by, point.max_fpir) for point in supported] == [(OWN, 0.1), (GALLERY, 0.1)]
    for point in supported:
        assert point.fpir.value == pytest.approx(share(taken, point.threshold))
        assert point.dir.value == pytest.approx(share(found, point.threshold))
        assert point.dir.interval[0] <= point.dir.value <= point.dir.interval[1]
    reason = f"too few pairs behind the model's errors for {figures.enrolled} photos"
    assert (figures.points[2].threshold, figures.points[2].reason) == (None, reason)
    own, promised = supported
    assert own.fpir.value <= 0.1
    assert share(taken, own.threshold - 1e-6) > 0.1  # no lower threshold keeps to it
    assert promised.threshold == 0.75  # FMR .001: .1 among the enrolled photos


def test_what_the_data_do_not_support_has_a_reason() -> None:
    person = people([2] * 20)
    split = split_people(person)
    figures = identification_figures(PROFILE, embed(person, 0.1), person, split, dot)
    reasons = [point.reason for point in figures.points]
    assert reasons[0] == "needs 300 strangers, there are 10"
    assert reasons[1] == "needs 30 strangers, there are 10"
    assert reasons[3] == ""
    assert figures.cmc[1].value == 1
    assert figures.cmc[1].interval == pytest.approx((0.692, 1), abs=1e-3)  # of ten people
    figures = identification_figures(ErrorProfile(), embed(person, 0.1), person, split, dot)
    for point in figures.points[2:]:
        assert (point.threshold, point.fpir, point.dir) == (None, None, None)
        assert point.reason == "the model brings no measured errors"


def test_the_command_measures_drawn_people(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tiny_bundle(tmp_path / "a", **AMONG_LOOKALIKES).folder
    words = ("evaluate", bundle, faces, "--identification")
    page = tmp_path / "report.html"
    done = in_process(*words, "--report", page, check=0)
    assert "Identification of 12 known people with 36 enrolled photos, asked" in done.stdout
    assert "these strangers, FPIR 10 %" in done.stdout
    assert "needs 30 strangers, there are 12" in done.stdout
    assert "Identification: known people among strangers" in page.read_text()
    (figures,) = json.loads(in_process(*words, "--json", check=0).stdout)["models"]
    values = figures["identification"]
    assert (values["known"], values["enrolled"], values["stranger_probes"]) == (12, 36, 48)
    assert values["cmc"]["1"]["value"] <= values["cmc"]["10"]["value"]
    assert [point["max_fpir"] for point in values["points"]] == [0.01, 0.1] * 2
    in_process("evaluate", bundle, "default", *words[2:], check=2)


def test_options_that_do_not_fit_are_refused(faces: Path, tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "pair", "pair").folder
    done = in_process("evaluate", bundle, faces, "--identification", check=2)
    assert "has no embeddings" in done.stderr
    done = in_process("evaluate", tmp_path / "s.csv", "--identification", check=2)
    assert "(--identification)" in done.stderr
