"""The reference of the public names as plain Markdown, from signatures and docstrings.

A page asks for it with pairs of markers, and `reference.py` writes what lies between them:

    <!-- python facepairs.Verifier load verify -->
    <!-- /python -->

The words behind a class are the members to list; without any, all public ones are. Behind a module
they are the names to list.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[2]
MARKERS = re.compile(r"(<!-- python (\S+)([^>]*) -->\n).*?(<!-- /python -->)", re.DOTALL)
PYTHON_MARKER = "<!-- python "
WIDTH = 88  # of a signature on one line
NAMED = ("parameters", "attributes")  # sections of a docstring; of the others a type is enough
TITLES = {"parameters": "Arguments", "attributes": "Fields", "raises": "Raises"}


def with_python(text: str) -> str:
    """Return a page with a new reference between each pair of markers."""
    return MARKERS.sub(lambda at: f"{at[1]}\n{_entry(at[2], at[3].split())}\n{at[4]}", text)


@cache
def _package() -> Any:
    options = {"returns_multiple_items": False, "returns_named_value": False}
    return griffe.load(
        "facepairs", search_paths=[ROOT], docstring_parser="google", docstring_options=options
    )


def _entry(path: str, members: list[str]) -> str:
    """Return the Markdown of a name and of its members."""
    thing, name = _package()[path.removeprefix("facepairs.")], path.rpartition(".")[2]
    thing = thing.final_target if thing.is_alias else thing
    if thing.is_module:
        return "\n".join(_part(thing[one], one, 3) for one in members)
    listed = members or [one for one, member in thing.members.items() if _is_listed(member)]
    parts = [_part(thing[one], f"{name}.{one}", 4) for one in listed] if thing.is_class else []
    return "\n".join([_part(thing, name, 3), *parts])


def _is_listed(member: Any) -> bool:
    """Return whether a member has a part of its own; fields are in their class's docstring."""
    is_property = member.is_attribute and "property" in member.labels
    return (
        not member.name.startswith("_")
        and bool(member.docstring)
        and (member.is_function or is_property)
    )


def _part(thing: Any, name: str, level: int) -> str:
    """Return a heading, the signature and the docstring."""
    sections = thing.docstring.parsed if thing.docstring else []
    is_result = any(section.kind.value == "attributes" for section in sections)
    lines = [f"{'#' * level} {name}", ""]
    if not (thing.is_class and (is_result or not thing.parameters)):
        lines += ["```py", _signature(thing, name), "```", ""]
    for section in sections:
        lines += [*_section(section.kind.value, section.value), ""]
    return "\n".join(lines)


def _signature(thing: Any, name: str) -> str:
    if thing.is_attribute:
        return f"{name}: {thing.annotation}" if thing.annotation else f"{name} = {thing.value}"
    short = thing.signature(name=name)
    if len(short) <= WIDTH:
        return str(short)
    # One argument a line: griffe separates them by commas, and so do types, but within brackets.
    begin, _, rest = short.partition("(")
    arguments, _, end = rest.rpartition(")")
    lines, depth = [""], 0
    for character in arguments:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            lines.append("")
        else:
            lines[-1] += character
    inner = "".join(f"    {line.strip()},\n" for line in lines)
    return f"{begin}(\n{inner}){end}"


def _section(kind: str, value: Any) -> Iterator[str]:
    if kind == "text":
        yield value
    elif kind == "examples":
        for part, text in value:
            yield from (text,) if part.value == "text" else ("```pycon", text, "```")
    elif kind in TITLES:
        yield f"{TITLES[kind]}:\n"
        for one in value:
            name = one.name if kind in NAMED else one.annotation
            yield f"- `{name}`: {_one_line(one.description)}"
    else:  # what a function returns or yields
        for one in value:
            yield f"{kind.capitalize()} `{one.annotation}`: {_one_line(one.description)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
