"""Pages that load nothing, and small pieces of HTML for notebooks; every text is escaped."""

import base64
import hashlib
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image


def render_template(folder: Path, template: str, script: str, **values: Any) -> str:
    """Return a page of a Jinja template, which may run its own script alone.

    Args:
        folder: Where template and script are.
        template: File name of the template; it gets `script` and its SHA-256, `script_digest`.
        script: File name of the script.
        **values: Other variables of the template.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    code = (folder / script).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
    page = environment.get_template(template)
    return page.render(script=code, script_digest=digest, **values)


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
    return f'<img alt="{html.escape(alt)}" src="{data_url(pixels)}">'


def data_url(pixels: npt.NDArray[np.uint8], image_format: str = "PNG", **options: Any) -> str:
    """Return uint8[H, W, 3] as a `data:` URL of an image without metadata.

    Args:
        pixels: The image.
        image_format: PNG or JPEG.
        **options: How Pillow saves it.
    """
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, image_format, **options)
    data = base64.b64encode(out.getvalue()).decode("ascii")
    return f"data:image/{image_format.lower()};base64,{data}"
