"""Files for TensorBoard's embedding projector: embeddings, names and thumbnails.

References:
    TensorBoard's `projector_config.pbtxt`, the text form of its message `ProjectorConfig`.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.support.atomic import atomic_file

THUMBNAIL_PX = 40  # a sheet of 500 is less than a thousand pixels wide
CONFIG, EMBEDDINGS = "projector_config.pbtxt", "vectors.tsv"
NAMES, SPRITE = "names.tsv", "thumbnails.png"


def write_projector(
    folder: Path,
    embeddings: npt.NDArray[np.float32],
    names: Sequence[tuple[str, str]],
    thumbnails: npt.NDArray[np.uint8],
) -> None:
    """Write the projector's files into the folder of a log.

    Args:
        folder: The log's folder.
        embeddings: float32[N, D].
        names: N times (person, image).
        thumbnails: uint8[N, px, px, 3].
    """
    with atomic_file(folder / EMBEDDINGS) as handle:
        handle.writelines("\t".join(f"{value:.5g}" for value in row) + "\n" for row in embeddings)
    with atomic_file(folder / NAMES) as handle:
        handle.write("person\timage\n")
        handle.writelines(f"{_cell(person)}\t{_cell(image)}\n" for person, image in names)
    _write_sprite(folder / SPRITE, thumbnails)
    size = f"single_image_dim: {THUMBNAIL_PX} single_image_dim: {THUMBNAIL_PX}"
    with atomic_file(folder / CONFIG) as handle:
        handle.write(
            'embeddings {\n  tensor_name: "validation people"\n'
            f'  tensor_path: "{EMBEDDINGS}"\n  metadata_path: "{NAMES}"\n'
            f'  sprite {{ image_path: "{SPRITE}" {size} }}\n}}\n'
        )


def _cell(text: str) -> str:
    """Return a text without tabs and line breaks, which separate cells and rows."""
    return " ".join(text.split())


def _write_sprite(path: Path, thumbnails: npt.NDArray[np.uint8]) -> None:
    """Write the thumbnails row by row into one square image, as the projector expects."""
    from PIL import Image

    columns = math.ceil(math.sqrt(len(thumbnails)))
    sheet = Image.new("RGB", (columns * THUMBNAIL_PX, columns * THUMBNAIL_PX))
    for number, pixels in enumerate(thumbnails):
        small = Image.fromarray(pixels).resize((THUMBNAIL_PX, THUMBNAIL_PX))
        place = number % columns * THUMBNAIL_PX, number // columns * THUMBNAIL_PX
        sheet.paste(small, place)
    with atomic_file(path, "wb") as handle:
        sheet.save(handle, "PNG", optimize=True)
