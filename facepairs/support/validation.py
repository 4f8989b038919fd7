"""Check plain values, as TOML and JSON files hold them, against a typed schema.

A schema is a `msgspec.Struct` or a dataclass whose fields carry their constraints:

    class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        size_px: Annotated[int, Meta(ge=1, le=2048)]
        layout: Literal["nchw", "nhwc"] = "nchw"

msgspec decides what is valid. This module adds file, field and value to the message.
`Meta(description=…)` replaces msgspec's description of the allowed values.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from facepairs.errors import BadConfig, FacepairsError

T = TypeVar("T")
LONGEST_VALUE = 60  # characters of a value in a message


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown word: the closest known one, or all of them.

    Args:
        word: The unknown word.
        known: The allowed words, in the order in which they are listed.
    """
    import difflib  # most commands never meet an unknown word

    known = list(known)
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def validate(
    values: object,
    schema: type[T],
    source: str = "",
    error: type[FacepairsError] = BadConfig,
    advice: str = "",
) -> T:
    """Build a `schema` from plain values.

    Types are strict: a whole number is accepted as a float, and a NumPy number as Python's own;
    nothing else is converted. Unknown keys are refused in a dataclass, and in Structs with
    `forbid_unknown_fields=True`.

    Args:
        values: The content of a TOML or JSON file.
        schema: A `msgspec.Struct` or a dataclass.
        source: The file, or wherever the values come from; starts the message.
        error: The exception that is raised.
        advice: The next step, appended to the message.

    Raises:
        error: A value does not fit: names source, field, value and what is allowed.
    """
    arguments: tuple[str, ...] = ()
    try:
        if isinstance(values, Mapping):
            values = {name: _plain(value) for name, value in values.items()}
            _check_each(values, schema)
        return msgspec.convert(values, schema)
    except msgspec.ValidationError as failure:
        problem = str(failure)
    except FacepairsError as failure:  # of one field, or of several that the schema itself compares
        problem = failure.message
        if dataclasses.is_dataclass(schema) and not source:  # of settings that a caller has given
            arguments = failure.arguments
    text = "; ".join(filter(None, [f"{source}: {problem}" if source else problem, advice]))
    raise error(text, *arguments)


def _check_each(values: Mapping[str, Any], schema: Any) -> None:
    """Check the names of values and each value by itself; raise BadConfig."""
    if dataclasses.is_dataclass(schema):
        kinds, is_strict = get_type_hints(schema, include_extras=True), True
    else:
        kinds = {field.encode_name: field.type for field in msgspec.structs.fields(schema)}
        is_strict = schema.__struct_config__.forbid_unknown_fields
    for name, value in values.items():
        if name in kinds:
            check_value(name, value, kinds[name])
        elif is_strict:
            raise BadConfig(f"unknown setting {shorten(name)}; {did_you_mean(str(name), kinds)}")


def check_value(name: str, value: object, kind: Any) -> None:
    """Check a value against a type that msgspec knows.

    Raises:
        BadConfig: The value does not fit; the message names it and the allowed values.
    """
    try:
        msgspec.convert(_plain(value), kind)
    except msgspec.ValidationError as failure:
        reason, _, place = str(failure).partition(" - at `$")
        if place or reason.startswith("Object"):  # of a part of the value
            raise BadConfig(f"{name}{place.rstrip('`')}: {reason}", name) from None
        allowed = _allowed(kind) or f"another value: {reason}"
        raise BadConfig(f"{name} is {shorten(value)}; use {allowed}", name) from None


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass against its own annotations; for `__post_init__`.

    NumPy numbers become Python's own.

    Raises:
        BadConfig: A field has a value that its annotation does not allow.
    """
    for name, kind in get_type_hints(type(instance), include_extras=True).items():
        value = _plain(given := getattr(instance, name))
        if value is not given:
            object.__setattr__(instance, name, value)
        check_value(name, value, kind)


def _plain(value: object) -> object:
    """Return a NumPy number, which msgspec does not know, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _allowed(kind: Any) -> str:
    """Describe the values that a type allows, if msgspec's own message says less; else ""."""
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return next(filter(None, map(_allowed, get_args(kind))), "")
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    metas = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((meta.description for meta in metas if meta.description), "")


def parse_toml(data: bytes, path: Path, error: type[FacepairsError]) -> dict[str, Any]:
    """Return the content of a TOML file, which may begin with a byte order mark."""
    import tomllib  # not needed by every command

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise error(f"{path}: not TOML: {problem}") from None


def shorten(value: object) -> str:
    """Return `repr(value)`, cut to a length that fits into a message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number that is too long to print"
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
