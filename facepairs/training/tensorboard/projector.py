"""Files for TensorBoard's embedding projector: vectors, whose they are, and thumbnails.

Source: TensorBoard's `projector_config.pbtxt`, text form of `ProjectorConfig`.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.support.atomic import atomic_file

THUMBNAIL_PX = 40  # of 500, a sheet below a thousand pixels wide
CONFIG, VECTORS, NAMES, SPRITE = (
    "projector_config.pbtxt",
    "vectors.tsv",
    "names.tsv",
    "thumbnails.png",
)


def write_projector(
    folder: Path,
    vectors: npt.NDArray[np.float32],
    names: Sequence[tuple[str, str]],
    thumbnails: npt.NDArray[np.uint8] | None,
) -> None:
    """Write the projector's files into a log's folder.

    `vectors` float32[N, D]; `names` are (person, image) each; `thumbnails` uint8[N, px, px, 3] or
    None for points alone.
    """
    with atomic_file(folder / VECTORS) as handle:
        handle.writelines("\t".join(f"{value:.5g}" for value in row) + "\n" for row in vectors)
    with atomic_file(folder / NAMES) as handle:
        handle.write("person\timage\n")
        handle.writelines(f"{_cell(person)}\t{_cell(image)}\n" for person, image in names)
    sprite = ""
    if thumbnails is not None:
        _write_sprite(folder / SPRITE, thumbnails)
        size = f"single_image_dim: {THUMBNAIL_PX} single_image_dim: {THUMBNAIL_PX}"
        sprite = f'  sprite {{ image_path: "{SPRITE}" {size} }}\n'
    with atomic_file(folder / CONFIG) as handle:
        handle.write(
            'embeddings {\n  tensor_name: "validation people"\n'
            f'  tensor_path: "{VECTORS}"\n  metadata_path: "{NAMES}"\n{sprite}}}\n'
        )


def _cell(text: str) -> str:
    return " ".join(text.split())


def _write_sprite(path: Path, thumbnails: npt.NDArray[np.uint8]) -> None:
    """Lay thumbnails out row by row in a square, as the projector expects."""
    from PIL import Image

    columns = math.ceil(math.sqrt(len(thumbnails)))
    sheet = Image.new("RGB", (columns * THUMBNAIL_PX, columns * THUMBNAIL_PX))
    for number, pixels in enumerate(thumbnails):
        small = Image.fromarray(pixels).resize((THUMBNAIL_PX, THUMBNAIL_PX))
        place = number % columns * THUMBNAIL_PX, number // columns * THUMBNAIL_PX
        sheet.paste(small, place)
    with atomic_file(path, "wb") as handle:
        sheet.save(handle, "PNG", optimize=True)
