"""Colours of synthetic faces: RGB triples from 0 to 255, and how to mix them."""

import colorsys
from collections.abc import Sequence

Colour = tuple[int, int, int]


def ramp(colours: Sequence[Colour], at: float) -> Colour:
    """Return the colour at a position in [0, 1] along a row of colours."""
    place = min(max(at, 0.0), 1.0) * (len(colours) - 1)
    start = min(int(place), len(colours) - 2)
    return mix(colours[start], colours[start + 1], place - start)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Return `one` with a share of `other` mixed in.

    Args:
        one: RGB, 0 to 255.
        other: RGB, 0 to 255.
        share: Of `other`; the result is clipped to 0..255.
    """
    r, g, b = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return min(max(r, 0), 255), min(max(g, 0), 255), min(max(b, 0), 255)


def shade(colour: Colour, factor: float) -> Colour:
    """Return a darker (factor below 1) or lighter colour."""
    return mix((0, 0, 0), colour, factor)


def hue(turn: float, saturation: float, lightness: float) -> Colour:
    """Return a colour of the HSL model.

    Args:
        turn: Hue, 0 to 1.
        saturation: 0 to 1.
        lightness: 0 to 1.
    """
    r, g, b = (round(255 * c) for c in colorsys.hls_to_rgb(turn, lightness, saturation))
    return r, g, b
