"""Check plain values, as TOML and JSON files hold them, against a typed schema.

A schema is a `msgspec.Struct` or a dataclass whose fields carry their constraints:

    class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        size_px: Annotated[int, Meta(ge=1, le=2048)]
        layout: Literal["nchw", "nhwc"] = "nchw"

msgspec decides what is valid. This module explains what is not: which file, which field, which
value was received, and what is allowed. `Meta(description=…)` replaces the generated words for
what is allowed.
"""

import dataclasses
import itertools
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from facepairs.errors import BadConfig, FacepairsError

T = TypeVar("T")
LONGEST_VALUE = 60  # characters of a value in a message
LIMITLESS = 1e30  # bounds beyond this only mean "finite"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown word: the closest known one, or all of them.

    Args:
        word: What was received.
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

    Types are strict: a whole number is accepted as a float, nothing else is converted. Unknown
    keys are refused in dataclasses, and in Structs with `forbid_unknown_fields=True`.

    Args:
        values: What a TOML or JSON file held.
        schema: A `msgspec.Struct`, a dataclass, or any other type that msgspec knows.
        source: The file, or wherever the values come from; starts the message.
        error: The exception that is raised.
        advice: What to do next, appended to the message.

    Raises:
        error: A value does not fit: names source, field, value and what is allowed.
    """
    try:
        problem, arguments = find_problem(values, schema), _bad_fields(values, schema)
        if not problem:
            return msgspec.convert(values, schema)
    except FacepairsError as contradiction:  # between fields, found by the schema itself
        problem, arguments = contradiction.message, contradiction.arguments
    text = "; ".join(filter(None, [f"{source}: {problem}" if source else problem, advice]))
    raise error(text, *(() if source else arguments))


def _bad_fields(values: object, schema: Any) -> tuple[str, ...]:
    """Return the names of the first field of a dataclass that does not fit, if any."""
    if not dataclasses.is_dataclass(schema) or not isinstance(values, Mapping):
        return ()
    hints = get_type_hints(schema, include_extras=True)
    bad = (name for name in values if name in hints and find_problem(values[name], hints[name]))
    return tuple(itertools.islice(bad, 1))


def find_problem(value: object, schema: Any, name: str = "") -> str:
    """Return in words what keeps `value` from being a `schema`, or "" when nothing does.

    Args:
        value: A plain value.
        schema: A type that msgspec knows, with or without constraints.
        name: The dotted name of the value, such as `network.inputs`; "" for a whole file.
    """
    if dataclasses.is_dataclass(schema) and isinstance(value, Mapping):
        fields = [field.name for field in dataclasses.fields(schema)]
        if problem := _unknown_field(value, fields, name):
            return problem
    try:
        msgspec.convert(value, schema)
    except msgspec.ValidationError as failure:
        schema = _not_optional(schema)
        if isinstance(value, Mapping) and hasattr(schema, "__annotations__"):
            problem = _field_problem(value, schema, name)
            return problem or (f"{name}: {failure}" if name else str(failure))
        for key, item, kind in _items(value, schema):
            if inner := find_problem(item, kind, f"{name}{key}".lstrip(".")):
                return inner
        return f"{name or 'the content'} is {shorten(value)}; use {_describe(schema)}"
    return ""


def check_fields(instance: Any, error: type[FacepairsError] = BadConfig) -> None:
    """Check the fields of a dataclass against its own annotations; for `__post_init__`.

    Raises:
        error: A field has a value that its annotation does not allow.
    """
    for name, kind in get_type_hints(type(instance), include_extras=True).items():
        if problem := find_problem(getattr(instance, name), kind, name):
            raise error(problem, name)


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


def _field_problem(value: Mapping[str, Any], schema: Any, name: str) -> str:
    """Return the first problem with the fields of an object, or ""."""
    info: Any = inspect.type_info(schema)
    known = [field.encode_name for field in info.fields]
    forbids = getattr(info, "forbid_unknown_fields", False)
    if forbids and (problem := _unknown_field(value, known, name)):
        return problem
    hints = get_type_hints(schema, include_extras=True)
    for key, field in zip(known, info.fields, strict=True):
        path = f"{name}.{key}".lstrip(".")
        if key in value:
            if problem := find_problem(value[key], hints[field.name], path):
                return problem
        elif field.required:
            return f"{path} is missing; use {_describe(hints[field.name])}"
    return ""


def _unknown_field(value: Mapping[str, Any], known: list[str], name: str) -> str:
    for key in value:
        if key not in known:
            place = f" in {name}" if name else ""
            return f"unknown setting {shorten(key)}{place}; {did_you_mean(str(key), known)}"
    return ""


def _items(value: object, schema: Any) -> list[tuple[str, object, Any]]:
    """Return the parts of a dict, list or tuple: (suffix of the name, value, type of the part)."""
    if get_origin(schema) is Annotated:
        schema = get_args(schema)[0]
    kinds = get_args(schema)
    if get_origin(schema) is dict and isinstance(value, Mapping):
        return [(f".{key}", item, kinds[1]) for key, item in value.items()]
    if get_origin(schema) in (list, tuple) and isinstance(value, list | tuple):
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            kinds = kinds[:1]
        if get_origin(schema) is list or len(kinds) == 1:
            return [(f"[{at}]", item, kinds[0]) for at, item in enumerate(value)]
    return []


def _not_optional(schema: Any) -> Any:
    """Return T for `T | None`, any other type as it is."""
    kinds = [kind for kind in get_args(schema) if kind is not type(None)]
    is_union = get_origin(schema) in (Union, types.UnionType)
    return kinds[0] if is_union and len(kinds) == 1 else schema


def _describe(schema: Any) -> str:
    """Return in words which values a type allows."""
    info = inspect.type_info(schema)
    if isinstance(info, inspect.Metadata):
        if description := (info.extra_json_schema or {}).get("description"):
            return str(description)
        info = info.type
    kinds = get_args(get_args(schema)[0] if get_origin(schema) is Annotated else schema)
    if isinstance(info, inspect.LiteralType):
        return f"one of {', '.join(map(str, kinds))}"
    if isinstance(info, inspect.IntType | inspect.FloatType):
        word = "a whole number" if isinstance(info, inspect.IntType) else "a number"
        return word + _describe_range(info)
    if isinstance(info, inspect.StrType):
        return "a text that is not empty" if info.min_length else "a text"
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        return f"a list, each item {_describe(kinds[0])}"
    if isinstance(info, inspect.UnionType):
        return " or ".join(map(_describe, kinds))
    return "true or false" if isinstance(info, inspect.BoolType) else "an object"


def _describe_range(info: inspect.IntType | inspect.FloatType) -> str:
    low, high = info.ge, info.le
    if low is None or high is None:
        bounds = {" above ": info.gt, " of at least ": low, " up to ": high}
        return "".join(f"{word}{bound:g}" for word, bound in bounds.items() if bound is not None)
    return " that is finite" if high >= LIMITLESS else f" from {low:g} to {high:g}"
