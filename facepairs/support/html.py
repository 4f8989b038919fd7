"""Small pieces of HTML for notebooks; every text is escaped."""

import base64
import html
import io
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image


def html_table(rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return rows of texts as a table."""
    lines = [("th", header)] if header else []
    lines += [("td", row) for row in rows]
    body = "".join(
        "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>"
        for tag, row in lines
    )
    return f"<table>{body}</table>"


def html_image(pixels: npt.NDArray[np.uint8], alt: str) -> str:
    """Return uint8[H, W, 3] as an `<img>` that holds its pixels."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    data = base64.b64encode(out.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">'
