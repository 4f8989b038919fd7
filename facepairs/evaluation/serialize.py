"""Results as plain values: the one way from dataclasses and NumPy's numbers to JSON."""

import json
from pathlib import Path
from typing import Any

import msgspec

from facepairs.support.atomic import atomic_file


def to_plain(value: Any) -> Any:
    """Return dicts, lists, texts and numbers for any result; a JSON round trip changes nothing.

    Dataclasses become dicts of their fields, in order, and tuples become lists. Numbers that are
    not finite become None, since JSON cannot express them.
    """
    text = msgspec.json.encode(value, enc_hook=lambda number: number.item())  # NumPy's
    return msgspec.json.decode(text)


def write_json(path: Path, value: Any) -> None:
    """Write a result atomically as an indented JSON file."""
    text = json.dumps(to_plain(value), indent=1, ensure_ascii=False)
    with atomic_file(path) as handle:
        handle.write(text + "\n")
