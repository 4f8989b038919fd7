"""The photos behind scored pairs, found below a folder by the names that a scores file gives."""

from dataclasses import dataclass
from pathlib import Path

from facepairs.errors import BadData
from facepairs.evaluation.scores import Scores


@dataclass(frozen=True)
class Photos:
    """Photos by name; `missing` are names that lead to no file below the folder."""

    root: Path
    found: dict[str, Path]
    missing: tuple[str, ...]

    @classmethod
    def below(cls, data: Path | None, scores: Scores) -> "Photos | None":
        """Look up the photos of scored pairs; None without a folder, or without names.

        A name that leads out of the folder counts as missing: a scores file from elsewhere must not
        bring other files of this machine into a report. Raises BadData where not one is there.
        """
        if data is None or not scores.left[0]:
            return None
        if not data.is_dir():
            raise BadData(f"{data}: no such folder; give the one that the scores' names are below")
        root = data.resolve()
        found, missing = {}, []
        for name in sorted({*scores.left, *scores.right}):
            path = _inside(root, name)
            if path is None:
                missing.append(name)
            else:
                found[name] = path
        if not found:
            raise BadData(
                f"{data}: holds none of the photos that the scores name, such as {missing[0]}; "
                "give the folder that these names are below"
            )
        return cls(data, found, tuple(missing))

    def paths(self) -> dict[str, Path]:
        """Give all photos by name; raises BadData where one is missing."""
        if self.missing:
            raise BadData(
                f"{len(self.missing):,} of {len(self.found) + len(self.missing):,} photos are not "
                f"below {self.root}, such as {self.missing[0]}"
            )
        return self.found


def _inside(root: Path, name: str) -> Path | None:
    try:
        path = root / name.replace("\\", "/")
        real = path.resolve()
        return path if root in path.parents and ".." not in path.parts and real.is_file() else None
    except (OSError, ValueError):
        return None
