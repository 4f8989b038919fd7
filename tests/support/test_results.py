"""Results as JSON: plain values, and nothing that is not finite; pieces of HTML."""

import math

import numpy as np

from facepairs.support.html import data_url, html_image, html_table
from facepairs.support.results import SCHEMA, Result, json_text, to_plain, write_json


class Counted(Result, frozen=True, kw_only=True):
    """A result with a number for each place."""

    of: dict[int, tuple[float, ...]]


def test_a_result_is_plain_and_finite(tmp_path):
    result = Counted(of={1: (0.5, math.nan), 2: (-math.inf,)})
    assert result.to_json() == {"schema": SCHEMA, "of": {"1": [0.5, None], "2": [None]}}
    assert to_plain([np.float64(0.5), np.int32(3)]) == [0.5, 3]
    assert json_text({"Zoë": [1]}) == '{\n "Zoë": [\n  1\n ]\n}'
    write_json(tmp_path / "a.json", {"a": 1})
    assert (tmp_path / "a.json").read_text() == '{\n "a": 1\n}\n'


def test_pieces_of_html_are_escaped():
    assert html_table([["<", "b"]]) == "<table><tr><td>&lt;</td><td>b</td></tr></table>"
    assert html_table([], ["a"]) == "<table><tr><th>a</th></tr></table>"
    pixels = np.zeros((2, 2, 3), np.uint8)
    assert html_image(pixels, '"').startswith('<img alt="&quot;" src="data:image/png;base64,iVBOR')
    assert data_url(pixels, "JPEG").startswith("data:image/jpeg;base64,/9j/")
