"""Results as plain values: the one way from dataclasses and arrays to JSON."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.support.atomic import atomic_file


def to_plain(value: Any) -> Any:
    """Return dicts, lists, texts and numbers for any result; a JSON round trip changes nothing.

    Dataclasses become dicts of their fields, in order, and tuples and arrays become lists. Values
    of an array that are not finite become None, since JSON cannot express them.
    """
    plain = msgspec.to_builtins(value, enc_hook=_encode_array)
    return json.loads(json.dumps(plain, allow_nan=False))


def write_json(path: Path, value: Any) -> None:
    """Write a result atomically as an indented JSON file; raises ValueError for NaN."""
    text = json.dumps(to_plain(value), indent=1, ensure_ascii=False)
    with atomic_file(path) as handle:
        handle.write(text + "\n")


def _encode_array(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        items = value.astype(object)
        items[~np.isfinite(value)] = None
        return items.tolist()
    raise TypeError(f"{type(value).__name__} has no plain form")
