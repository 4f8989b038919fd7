"""The model card of a bundle: its manifest in words; the text is in `model_card.md.jinja`.

References:
    Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
"""

from pathlib import Path

from facepairs.bundles.manifest import Manifest


def model_card(manifest: Manifest) -> str:
    """Return the card as Markdown; what the manifest does not hold is left out."""
    import jinja2  # only those who write bundles need it

    text = Path(__file__).with_name("model_card.md.jinja").read_text(encoding="utf-8")
    template = jinja2.Template(text, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    card: str = template.render(m=manifest)
    return card
