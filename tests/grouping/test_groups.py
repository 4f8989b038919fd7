"""Groups of a collection's faces: which cut is chosen, what stays, what is told."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from tiny.heaps import CUTS, grouping_errors, heap_of

from facepairs.errors import NotEnough
from facepairs.grouping import groups as groups_module
from facepairs.grouping import linkage
from facepairs.grouping.expected import ExpectedErrors, expect_errors
from facepairs.grouping.groups import KnownFaces, certainties, group_faces

ERRORS = grouping_errors()


def test_people_are_groups_the_largest_first_and_a_face_alone_has_no_name():
    groups = group_faces(heap_of([0, 1, 1, 1, 2, 0]), ERRORS)
    assert groups.person == ("person_0002", *["person_0001"] * 3, "", "person_0002")
    assert groups.single == [4]
    assert np.isnan(groups.certainty[4])
    assert (groups.certainty[[0, 1, 2, 3, 5]] > 0.8).all()


def test_no_faces_at_all_are_no_groups():
    groups = group_faces(heap_of([]), ERRORS)
    assert groups.people == {}
    assert groups.expected.joined_pairs == 0


@pytest.mark.parametrize(
    ("precision", "cut"), [(0.999999, CUTS[0]), (0.99, CUTS[1]), (0.98, CUTS[2]), (0.5, CUTS[3])]
)
def test_the_cut_follows_from_the_pairs_that_it_would_join(precision, cut):
    heap = heap_of([number // 10 for number in range(100)], noise=0.001)  # 450 of 4,950 pairs
    expected = group_faces(heap, ERRORS, precision).expected
    # Nothing was seen at the first cut, so its rate is what the pairs support.
    share = dict(zip(CUTS, (3e-9, 1e-4, 1e-3, 1e-2), strict=True))[cut]
    assert expected.cut == cut
    assert expected.joined_pairs == 450
    assert expected.wrong_pairs == pytest.approx(4950 * share)
    assert expected.precision == pytest.approx(1 - 4950 * share / 450)


def test_two_faces_of_one_person_are_one_pair():
    heap = heap_of([0, 0], noise=0.001)
    expected = group_faces(heap, ERRORS, 0.5).expected
    assert (expected.joined_pairs, expected.cut) == (1, CUTS[3])
    assert group_faces(heap, ERRORS, 0.992).expected.cut == CUTS[2]
    assert group_faces(heap, grouping_errors((0.0, 0.0, 0.0, 0.5)), 0.5).expected.cut == CUTS[3]
    assert expected.wrong_pairs == pytest.approx(1e-2)
    assert expected.precision == pytest.approx(1 - 1e-2)


@pytest.mark.parametrize(
    ("wrong", "mixed", "told"),
    [
        (0.99, 0.5, "fewer than 1 of 1,450 pairs, in fewer than 1 group of more than one person"),
        (1.0, 1.49, "about 1 of 1,450 pairs, in about 1 group of more than one person"),
        (5.6, 1.5, "about 6 of 1,450 pairs, in about 2 groups of more than one person"),
    ],
)
def test_what_is_expected_is_told_in_words(wrong, mixed, told):
    expected = ExpectedErrors(
        precision=0.98765, joined_pairs=1450, wrong_pairs=wrong, mixed_people=mixed, cut=0.1,
        rate=0.001, measured_on="forty people",
    )  # fmt: skip
    assert expected.describe() == f"{told}; precision 0.9877 (forty people)"
    assert msgspec.structs.replace(expected, is_valid=False).describe().startswith("not known; ")


@pytest.mark.parametrize("rows", [1024, 3])
def test_groups_are_golden_and_do_not_depend_on_the_blocks_that_are_compared(rows, monkeypatch):
    """Of faces in twos on a photo, unclear, settled, in a gallery, and near to a cohort."""
    monkeypatch.setattr(linkage, "ROWS", rows)
    monkeypatch.setattr(groups_module, "ROWS", rows)
    random = np.random.default_rng(3)
    photos = [f"{number // 2 if number < 20 else number}.jpg" for number in range(48)]
    heap = heap_of(random.integers(0, 9, 48).tolist(), photos, noise=0.6)
    doubts = (one._replace(doubt="" if k % 7 else "small") for k, one in enumerate(heap.faces))
    heap = replace(heap, faces=tuple(doubts))
    cohort = linkage.unit_rows(random.normal(size=(12, 64)).astype(np.float32)) * np.float32(4)
    known = KnownFaces(heap.embeddings[[1, 5, 30]], ("Ann", "Bo", "Bo"))
    settled = {2: "person_0003", 3: "Cy", 40: "", 9: "person_0003"}
    taken = frozenset({"person_0007"})
    groups = group_faces(heap, ERRORS, 0.9, settled, taken, cohort, known, earlier_rate=2e-4)
    assert groups.people == {
        "Ann": [1, 42, 41, 18],
        "Cy": [39, 33, 34, 47, 45, 3],
        "person_0003": [2, 9],
        "person_0008": [7, 27, 36, 12, 35, 26],
        "person_0009": [23, 20, 13],
        "person_0010": [30, 17, 29],
        "person_0011": [43, 31, 44],
        "person_0012": [37, 16],
    }
    assert groups.certainty[[1, 2, 3, 7]] == pytest.approx([0.616, -0.26, 0.586, 0.695], abs=6e-4)
    assert (groups.uncertain, len(groups.single), groups.nobody) == ([0, 14, 21, 28], 14, {40})
    expected = msgspec.structs.astuple(groups.expected)
    assert expected == (pytest.approx(1 - 1.18 / 49), 49, *[pytest.approx(1.18)] * 2,
                        0.2, 1e-3, "drawn pairs", True)  # fmt: skip


def test_more_strangers_need_a_stricter_cut():
    people = [0, 0, *range(1, 60)]
    few = group_faces(heap_of(people[:10]), ERRORS, 0.9).expected
    many = group_faces(heap_of(people), ERRORS, 0.9).expected
    assert many.cut < few.cut


def test_what_the_measured_pairs_do_not_support_is_refused():
    with pytest.raises(NotEnough, match=r"give precision 0\.01 or less"):
        group_faces(heap_of([0, 0, *range(1, 90)]), grouping_errors(pairs=1_000))


def test_the_precision_that_a_refusal_names_is_the_best_that_can_be_promised():
    heap = heap_of([0, 0, *range(1, 90)])  # 4,095 pairs; of which 3 in 100,000 may be joined
    errors = grouping_errors(pairs=100_000)
    with pytest.raises(NotEnough, match=r"give precision 0\.87 or less"):
        group_faces(heap, errors, 0.88)
    expected = group_faces(heap, errors, 0.87).expected
    assert expected.precision == pytest.approx(1 - 3e-5 * 4095)


@pytest.mark.parametrize(
    ("faces", "joined", "valid"), [(19, 171, True), (20, 95, True), (20, 96, False)]
)
def test_figures_mean_nothing_where_most_pairs_look_alike(faces, joined, valid):
    pairs = faces * (faces - 1) / 2
    expected = expect_errors(ERRORS, 1, faces, pairs, joined, groups=5)
    assert (expected.is_valid, expected.rate) == (valid, 1e-4)


@pytest.mark.parametrize(
    ("earlier", "rate", "mixed"), [(0, 1e-4, 1e-4), (5e-4, 5e-4, 1e-3), (0.5, 0.5, 1e-2)]
)
def test_errors_are_at_least_those_of_the_run_that_made_the_groups(earlier, rate, mixed):
    expected = expect_errors(ERRORS, 1, 100, 4950, 4000, groups=2, earlier_rate=earlier)
    assert expected.rate == rate
    assert expected.wrong_pairs == pytest.approx(4950 * rate)
    assert expected.mixed_people == pytest.approx(mixed * (2e9**0.5 / 2) ** 0.3)
    assert expected.cut == CUTS[1]


def test_settled_people_stay_and_new_faces_join_them():
    heap = heap_of([0, 0, 1, 1, 0, 2, 2])
    settled = {0: "Ann", 1: "Bob", 2: "person_0007"}
    groups = group_faces(heap, ERRORS, settled=settled, taken=frozenset({"person_0009"}))
    assert groups.person[:4] == ("Ann", "Bob", "person_0007", "person_0007")
    assert groups.person[4] in ("Ann", "Bob")
    assert groups.person[5] == groups.person[6] == "person_0010"


def test_unclear_faces_found_no_group_but_join_one():
    photos = ["a", "b", "c", "d", "e", "a", "f", "g"]
    heap = heap_of([0, 0, 0, 1, 1, 0, 2, 3], photos)
    unclear = {2, 3, 4, 5}
    faces = [
        face._replace(doubt="small" if k in unclear else "") for k, face in enumerate(heap.faces)
    ]
    heap = replace(heap, faces=tuple(faces))
    groups = group_faces(heap, ERRORS, settled={6: ""})
    assert groups.person == (*["person_0001"] * 3, "", "", "", "", "")  # one face of photo a
    assert (groups.uncertain, groups.single) == ([3, 4, 5], [7])
    assert groups.of_photo == dict.fromkeys("abc", "person_0001") | {x: f"/{x}" for x in "defg"}
    assert (groups.to_json()["uncertain_faces"], groups.to_json()["put_apart_by_hand"]) == (3, 1)
    clear = group_faces(heap_of([0, 0, 3], ["a", "b", "g"]), ERRORS).expected
    pairs = clear.joined_pairs + 2
    assert groups.expected.joined_pairs == pairs
    wrong = (3 + 3 * 4) * 1e-4  # three clear faces, and four unclear ones near to them
    assert groups.expected.wrong_pairs == pytest.approx(wrong)
    assert groups.expected.precision == pytest.approx(1 - wrong / pairs)


def test_faces_of_one_photo_are_two_people_unless_it_is_a_collage():
    photos = ["a.jpg", "a.jpg", "b.jpg"]
    alike = heap_of([0, 0, 1], photos, noise=0.5)
    one, other = alike.embeddings[:2]
    assert 1 - one @ other < CUTS[3]
    free = group_faces(heap_of([0, 0, 1], ["a.jpg", "c.jpg", "b.jpg"], noise=0.5), ERRORS, 0.5)
    assert free.person[0] == free.person[1] != ""
    assert group_faces(alike, ERRORS, 0.5).person[:2] == ("", "")
    collage = heap_of([0, 0, 1], photos, noise=0)
    assert group_faces(collage, ERRORS, 0.5).person[:2] == ("person_0001", "person_0001")


def test_similar_people_are_the_pairs_nearest_to_each_other():
    near = heap_of([0, 0, 1, 1, 2, 2, 3, 3], [*"abcdaefg"], noise=0)
    rows = near.embeddings.copy()
    rows[2:] += 1.2 * rows[0]  # the others are a little like the first one
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    person = dict(zip("abcd", ("person_0001", "Bob", "Cy", "Dan"), strict=True))
    settled = {face: person[letter] for face, letter in enumerate("aabbccdd")}
    groups = group_faces(
        replace(near, embeddings=rows), grouping_errors((0.0, 0.0, 0.0, 0.0)), settled=settled
    )
    found = {(pair.one, pair.other): pair.height for pair in groups.similar}
    # Cy is on a photo of the first one, and that those with names are two is known.
    assert found.keys() == {("Bob", "person_0001"), ("Dan", "person_0001")}
    height = (1 - rows[0] @ rows[2]) * (1 + 0.3 / 2)  # four pairs of faces
    assert found["Bob", "person_0001"] == pytest.approx(height, abs=1e-6)
    assert [pair.height for pair in groups.similar] == sorted(found.values())


def test_the_silhouette_is_scikit_learns():
    from sklearn.metrics import silhouette_samples

    heap = heap_of([0, 0, 1, 1, 1, 2, 2, 3], noise=0.7)
    person = ("a", "a", "b", "b", "b", "c", "c", "d")
    wanted = silhouette_samples(heap.embeddings, person, metric="cosine")
    assert certainties(heap.embeddings, person) == pytest.approx(wanted, abs=1e-5)


def test_one_person_alone_has_certainties():
    rows = heap_of([0, 0, 0]).embeddings
    inside = (1 - rows @ rows.T).sum(axis=1) / 2  # in the mean; others are as far as can be, at 2
    assert certainties(rows, ("a", "a", "a")) == pytest.approx(1 - inside / 2, abs=1e-6)


def known_of(heap, **faces):
    rows = [heap.embeddings[face] for face in faces.values()]
    return KnownFaces(np.array(rows), tuple(faces))


def test_known_people_name_groups_and_faces_alone_but_no_two_folders():
    heap = heap_of([0, 0, 1, 1, 2, 3, 3, 4, 4], noise=0.01)
    settled = {0: "person_0001", 2: "Bea", 5: "person_0002", 6: "person_0003"}
    known = known_of(heap, Ann=0, Bo=2, Cy=4, Di=5, Ed=7)
    person = group_faces(heap, ERRORS, settled=settled, known=known).person
    assert person[:5] == ("Ann", "Ann", "Bea", "Bea", "Cy")  # who has a name, keeps it
    assert sorted(person[5:7]) in (["Di", "person_0002"], ["Di", "person_0003"])
    assert person[7:] == ("Ed", "Ed")


def test_pairs_with_known_faces_are_part_of_the_expected_errors():
    heap = heap_of([number // 10 for number in range(100)], noise=0.001)
    alone = group_faces(heap, ERRORS).expected
    named = group_faces(heap, ERRORS, known=known_of(heap, Ann=0, Bo=10)).expected
    assert (alone.joined_pairs, named.joined_pairs) == (450, 470)
    assert alone.wrong_pairs == pytest.approx(4950 * 1e-4)
    assert named.wrong_pairs == pytest.approx((4950 + 200) * 1e-4)
    assert named.precision == pytest.approx(1 - named.wrong_pairs / 470)


def test_pairs_of_known_faces_do_not_count_as_joined():
    heap = heap_of([0, 0, *range(1, 60)])
    known = KnownFaces(heap_of([80] * 30).embeddings, ("Ann",) * 30)
    assert group_faces(heap, ERRORS, 0.9, known=known).expected.cut == CUTS[0]


@pytest.mark.parametrize(("measured", "factor"), [(5_000, 1), (20_000, 2**0.3)])
def test_mixed_groups_are_expected_by_pairs_of_groups_and_fall_with_their_number(measured, factor):
    people = [number // 2 for number in range(200)]  # 100 groups
    errors = grouping_errors(pairs=measured)
    expected = group_faces(heap_of(people, noise=0.001), errors, 0.5).expected
    assert expected.cut == CUTS[2]
    assert expected.wrong_pairs == pytest.approx(200 * 199 / 2 * 1e-3)
    assert expected.mixed_people == pytest.approx(100 * 99 / 2 * 1e-3 * factor)


def test_no_more_pairs_are_wrong_than_are_joined():
    errors = grouping_errors((0.3, 0.3, 0.3, 0.3))
    expected = group_faces(heap_of([0, 0, 1, 1], noise=0.001), errors, 0.05).expected
    assert expected.joined_pairs == 2
    assert expected.wrong_pairs == expected.mixed_people == pytest.approx(1.8)
    assert expected.precision == pytest.approx(0.1)
