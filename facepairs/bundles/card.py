"""The model card of a bundle: its manifest in words; the text is in `model_card.md.jinja`.

References:
    Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
"""

from functools import cache
from pathlib import Path
from typing import Any

from facepairs.bundles.error_table import ErrorTable
from facepairs.bundles.manifest import Manifest


def model_card(manifest: Manifest, errors: ErrorTable | None = None) -> str:
    """Return the card as Markdown; what neither the manifest nor the errors hold is left out."""
    card: str = _template().render(m=manifest, e=errors)
    return card


@cache  # compiling it takes a tenth of a second, and a training writes two cards
def _template() -> Any:
    import jinja2  # only those who write bundles need it

    text = Path(__file__).with_name("model_card.md.jinja").read_text(encoding="utf-8")
    return jinja2.Template(text, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
