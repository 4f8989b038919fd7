"""Values that do not fit a schema are refused with file, field, value and what is allowed."""

from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from facepairs.errors import BadBundle, BadConfig
from facepairs.support.validation import did_you_mean, find_problem, shorten, validate


class Part(msgspec.Struct, frozen=True):
    file: str
    inputs: tuple[str, ...] = ()


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    size_px: Annotated[int, Meta(ge=1, le=2048)]
    threshold: Annotated[float, Meta(ge=-1e300, le=1e300)] = 0.0
    scale: Annotated[float, Meta(gt=0)] = 1.0
    layout: Literal["nchw", "nhwc"] = "nchw"
    crop: Annotated[float | list[float], Meta(description="a share, or [pixels, of how many]")] = 1
    part: Part | None = None
    files: dict[str, Part] = {}
    flag: bool = False
    name: Annotated[str, Meta(min_length=1)] = "x"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size_px": 0}, "size_px is 0; use a whole number from 1 to 2048"),
        ({"size_px": "3"}, "size_px is '3'; use a whole number from 1 to 2048"),
        ({"size_px": True}, "size_px is True; use a whole number from 1 to 2048"),
        ({"size_px": 3.0}, "size_px is 3.0; use a whole number from 1 to 2048"),
        ({"threshold": float("nan")}, "threshold is nan; use a number that is finite"),
        ({"threshold": 10**400}, "threshold is 1000"),
        ({"scale": 0}, "scale is 0; use a number above 0"),
        ({"layout": "chw"}, "layout is 'chw'; use one of nchw, nhwc"),
        ({"layout": [1]}, r"layout is \[1\]; use one of nchw, nhwc"),
        ({"crop": "half"}, r"crop is 'half'; use a share, or \[pixels, of how many\]"),
        ({"part": {}}, "part.file is missing; use a text"),
        ({"part": {"file": 3}}, "part.file is 3; use a text"),
        ({"part": 7}, "part is 7; use an object"),
        (
            {"files": {"a.onnx": {"file": "a", "inputs": ["x", 1]}}},
            r"files.a.onnx.inputs\[1\] is 1; use a text",
        ),
        ({"flag": "yes"}, "flag is 'yes'; use true or false"),
        ({"name": ""}, "name is ''; use a text that is not empty"),
        ({"layouts": "nchw"}, "unknown setting 'layouts'; did you mean 'layout'?"),
        ({"zzz": 1}, "unknown setting 'zzz'; known: size_px, threshold"),
    ],
)
def test_the_message_names_file_field_value_and_what_is_allowed(changes, message):
    with pytest.raises(BadBundle, match=f"^x.toml: {message}") as caught:
        validate({"size_px": 4, **changes}, Header, "x.toml", BadBundle, "export it again")
    assert str(caught.value).endswith("; export it again")


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "size_px is missing"), (3, "the content is 3; use an object"), ([], "the content is")],
)
def test_missing_fields_and_other_content_are_named(values, message):
    with pytest.raises(BadConfig, match=f"^{message}"):
        validate(values, Header)


def test_valid_values_give_the_schema_and_only_integers_become_floats():
    header = validate({"size_px": 4, "scale": 2, "part": {"file": "a", "later": 1}}, Header)
    assert header == Header(size_px=4, scale=2.0, part=Part("a"))
    assert type(header.scale) is float


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_a_problem_is_found_exactly_where_msgspec_refuses_a_value(value):
    for schema in (int, float, Header, dict[str, int], list[str], Literal["a"], int | None):
        try:
            msgspec.convert(value, schema)
        except msgspec.ValidationError:
            assert find_problem(value, schema, "field").startswith("field")
        else:
            assert find_problem(value, schema, "field") == ""


def test_did_you_mean_names_the_closest_word_or_all():
    assert did_you_mean("epoch", ["seed", "epochs"]) == "did you mean 'epochs'?"
    assert did_you_mean("zzz", iter(["seed", "epochs"])) == "known: seed, epochs"


def test_long_values_are_cut():
    assert len(shorten("x" * 1000)) == 60
    assert shorten(0x10**9000) == "a number that is too long to print"
