"""Values that do not fit a schema are refused with file, field, value and what is allowed."""

from typing import Annotated, Literal

import msgspec
import numpy as np
import pytest
from msgspec import Meta

from facepairs.config import TrainConfig
from facepairs.errors import BadBundle, BadConfig
from facepairs.support.validation import did_you_mean, shorten, validate


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
        ({"size_px": 0}, "size_px is 0; use another value: Expected `int` >= 1"),
        ({"size_px": 3.0}, "size_px is 3.0; use another value: Expected `int`"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": 10**400}, "threshold is 1000"),
        ({"layout": "chw"}, "layout is 'chw'; use one of nchw, nhwc"),
        ({"layout": [1]}, r"layout is \[1\]; use one of nchw, nhwc"),
        ({"crop": "half"}, r"crop is 'half'; use a share, or \[pixels, of how many\]"),
        ({"part": {}}, "part: Object missing required field `file`"),
        ({"part": {"file": 3}}, "part.file: Expected `str`, got `int`"),
        ({"part": 7}, "part is 7"),
        ({"files": {"a.onnx": {"file": "a", "inputs": ["x", 1]}}}, r"files\[...\].inputs\[1\]: "),
        ({"flag": "yes"}, "flag is 'yes'; use another value: Expected `bool`"),
        ({"name": ""}, "name is ''"),
        ({"layouts": "nchw"}, "unknown setting 'layouts'; did you mean 'layout'?"),
        ({"zzz": 1}, "unknown setting 'zzz'; known: size_px, threshold"),
    ],
)
def test_the_message_names_file_field_value_and_what_is_allowed(changes, message):
    with pytest.raises(BadBundle, match=f"^x.toml: {message}") as caught:
        validate({"size_px": 4, **changes}, Header, "x.toml", BadBundle, "export it again")
    assert str(caught.value).endswith("; export it again")


@pytest.mark.parametrize(
    ("number", "plain"),
    [(np.int64(4), 4), (np.uint8(4), 4), (np.float32(0.5), 0.5), (np.bool_(True), True)],
)
def test_numpy_numbers_become_pythons_own(number, plain):
    name = {int: "size_px", float: "scale", bool: "flag"}[type(plain)]
    header = validate({"size_px": 1, name: number}, Header)
    assert (type(getattr(header, name)), getattr(header, name)) == (type(plain), plain)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("seed", np.int64(7)), ("validation_share", np.float64(0.125)), ("skip_bad", np.bool_(True))],
)
def test_numpy_numbers_are_settings(setting, value):
    config = TrainConfig(**{setting: value})
    assert type(getattr(config, setting)) is type(value.item())
    assert config == TrainConfig(**{setting: value.item()})
    with pytest.raises(BadConfig, match="seed is -1"):
        TrainConfig(seed=np.int64(-1))


@pytest.mark.parametrize("values", [{}, 3, []])
def test_missing_fields_and_other_content_are_refused(values):
    with pytest.raises(BadConfig):
        validate(values, Header)


def test_valid_values_give_the_schema_and_only_integers_become_floats():
    header = validate({"size_px": 4, "scale": 2, "part": {"file": "a", "later": 1}}, Header)
    assert header == Header(size_px=4, scale=2.0, part=Part("a"))
    assert type(header.scale) is float


@pytest.mark.parametrize(("source", "arguments"), [("", ("epochs",)), ("a.toml", ())])
def test_a_setting_that_a_caller_has_given_is_an_argument(source, arguments):
    with pytest.raises(BadConfig) as caught:
        validate({"epochs": 0}, TrainConfig, source)
    assert caught.value.arguments == arguments
    with pytest.raises(BadConfig) as caught:
        validate({"size_px": 0}, Header)
    assert caught.value.arguments == ()


def test_did_you_mean_names_the_closest_word_or_all():
    assert did_you_mean("epoch", ["seed", "epochs"]) == "did you mean 'epochs'?"
    assert did_you_mean("zzz", iter(["seed", "epochs"])) == "known: seed, epochs"


def test_long_values_are_cut():
    assert len(shorten("x" * 1000)) == 60
    assert shorten(0x10**9000) == "a number that is too long to print"


@pytest.mark.parametrize(("length", "shown"), [(58, 60), (59, 60), (500, 60)])
def test_a_value_is_cut_where_it_is_too_long(length, shown):
    text = shorten("x" * length)
    assert len(text) == shown
    assert text.endswith("..." if length > 58 else "x'")
