"""Damaged scores files: detected by their checksum, or without one an error or finite scores.

A scores file that another system wrote has no checksum: a digit that became another digit and a
cut after a complete cell read as another, valid file. Everything else is detected.
"""

import re

import numpy as np
import pytest

from facepairs.errors import BadData
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.verification.provenance import Provenance, provenance_path

NAMES = ["Ann/1.jpg", "Bé/2.jpg", "Cyd/3.jpg", "Dee, Jr/4.jpg"]


@pytest.fixture
def path(tmp_path):
    fold = np.array([0, 1, 2, 3], np.int16)
    score = np.array([0.125, -0.5, 1e-7, 12.75])
    same = np.array([True, False, True, False])
    origin = Provenance(model="default", pairs="held-out people")
    scores = ScoreTable(NAMES, NAMES[::-1], same, fold, score)
    write_scores(tmp_path / "scores.csv", scores, origin)
    return tmp_path / "scores.csv"


@pytest.fixture
def foreign(path):
    provenance_path(path).unlink()
    return path


def read_or_error(path):
    """Return finite scores, or None where they were refused with the file's name."""
    try:
        scores = read_scores(path)
    except BadData as error:
        message = str(error)
    else:
        assert np.isfinite(scores.score).all()
        assert len(scores.left) == len(scores.genuine) == len(scores)
        return scores
    assert str(path) in message
    assert "\n" not in message
    return None


def numbers(scores):
    return scores.genuine.tolist(), scores.fold.tolist(), scores.score.tolist()


def test_with_a_checksum_every_changed_bit_and_every_cut_is_detected(path):
    data = path.read_bytes()
    for at in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            assert read_or_error(path) is None
        path.write_bytes(data[:at])
        assert read_or_error(path) is None
    path.write_bytes(data)
    assert numbers(read_or_error(path))[2] == [0.125, -0.5, 1e-7, 12.75]


def test_every_changed_bit_is_an_error_or_another_valid_file(foreign):
    path = foreign
    data = path.read_bytes()
    meant = numbers(read_scores(path))
    header_end = data.index(b"\n") + 1
    for at in range(len(data)):
        for bit in range(8):
            changed = data[at] ^ 1 << bit
            path.write_bytes(data[:at] + bytes([changed]) + data[at + 1 :])
            scores = read_or_error(path)
            if scores is None or numbers(scores) == meant:
                continue  # refused, or a name or an unneeded column's title has changed
            if at < header_end:  # without its title the column `fold` is not read
                assert re.search(rb"fold", path.read_bytes()) is None
                continue
            # Numbers that differ: a character of a number became another one of a number's.
            assert chr(data[at]) in "0123456789.-e,\r\n", at
            assert chr(changed) in '0123456789.-+eE, \t\r\n"', (at, chr(changed))


def test_every_cut_is_an_error_or_fewer_pairs_or_a_shorter_last_number(foreign):
    path = foreign
    data = path.read_bytes()
    genuine, fold, score = numbers(read_scores(path))
    silent = 0
    for size in range(len(data)):
        path.write_bytes(data[:size])
        scores = read_or_error(path)
        if scores is None:
            continue
        silent += 1
        count = len(scores)
        assert numbers(scores)[0] == genuine[:count]
        assert numbers(scores)[1] == fold[:count]
        assert numbers(scores)[2][:-1] == score[: count - 1]
    assert silent < len(data) / 5
