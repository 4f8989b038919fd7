"""`data check` and `cache check` for folders on remote storage."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from facepairs.beam.paths import BeamPath, copy_from, files_below
from facepairs.beam.remote_index import index_place
from facepairs.data.doctor import DatasetReport, check_index
from facepairs.errors import BadData
from facepairs.images.check import Look, inspect_bytes
from facepairs.pipeline.records.manifest import (
    MANIFEST,
    RecordShard,
    check_contents,
    compare_sizes,
    content_problem,
    parse_manifest,
)
from facepairs.support.atomic import scratch_folder
from facepairs.support.parallel import OrderedMap, thread_map
from facepairs.support.progress import ProgressCallback, ignore_progress


@dataclass(frozen=True)
class InspectRemoteFiles:
    """Inspects files below a remote folder by name, as `images.check.InspectFiles` does locally."""

    root: BeamPath
    thorough: bool

    def __call__(self, names: Iterable[str]) -> list[Look]:
        """Download and inspect each file; names are paths below `root`."""
        return [self._inspect(self.root / name) for name in names]

    def _inspect(self, file: BeamPath) -> Look:
        try:
            return inspect_bytes(file.read_bytes(), self.thorough)
        except OSError as error:
            return Look("unreadable", f"cannot be read ({error.strerror})")


def check_remote_dataset(
    root: BeamPath,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
) -> DatasetReport:
    """Check a remote folder of faces as `data.doctor.check_dataset` checks a local one."""
    index = index_place(root)
    report = check_index(index, progress, ordered_map, InspectRemoteFiles(root, thorough=True))
    return replace(report, root=str(root))


def check_remote_cache(folder: BeamPath, progress: ProgressCallback = ignore_progress) -> list[str]:
    """Check a remote cache as `records.manifest.check_cache` checks a local one."""
    path = folder / MANIFEST
    try:
        manifest = parse_manifest(path.read_bytes(), str(path))
        sizes = {entry.name: entry.size for entry in files_below(folder)}
    except BadData as error:
        return [str(error)]
    except OSError as error:
        return [f"{path}: {error.strerror}; give the folder that facepairs cache build made"]
    problems = compare_sizes(sizes, manifest)
    check_contents(manifest, problems, lambda shard: _content_problem(folder, shard), progress)
    return [f"{folder / name}: {text}" for name, text in sorted(problems.items())]


def _content_problem(folder: BeamPath, shard: RecordShard) -> str:
    with scratch_folder("facepairs-shard") as local:
        try:
            copy_from(folder / shard.name, local / shard.name)
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        return content_problem(local / shard.name, shard)
