"""Data sets in the layouts of Kaggle and Hugging Face, of drawn people."""

import json
import zipfile
from pathlib import Path


def kaggle_archive(faces: Path, out: Path) -> Path:
    """Write a zip with the layout of `jessicali9530/lfw-dataset`."""
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("people.csv", "name,images\n")
        for photo in sorted(faces.rglob("*.jpg")):
            folder = "lfw-deepfunneled/lfw-deepfunneled"
            archive.write(photo, f"{folder}/{photo.relative_to(faces).as_posix()}")
    return out


def hugging_face_parquet(faces: Path, out: Path, with_paths: bool = True) -> Path:
    """Write a parquet file with images in it and labels whose names are in its metadata."""
    import pyarrow
    from pyarrow import parquet

    names = sorted(path.name for path in faces.iterdir())
    photos = sorted(faces.rglob("*.jpg"))
    images = [
        {"bytes": photo.read_bytes(), "path": photo.name if with_paths else None}
        for photo in photos
    ]
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    labels = [names.index(photo.parent.name) for photo in photos]
    table = pyarrow.table({"image": pyarrow.array(images, kind), "label": labels})
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(table.replace_schema_metadata(metadata), out, row_group_size=30)
    return out
