"""`data check` and `cache check` on any storage."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from facepairs.beam.paths import files_below, parse_place, reading
from facepairs.beam.remote_index import index_place, remote_errors
from facepairs.beam.runner import choose_map
from facepairs.choices import Align
from facepairs.doctor.check import check_dataset, check_index
from facepairs.doctor.findings import DatasetReport
from facepairs.errors import BadData
from facepairs.pipeline.records.check import check_cache, check_files
from facepairs.pipeline.records.manifest import MANIFEST, CacheManifest, parse_manifest
from facepairs.support.progress import (
    ProgressCallback,
    ProgressFactory,
    ignore_phases,
    ignore_progress,
)


def check_dataset_at(
    data: str,
    align: Align = "landmarks",
    labels: bool = True,
    progress: ProgressFactory = ignore_phases,
    runner: str | None = None,
    beam_options: Sequence[str] = (),
) -> DatasetReport:
    """Check a folder of faces as `doctor.check.check_dataset` does.

    Args:
        data: A local folder, or one of `scheme://…`.
        align, labels, progress: As for `check_dataset`.
        runner: Name of the Beam runner that does the work, or None for threads.
        beam_options: Beam's own options, as on its command line.

    Raises:
        BadConfig: Beam is needed and missing, or does not know the runner or an option.
        BadData: The folder cannot be read or has no image.
    """
    ordered_map, root = choose_map(runner, beam_options), parse_place(data)
    if isinstance(root, Path):
        return check_dataset(root, align, labels, progress, ordered_map)
    with remote_errors(root):
        index = index_place(root)
        report = check_index(index, align, labels, progress, ordered_map, root.read_file)
    return replace(report, root=data)


def check_cache_at(cache: str, progress: ProgressCallback = ignore_progress) -> list[str]:
    """Check a local or remote cache as `pipeline.records.check.check_cache` does."""
    folder = parse_place(cache)
    if isinstance(folder, Path):
        return check_cache(folder, progress)
    path = folder / MANIFEST
    with remote_errors(folder):
        sizes = {entry.name: entry.size for entry in files_below(folder)}

    def read() -> CacheManifest:
        try:
            return parse_manifest(path.read_bytes(), str(path))
        except OSError as error:
            raise BadData(f"{path}: {error.strerror}") from None

    return check_files(folder, sizes, read, reading, progress)
