"""Data sets in the layouts of Kaggle, scikit-learn and Hugging Face, of drawn people."""

import csv
import io
import json
import zipfile
from pathlib import Path

PAIRS = {  # official lists of the first drawn people: genuine pairs, then impostors
    "pairs.txt": "2\t1\n{0}\t1\t2\n{0}\t1\t{1}\t1\n{2}\t1\t3\n{2}\t4\t{3}\t2\n",
    "pairsDevTest.txt": "1\n{0}\t1\t2\n{1}\t1\t{0}\t2\n",
    "pairsDevTrain.txt": "2\n{2}\t1\t2\n{3}\t1\t4\n{2}\t1\t{3}\t1\n{3}\t2\t{2}\t3\n",
    "people.txt": "2\n2\n{0}\t4\n{1}\t4\n1\n{2}\t4\n",
    "peopleDevTest.txt": "2\n{0}\t4\n{1}\t4\n",
    "peopleDevTrain.txt": "2\n{2}\t4\n{3}\t4\n",
}


def official_lists(faces: Path) -> dict[str, str]:
    """Return lists in LFW's format for a folder of at least four people."""
    names = sorted(path.name for path in faces.iterdir())
    return {name: text.format(*names) for name, text in PAIRS.items()}


def kaggle_archive(faces: Path, out: Path) -> Path:
    """Write a zip with the files and headers of `jessicali9530/lfw-dataset`."""
    lists = {
        name.removesuffix(".txt"): [line.split("\t") for line in text.splitlines()]
        for name, text in official_lists(faces).items()
    }
    # Sets of people are separated by rows without a name.
    tables = {"people": [["name", "images"], *lists["people"][2:]]}
    tables["people"] = [row if len(row) == 2 else ["", ""] for row in tables["people"]]
    tables["pairs"] = [["name", "imagenum1", "imagenum2", ""], *lists["pairs"][1:]]
    for part in ("DevTest", "DevTrain"):
        pairs = lists[f"pairs{part}"][1:]
        genuine, impostor = ([row for row in pairs if len(row) == cells] for cells in (3, 4))
        tables[f"matchpairs{part}"] = [["name", "imagenum1", "imagenum2"], *genuine]
        tables[f"mismatchpairs{part}"] = [["name", "imagenum1", "name", "imagenum2"], *impostor]
        tables[f"people{part}"] = [["name", "images"], *lists[f"people{part}"][1:]]
    with zipfile.ZipFile(out, "w") as archive:
        for name, rows in tables.items():
            width = len(rows[0])
            text = io.StringIO()
            csv.writer(text).writerows(row + [""] * (width - len(row)) for row in rows)
            archive.writestr(f"{name}.csv", text.getvalue())
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
