"""Invented people in LFW's layout, with `people.txt` and `pairs.txt` as View 2 has them."""

from pathlib import Path

FOLDS = 4


def write_lists(faces: Path, lists: Path, folds: int = FOLDS) -> None:
    """Deal the people of a folder out to sets, and pair everybody of a set: half of it genuine."""
    counts = {p.name: len(list(p.iterdir())) for p in sorted(faces.iterdir()) if p.is_dir()}
    sets = [sorted(counts)[k::folds] for k in range(folds)]
    people, pairs = [str(folds)], []
    for names in sets:
        people += [str(len(names)), *(f"{name}\t{counts[name]}" for name in names)]
        genuine = [(n, i, i + 1) for n in names for i in range(1, counts[n])]
        others = names[1:] + names[:1]
        impostors = [
            (a, i, b, i)
            for a, b in zip(names, others, strict=True)
            for i in range(1, min(counts[a], counts[b]) + 1)
        ]
        pairs.append((genuine, impostors))
    each = min(len(part) for fold in pairs for part in fold)
    lines = [f"{folds}\t{each}"]
    lines += ["\t".join(map(str, row)) for fold in pairs for part in fold for row in part[:each]]
    lists.mkdir(parents=True, exist_ok=True)
    for name, rows in (("people.txt", people), ("pairs.txt", lines)):
        (lists / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
