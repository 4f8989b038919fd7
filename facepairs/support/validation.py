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
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from facepairs.errors import BadConfig, FacepairsError

T = TypeVar("T")
LONGEST_VALUE = 60  # characters of a value in a message
LIMITLESS = 1e30  # bounds beyond this only mean "finite"
_WORDS: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.DictType: "an object",
    inspect.NoneType: "null",
    inspect.StructType: "an object",
    inspect.DataclassType: "an object",
}


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
    problem = ""
    if dataclasses.is_dataclass(schema) and isinstance(values, Mapping):
        problem = _unknown_field(values, [field.name for field in dataclasses.fields(schema)], "")
    if not problem:
        try:
            return msgspec.convert(values, schema)
        except msgspec.ValidationError:
            problem = find_problem(values, schema)
    raise error(
        "".join([f"{source}: " if source else "", problem, f"; {advice}" if advice else ""])
    )


def find_problem(value: object, schema: Any, name: str = "") -> str:
    """Return in words what keeps `value` from being a `schema`, or "" when nothing does.

    Args:
        value: A plain value.
        schema: A type that msgspec knows, with or without constraints.
        name: The dotted name of the value, such as `network.inputs`; "" for a whole file.
    """
    try:
        msgspec.convert(value, schema)
    except msgspec.ValidationError as failure:
        problem = str(failure)
    else:
        return ""
    schema = _not_optional(schema)
    info = _without_metadata(inspect.type_info(schema))
    if isinstance(info, inspect.StructType | inspect.DataclassType) and isinstance(value, Mapping):
        return _field_problem(value, info, name) or (f"{name}: {problem}" if name else problem)
    for key, item, kind in _items(value, schema):
        inner = find_problem(item, kind, f"{name}{key}" if name else key.lstrip("."))
        if inner:
            return inner
    if get_origin(schema) is Literal:  # msgspec sorts the values; the schema's order is better
        allowed = f"one of {', '.join(map(str, get_args(schema)))}"
    else:
        allowed = _describe(inspect.type_info(schema))
    return f"{name or 'the content'} is {shorten(value)}; use {allowed}"


def check_fields(instance: Any, error: type[FacepairsError] = BadConfig) -> None:
    """Check the fields of a dataclass against its own annotations; for `__post_init__`.

    Raises:
        error: A field has a value that its annotation does not allow.
    """
    for name, kind in get_type_hints(type(instance), include_extras=True).items():
        if problem := find_problem(getattr(instance, name), kind, name):
            raise error(problem)


def shorten(value: object) -> str:
    """Return `repr(value)`, cut to a length that fits into a message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number that is too long to print"
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def _field_problem(
    value: Mapping[str, Any], info: inspect.StructType | inspect.DataclassType, name: str
) -> str:
    """Return the first problem with the fields of an object, or ""."""
    forbids = isinstance(info, inspect.DataclassType) or info.forbid_unknown_fields
    if forbids and (problem := _unknown_field(value, [f.encode_name for f in info.fields], name)):
        return problem
    hints = get_type_hints(info.cls, include_extras=True)
    for field in info.fields:
        path = f"{name}.{field.encode_name}" if name else field.encode_name
        if field.encode_name in value:
            if problem := find_problem(value[field.encode_name], hints[field.name], path):
                return problem
        elif field.required:
            return f"{path} is missing; use {_describe(field.type)}"
    return ""


def _unknown_field(value: Mapping[str, Any], known: list[str], name: str) -> str:
    for key in value:
        if key not in known:
            place = f" in {name}" if name else ""
            return f"unknown setting {shorten(key)}{place}; {did_you_mean(str(key), known)}"
    return ""


def _items(value: object, schema: Any) -> list[tuple[str, object, Any]]:
    """Return the parts of a dict, list or tuple: (suffix of the name, value, type of the part)."""
    if get_origin(schema) is typing.Annotated:
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
    is_union = get_origin(schema) in (typing.Union, types.UnionType)
    return kinds[0] if is_union and len(kinds) == 1 else schema


def _without_metadata(info: inspect.Type) -> inspect.Type:
    return info.type if isinstance(info, inspect.Metadata) else info


def _describe(info: inspect.Type) -> str:
    """Return in words which values a type allows."""
    if isinstance(info, inspect.Metadata):
        extra = info.extra_json_schema or {}
        return str(extra.get("description") or _describe(info.type))
    if isinstance(info, inspect.LiteralType):
        return f"one of {', '.join(str(value) for value in info.values)}"
    if isinstance(info, inspect.IntType | inspect.FloatType):
        word = "a whole number" if isinstance(info, inspect.IntType) else "a number"
        return word + _describe_range(info)
    if isinstance(info, inspect.StrType):
        return "a text that is not empty" if info.min_length else "a text"
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        return f"a list, each item {_describe(info.item_type)}"
    if isinstance(info, inspect.TupleType):
        return f"a list of {', '.join(_describe(item) for item in info.item_types)}"
    if isinstance(info, inspect.UnionType):
        return " or ".join(_describe(kind) for kind in info.types)
    return _WORDS.get(type(info), "another type of value")


def _describe_range(info: inspect.IntType | inspect.FloatType) -> str:
    least, most = info.ge, info.le
    if least is None and most is None:
        return f" above {info.gt:g}" if info.gt is not None else ""
    if max(abs(least or 0), abs(most or 0)) >= LIMITLESS:
        return " that is finite"
    if most is None:
        return f" of at least {least:g}"
    return f" up to {most:g}" if least is None else f" from {least:g} to {most:g}"
