"""The page of people: the least certain first, and pictures that are not made twice."""

import base64
import io
import re
import shutil
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from PIL import Image
from tiny.people_folders import ERRORS, PHOTOS, collection_of

from facepairs.grouping import page
from facepairs.grouping.groups import group_faces
from facepairs.grouping.page import pictures_of, render_page


@pytest.fixture
def groups(tmp_path):
    """Four people, one of whom is there once; one face is hardly nearer to its own group."""
    found = group_faces(collection_of(tmp_path / "photos", PHOTOS), ERRORS, 0.9)
    certainty = found.certainty.copy()
    for place, face in enumerate(chain(*found.people.values())):
        certainty[face] = 0.25 + 0.01 * place
    certainty[found.people["person_0002"][0]] = 0.24
    return replace(found, certainty=certainty)


def shown(groups, text):
    """The faces on a part of a page, by number, in order."""
    numbers = {page._key(groups, number): number for number in range(len(groups.faces))}
    return [numbers[key] for key in re.findall('data-face="([^"]+)"', text)]


def render(groups, tmp_path, pictures=None):
    files = [f"{name}/{k}.png" if name else "" for k, name in enumerate(groups.person)]
    return render_page(groups, tmp_path / "people", files, pictures or {})


def test_who_is_least_certain_comes_first(groups, tmp_path):
    text = render(groups, tmp_path)
    people = groups.people
    sections = re.findall(r'<section data-person="([^"]+)">(.*?)</section>', text, re.DOTALL)
    assert [name for name, _ in sections] == ["person_0002", "person_0001", "person_0003"]
    for name, part in sections:
        assert shown(groups, part) == people[name][::-1]
    before, *_, after = re.split("</?section[^>]*>", text)
    doubted = people["person_0002"][-1]  # below .25
    assert shown(groups, before)[0] == doubted
    assert before.count('class="pair"') == 1
    assert shown(groups, after) == groups.single
    assert f'data-path="{tmp_path}/people/person_0002/{doubted}.png"' in before
    photo = groups.faces[doubted].photo
    assert f'<a href="../photos/{photo}" title="{photo}">' in before
    assert len(set(shown(groups, text))) == sum(map(len, people.values())) + len(groups.single)
    url = next(iter(re.findall('src="data:image/jpeg;base64,([^"]+)"', before)))
    with Image.open(io.BytesIO(base64.b64decode(url))) as picture:
        assert picture.size == (96, 96)


def test_pictures_of_an_earlier_page_are_used_again(groups, tmp_path):
    assert pictures_of(tmp_path / "people.html") == {}
    text = render(groups, tmp_path)
    (tmp_path / "people.html").write_text(text, encoding="utf-8")
    shutil.rmtree(tmp_path / "photos")
    assert render(groups, tmp_path, pictures_of(tmp_path / "people.html")) == text


@pytest.mark.parametrize(("room", "single"), [(-1, 0), (0, 0), (1, 1)])
def test_a_page_has_room_for_so_many_pictures(groups, tmp_path, monkeypatch, room, single):
    faces = sum(map(len, groups.people.values()))
    monkeypatch.setattr(page, "PICTURES", faces + room)
    monkeypatch.setattr(page, "COMPARED", 2)
    text = render(groups, tmp_path)
    sections = re.findall("<section.*?</section>", text, re.DOTALL)
    most = 3 if room < 0 else np.inf  # of the person with four faces
    assert sorted(len(shown(groups, part)) for part in sections) == sorted(
        min(most, len(numbers)) for numbers in groups.people.values()
    )
    left = faces + room - sum(len(shown(groups, part)) for part in sections)
    assert len(shown(groups, text.rpartition("</section>")[2])) == min(left, len(groups.single))
    assert room < 0 or min(left, len(groups.single)) == single


def test_a_tenth_of_a_full_page_is_for_faces_that_are_there_once(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PICTURES", 12)
    photos = {f"a{number}": [0] for number in range(12)} | {"b1": [1]}
    many = group_faces(collection_of(tmp_path / "photos", photos), ERRORS, 0.9)
    text = render(many, tmp_path)
    (part,) = re.findall("<section.*?</section>", text, re.DOTALL)
    assert len(set(shown(many, part))) == 11
    assert shown(many, text.rpartition("</section>")[2]) == many.single
