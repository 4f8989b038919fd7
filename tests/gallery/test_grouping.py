"""Groups of a heap's faces: which cut is chosen, what stays, what is told."""

from dataclasses import replace

import numpy as np
import pytest
from tiny.heaps import CUTS, grouping_errors, heap_of

from facepairs.errors import NotEnough
from facepairs.gallery.grouping import Earlier, SimilarPeople, certainties, group_faces

ERRORS = grouping_errors()


def key(heap, face):
    return heap.faces[face].photo, heap.faces[face].box


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
    share = dict(zip(CUTS, (3e-9, 1e-4, 1e-3, 1e-2), strict=True))[cut]
    assert expected.cut == cut
    assert expected.joined_pairs == 450
    assert expected.wrong_pairs == pytest.approx(4950 * share)
    assert expected.precision == pytest.approx(1 - 4950 * share / 450)
    assert expected.precision_interval[0] <= expected.precision <= expected.precision_interval[1]


def test_more_strangers_need_a_stricter_cut():
    people = [0, 0, *range(1, 60)]
    few = group_faces(heap_of(people[:10]), ERRORS, 0.9).expected
    many = group_faces(heap_of(people), ERRORS, 0.9).expected
    assert many.cut < few.cut


def test_what_the_measured_pairs_do_not_support_is_refused():
    with pytest.raises(NotEnough):
        group_faces(heap_of([0, 0, *range(1, 90)]), grouping_errors(pairs=1_000))


def test_earlier_people_stay_and_new_photos_join_them():
    heap = heap_of([0, 0, 1, 1, 0, 2, 2])
    earlier = Earlier({key(heap, 0): "Ann", key(heap, 1): "Bob", key(heap, 2): "Cy"})
    groups = group_faces(heap, ERRORS, earlier=earlier)
    assert groups.person[:4] == ("Ann", "Bob", "Cy", "Cy")
    assert groups.person[4] in ("Ann", "Bob")
    assert groups.person[5] == groups.person[6] == "person_0001"


def test_people_who_get_one_name_become_one():
    heap = heap_of([0, 0, 1, 1, 2, 2])
    groups = group_faces(heap, ERRORS)
    first, second, third = groups.people
    similar = (SimilarPeople(first, second, 0.2), SimilarPeople(second, third, 0.3))
    groups = replace(groups, similar=similar, refused=(frozenset({first}),) * 6)
    named = groups.renamed({first: "Ann", second: "Ann"})
    assert {name: len(faces) for name, faces in named.people.items()} == {"Ann": 4, third: 2}
    assert [(pair.one, pair.other) for pair in named.similar] == [("Ann", third)]
    assert named.refused[0] == {"Ann"}
    assert named.certainty == pytest.approx(certainties(heap.embeddings, named.person))


def test_a_face_never_joins_somebody_it_does_not_show():
    heap = heap_of([0, 0, 0])
    earlier = Earlier(
        {key(heap, 0): "Ann", key(heap, 1): "Ann"}, {key(heap, 2): frozenset({"Ann"})}
    )
    assert group_faces(heap, ERRORS, earlier=earlier).person == ("Ann", "Ann", "")


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


def test_similar_people_are_pairs_that_a_larger_cut_would_join():
    near = heap_of([0, 0, 0, 0, 1, 1], noise=0.1)
    rows = near.embeddings.copy()
    rows[2:4] += 0.6 * rows[5]  # two of them are a little like somebody else
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    groups = group_faces(replace(near, embeddings=rows), grouping_errors((0.0, 0.01, 0.1, 1.0)))
    (pair,) = groups.similar
    assert {pair.one, pair.other} == {groups.person[0], groups.person[2]}
    assert groups.expected.cut < pair.height <= CUTS[-1]


def test_the_silhouette_is_scikit_learns():
    from sklearn.metrics import silhouette_samples

    heap = heap_of([0, 0, 1, 1, 1, 2, 2, 3], noise=0.7)
    person = ("a", "a", "b", "b", "b", "c", "c", "d")
    wanted = silhouette_samples(heap.embeddings, person, metric="cosine")
    assert certainties(heap.embeddings, person) == pytest.approx(wanted, abs=1e-5)


def test_one_person_alone_has_certainties():
    assert (certainties(heap_of([0, 0, 0]).embeddings, ("a", "a", "a")) > 0.9).all()


def test_a_gallery_names_the_people_it_knows(tmp_path):
    from PIL import Image
    from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle

    from facepairs import Gallery, Verifier
    from facepairs.gallery.group import name_people

    verifier = Verifier.load(tiny_bundle(tmp_path / "bundle", **AMONG_LOOKALIKES).folder)
    for number in range(2):
        Image.effect_noise((32, 32), 90).convert("RGB").save(tmp_path / f"{number}.png")
    with Gallery(tmp_path / "known", verifier, write=True) as gallery:
        assert name_people(group_faces(heap_of([0, 0]), ERRORS), gallery).people.keys() == {
            "person_0001"
        }
        gallery.add("Ann", [tmp_path / "0.png"], any_quality=True)
        rows = np.repeat(verifier.embed([tmp_path / "0.png", tmp_path / "1.png"]), 2, axis=0)
        heap = replace(heap_of([0, 0, 1, 1]), embeddings=rows)
        earlier = Earlier({key(heap, face): name for face, name in enumerate("aabb")})
        heap_groups = group_faces(heap, ERRORS, 0.5, earlier)
        named = name_people(heap_groups, gallery)
        assert named.person[:2] == ("Ann", "Ann")
        assert set(named.person[2:]) <= {"Ann", "b"}
        refused = replace(heap_groups, refused=(frozenset({"Ann"}),) * 4)
        assert name_people(refused, gallery).people.keys() == {"a", "b"}
        gallery.remove("Ann")
        gallery.add("../x", [tmp_path / "0.png"], any_quality=True)
        unnamed = name_people(heap_groups, gallery)
    assert unnamed.people.keys() == {"a", "b"}
