"""Images by number, as in a list and a dictionary, and rows of floats, both on disk."""

import sqlite3
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.errors import BadRun
from facepairs.faces.align import FaceCells
from facepairs.verification.pairs.partial_results import PartialResults

NAMES = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["\udcff", "a\udc80b"])


@pytest.fixture
def results(tmp_path):
    with PartialResults(tmp_path / "out.csv", "fingerprint", resume=False) as results:
        yield results


def test_images_are_numbered_in_the_order_of_adding(results):
    expected = {}

    @settings(max_examples=40)
    @given(st.lists(st.lists(NAMES)))
    def check(parts):
        for names in parts:
            results.add_images(dict.fromkeys(names, ""), True)
            for name in names:
                expected.setdefault(name, len(expected))
        assert results.image_count == len(expected)
        assert [results.image_name(number) for number in range(len(expected))] == list(expected)
        assert [results.image_number(name) for name in expected] == list(expected.values())

    check()
    with pytest.raises(KeyError):
        results.image_number("never added: \n")


def test_errors_are_stored_by_number(results):
    results.add_images({"a": "", "b": "", "c": ""}, True)
    results.add_errors({1: "b: no face", 2: "c: \udcff"})
    results.add_errors({})
    results.add_errors({1: "b: gone"})
    errors = [results.image_error(number) for number in (-1, 0, 1, 2)]
    assert errors == ["", "", "b: gone", "c: \udcff"]
    assert results.failed_images == 2


def test_rows_are_read_in_any_order_and_number(results):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    results.set_row_count(6)
    results.put([5, 0, 2], values[:3])
    results.put([], np.zeros((0, 0), np.float32))
    results.put([1], values[3:])
    assert results.done.tolist() == [True, True, True, False, False, True]
    got = results.get(np.array([2, 5, 5, 1]))
    assert np.array_equal(got, values[[2, 0, 0, 3]])


def test_saved_rows_survive_and_failed_images_are_tried_again(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        PartialResults(tmp_path / "out.csv", "same", resume=False) as results,
    ):
        results.set_row_count(3)
        results.put([1], np.full((1, 2), 0.5, np.float32))
        results.add_errors({0: "broken"})
        raise ZeroDivisionError
    with PartialResults(tmp_path / "out.csv", "same", resume=True) as results:
        results.set_row_count(3)
        assert results.done.tolist() == [False, True, False]
        assert results.get(np.array([1])).tolist() == [[0.5, 0.5]]
        assert results.image_error(0) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("embeds", [True, False])
def test_what_is_known_of_a_changed_photo_is_forgotten(tmp_path, embeds):
    with (
        pytest.raises(ZeroDivisionError),
        PartialResults(tmp_path / "out.csv", "same", resume=False) as results,
    ):
        results.add_images({"a": "1", "b": "1", "c": "1"}, embeds)
        results.set_row_count(3)
        results.put([0, 1, 2], np.ones((3, 2), np.float32))
        results.add_faces({number: FaceCells("1 2 30", "3", "dark") for number in range(3)})
        raise ZeroDivisionError
    with PartialResults(tmp_path / "out.csv", "same", resume=True) as results:
        results.add_images({"a": "1", "b": "2", "c": "1"}, embeds)
        results.set_row_count(3)
        assert results.done.tolist() == ([True, False, True] if embeds else 3 * [False])
        assert results.image_face(1) == ("", "", "")
        assert results.several_faces == 2


def test_a_folder_of_somebody_else_stays(tmp_path):
    folder = tmp_path / "out.csv.partial"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(BadRun), PartialResults(tmp_path / "out.csv", "same", resume=False):
        pass
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_an_interrupted_resume_keeps_saved_rows(tmp_path):
    out = tmp_path / "out.csv"
    with pytest.raises(ZeroDivisionError), PartialResults(out, "same", resume=False) as results:
        results.set_row_count(3)
        results.put([1], np.full((1, 2), 0.5, np.float32))
        raise ZeroDivisionError

    class Interrupted(dict):
        def items(self):
            yield "a", ""
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), PartialResults(out, "same", resume=True) as results:
        results.add_images(Interrupted(), True)
    with PartialResults(out, "same", resume=True) as results:
        results.set_row_count(3)
        assert results.done.tolist() == [False, True, False]


def test_an_interrupt_between_two_transactions_loses_nothing(tmp_path, monkeypatch):
    class Interrupted(sqlite3.Connection):
        begins = 0

        def execute(self, statement, *values):
            if statement == "BEGIN":
                Interrupted.begins += 1
                if Interrupted.begins == 1:
                    raise KeyboardInterrupt
            return super().execute(statement, *values)

    out, connect = tmp_path / "out.csv", sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", partial(connect, factory=Interrupted))
        with (
            pytest.raises(KeyboardInterrupt),
            PartialResults(out, "same", resume=False) as results,
        ):
            results.set_row_count(2)
            results.put([1], np.zeros((1, 2), np.float32))
            results.save()
    with PartialResults(out, "same", resume=True) as results:
        results.set_row_count(2)
        assert results.done.tolist() == [False, True]


def test_a_damaged_page_is_reported_wherever_it_is_read(tmp_path):
    out, rows = tmp_path / "out.csv", 300
    with pytest.raises(ZeroDivisionError), PartialResults(out, "same", resume=False) as results:
        results.add_images({f"person/{row:0100}.jpg": "" for row in range(rows)}, True)
        results.set_row_count(rows)
        results.put(list(range(rows)), np.ones((rows, 100), np.float32))
        results.add_faces({row: FaceCells("1 2 30", "1", "small") for row in range(rows)})
        raise ZeroDivisionError
    file = tmp_path / "out.csv.partial" / "work.sqlite"
    saved = file.read_bytes()
    page = int.from_bytes(saved[16:18], "big")  # the page size in SQLite's header
    reached = set()
    for start in range(page, len(saved), page):
        file.write_bytes(saved[:start] + b"\xff" * page + saved[start + page :])
        step = "open"
        with (
            pytest.raises(BadRun, match=r"is damaged .*remove it"),
            PartialResults(out, "same", resume=True) as results,
        ):
            step = "names"
            for number in range(results.image_count):
                results.image_number(results.image_name(number))
            step = "rows"
            results.set_row_count(rows)
            step = "values"
            results.get(np.arange(rows))
            step = "faces"
            results.hint_counts()
            raise ZeroDivisionError  # keep the folder
        reached.add(step)
    assert reached >= {"names", "rows"}


def test_faces_are_stored_by_number_and_counted(tmp_path):
    with PartialResults(tmp_path / "out.csv", "same", resume=False) as results:
        results.add_faces({0: FaceCells("1 2 30", "1", "small dark"), 2: FaceCells("", "", "dark")})
        results.add_faces({3: FaceCells("4 5 60", "12", "")})
        assert results.image_face(0) == ("1 2 30", "1", "small dark")
        assert results.image_face(1) == ("", "", "")
        assert results.hint_counts() == {"dark": 2, "small": 1}
        assert results.several_faces == 1


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    connect = sqlite3.connect

    def connect_to_small_disk(*args, **options):
        database = connect(*args, **options)
        database.execute("PRAGMA max_page_count = 20")
        return database

    monkeypatch.setattr(sqlite3, "connect", connect_to_small_disk)
    with (
        pytest.raises(BadRun, match=r"cannot write .*full; free space or choose another place"),
        PartialResults(tmp_path / "out.csv", "fingerprint", resume=False) as results,
    ):
        results.add_images({f"{number:0999}.jpg": "" for number in range(100)}, True)
