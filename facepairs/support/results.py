"""Results as commands, server and Python give them: one kind of type, one version, one way to JSON.

Python returns a `Result`, commands print it as JSON, and the server sends it. The reference and
`/openapi.json` are made from its fields and docstring.
"""

import inspect
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from facepairs.support.atomic import atomic_file

REF = "#/components/schemas/{name}"
FIELD = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n     .*)*)", re.MULTILINE)  # of a docstring
RENAMED = re.compile(r" In JSON it is called `(\w+)`\.")
SCHEMA = 8  # the version of all results; it rises when a field is renamed, removed or redefined


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A result with the version of its fields.

    Attributes:
        schema: The version of the fields of all results.
    """

    schema: int = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """Return the dict that commands print as JSON and the server sends."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def to_plain(value: Any) -> Any:
    """Return dicts, lists, texts and numbers for any result; a JSON round trip changes nothing.

    Numbers that are not finite become None, since JSON cannot express them.
    """
    # Not through text: a file's name may not be valid Unicode.
    return _finite(msgspec.to_builtins(value, str_keys=True, enc_hook=_number))


def _number(value: Any) -> Any:
    """Return a number of NumPy as Python's."""
    return value.item()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    """Return a result as indented JSON."""
    return json.dumps(to_plain(value), indent=1, ensure_ascii=False)


def write_json(path: Path, value: Any) -> None:
    """Write a result atomically as an indented JSON file."""
    with atomic_file(path) as handle:
        handle.write(json_text(value) + "\n")


def json_schemas(types: Iterable[type[msgspec.Struct]]) -> dict[str, Any]:
    """Return the JSON Schemas of types and of those within them, with their docstrings' words."""
    _, components = msgspec.json.schema_components(types, ref_template=REF)
    for schema in components.values():
        words, _, fields = inspect.cleandoc(schema.get("description", "")).partition("Attributes:")
        schema["description"] = words.strip()
        for names, text in FIELD.findall(fields):
            meaning = re.sub(r"\bNone\b", "null", " ".join(text.split()))
            renamed = RENAMED.search(meaning)
            for name in [renamed[1]] if renamed else names.split(", "):
                field = schema["properties"].get(name, {})
                field.setdefault("description", RENAMED.sub("", meaning))
        if "schema" in schema.get("properties", {}):
            schema["properties"]["schema"]["description"] = "The version of the fields of results."
    return components
