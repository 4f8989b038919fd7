"""File systems in memory for Beam: `mem://`, a store of objects, and `memdir://`, with folders.

The store lists whatever begins alike, as GCS and S3 do; the other lists one folder a call, files
and folders alike, and does not rename over a file, as HDFS.
"""

import io
from typing import ClassVar

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

FILES: dict[str, bytes] = {}


class _Written(io.BytesIO):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            FILES[self._path] = self.getvalue()
        super().close()


class MemoryStore(FileSystem):
    @classmethod
    def scheme(cls):
        return "mem"

    def has_dirs(self):
        return False

    def join(self, basepath, *paths):
        return "/".join((basepath.rstrip("/"), *paths))

    def split(self, path):
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path):
        raise NotImplementedError("a store has no folders")

    def _list(self, dir_or_prefix):
        for path in sorted(FILES):
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(FILES[path]))

    def create(self, path, mime_type="", compression_type="auto"):
        assert compression_type == "uncompressed"
        return _Written(path)

    def open(self, path, mime_type="", compression_type="auto"):
        assert compression_type == "uncompressed"
        if path not in FILES:
            raise BeamIOError(f"{path} not found")
        return io.BytesIO(FILES[path])

    def copy(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            FILES[target] = FILES[source]

    def rename(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            FILES[target] = FILES.pop(source)

    def exists(self, path):
        return path in FILES

    def size(self, path):
        return len(FILES[path])

    def last_updated(self, path):
        return 0.0

    def metadata(self, path):
        return FileMetadata(path, self.size(path))

    def delete(self, paths):
        for path in paths:
            del FILES[path]


class MemoryFolders(MemoryStore):
    folders: ClassVar[set[str]] = set()

    @classmethod
    def scheme(cls):
        return "memdir"

    def has_dirs(self):
        return True

    def mkdirs(self, path):
        if path in self.folders:
            raise BeamIOError(f"{path} exists")
        self.folders.add(path)

    def exists(self, path):
        return path in FILES or any(name.startswith(f"{path}/") for name in (*FILES, *self.folders))

    def _list(self, dir_or_prefix):
        inside = [path for path in FILES if path.startswith(f"{dir_or_prefix}/")]
        names = {path[len(dir_or_prefix) + 1 :].split("/")[0] for path in inside}
        for name in sorted(names):
            path = f"{dir_or_prefix}/{name}"
            yield FileMetadata(path, len(FILES.get(path, b"")))

    def rename(self, source_file_names, destination_file_names):
        for target in destination_file_names:
            assert target not in FILES, "HDFS does not rename over a file"
        super().rename(source_file_names, destination_file_names)

    def delete(self, paths):
        for path in paths:
            for name in [n for n in FILES if n == path or n.startswith(f"{path}/")]:
                del FILES[name]
