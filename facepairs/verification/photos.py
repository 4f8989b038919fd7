"""Read photos for a network: each one once, whatever the command.

A photo is read and hashed. What the cache of photos knows of its content is not computed again: the
faces, their hints, and the embedding by this network.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from facepairs.bundles.model import Model
from facepairs.bundles.scorer import ScoreArray, Scorer
from facepairs.data.index import find_file
from facepairs.errors import BadImage
from facepairs.photos.align import AlignedFace, box_of, crop_known
from facepairs.photos.crop import Crop
from facepairs.photos.inspection import inspect
from facepairs.photos.photo import (
    ImageSource,
    content_of,
    open_photo,
    read_checked,
    read_image_file,
)
from facepairs.photos.photo_record import PhotoRecord, large_enough, record_kind
from facepairs.photos.problem import ImageProblem

if TYPE_CHECKING:
    from facepairs.photos.photo_cache import PhotoCache


@dataclass(frozen=True)
class FaceInPhoto(os.PathLike[str]):
    """A photo of which another face is used than the most prominent one.

    Attributes:
        path: The photo.
        face: Which of the faces that are large enough, from 1 for the most prominent.
    """

    path: Path
    face: int

    def __fspath__(self) -> str:
        return str(self.path)


Source = ImageSource | AlignedFace
Named = tuple[str, Source]
"""What messages call a photo, and its path, content, image, or a face that was found."""


class SeenPhoto(NamedTuple):
    """What was found in one photo.

    Attributes:
        name: What messages call it.
        error: Why it cannot be used, else None.
        digest: The SHA-256 of its file; b"" where it has none, or was not read.
        record: What it shows; None where that is not known.
        crop: What the network sees: uint8[crop_px, crop_px, 3]; None where it is not needed.
        embedding: float32[D]; None where it is not needed.
        face: Which of the faces that are large enough it is, from 1 for the most prominent.
        new: Something was found just now that the cache may remember.
    """

    name: str
    error: BadImage | None = None
    digest: bytes = b""
    record: PhotoRecord | None = None
    crop: Crop | None = None
    embedding: ScoreArray | None = None
    face: int = 1
    new: bool = False

    def to_record(self) -> PhotoRecord:
        """Return the record; of a photo that cannot be read, it says what the problem is."""
        if self.record is None and isinstance(self.error, ImageProblem):
            return PhotoRecord(self.error.problem, self.error.reason, digest=self.digest)
        return self.record or PhotoRecord()

    @property
    def box(self) -> list[int] | None:
        """The square around the face, see `faces.align.box_of`; None without one."""
        faces = large_enough(self.record.found) if self.record else []
        return box_of(faces[self.face - 1]) if self.face <= len(faces) else None


@dataclass(frozen=True)
class PhotoFolder:
    """The photos below a folder of this machine, by their names in a list; picklable.

    Attributes:
        root: The folder that names count from.
    """

    root: Any = Path()

    def read(self, name: str) -> bytes:
        """Return the content of a photo; may raise OSError."""
        return read_image_file(find_file(self.root, name))

    def title(self, name: str) -> str:
        """Return what messages call a photo."""
        return str(Path(self.root, name))


@dataclass(frozen=True)
class PhotoReader:
    """Reads photos as a network sees them, and embeds them; threads and processes can share it.

    Attributes:
        model: Whose network it is.
        scorer: The network.
        cache: Where files given by name are looked up, and what is found in them is stored; None
            for nowhere.
        keep: Whether anything is stored there.
        open: Returns the content of a file; may raise OSError.
    """

    model: Model
    scorer: Scorer
    cache: "PhotoCache | None" = None
    keep: bool = True
    open: Callable[[Any], bytes] = content_of

    @cached_property
    def network(self) -> bytes:
        """Names what decides the embedding of a photo: network, crop and detector."""
        model = self.model
        embedder = model.network.embedder_sha256
        parts = embedder, repr(model.framing), record_kind(model.aligned)
        return hashlib.sha256("\0".join(parts).encode()).digest()[:16]

    @property
    def embeds(self) -> bool:
        """Whether the network has embeddings; else it takes the crops of two faces."""
        return self.model.network.kind == "embedding"

    def read(self, photos: Sequence[Named]) -> list[SeenPhoto]:
        """Return what was found in some photos, ready for `score`."""
        return self.complete([self.see(*photo)[0] for photo in photos])

    def complete(self, photos: Sequence[SeenPhoto]) -> list[SeenPhoto]:
        """Embed all faces that `see` returned with their crops; let the cache remember what is new.

        The crops stay where the network has no embeddings.
        """
        seen = list(photos)
        if self.embeds and (crops := [one.crop for one in seen if one.crop is not None]):
            rows = iter(self.scorer.embed(np.stack(crops)))
            seen = [
                one if one.crop is None else one._replace(crop=None, embedding=next(rows))
                for one in seen
            ]
        new = [one for one in seen if one.new]
        if self.cache and self.keep and new:
            records = [one.record for one in new if one.record]
            found = {
                (one.digest, one.face): one.embedding for one in new if one.embedding is not None
            }
            self.cache.put(records, self.network if found else b"", found)
        return seen

    def score(self, left: Sequence[SeenPhoto], right: Sequence[SeenPhoto]) -> ScoreArray:
        """Score faces that `complete` returned with others, pair by pair: float32[N]."""
        if self.embeds:
            rows = (np.stack([one.embedding for one in side]) for side in (left, right))  # type: ignore[misc]
            return self.scorer.compare(*rows)
        crops = (np.stack([one.crop for one in side]) for side in (left, right))  # type: ignore[misc]
        return self.scorer.score_pairs(*crops)

    def see(self, name: str, source: Source, every: bool = False) -> list[SeenPhoto]:
        """Return what was found in a photo: with its crop, or with an embedding that is known.

        Args:
            name: What messages call it.
            source: A `FaceInPhoto` says which face is used; of others, it is the most prominent.
            every: Return every face that is large enough instead.

        Returns:
            One face, or why there is none; with `every` perhaps more.
        """
        if isinstance(source, AlignedFace):
            return [SeenPhoto(name, crop=source.crop)]
        is_path = isinstance(source, str | os.PathLike)
        face = source.face if isinstance(source, FaceInPhoto) else 1
        try:
            content = read_checked(source, self.open, name) if _is_file(source) else source
        except BadImage as error:
            return [SeenPhoto(name, error.kept())]
        return self.see_content(name, content, is_path, None if every else face)

    def see_content(
        self, name: str, content: ImageSource, kept: bool, face: int | None = 1
    ) -> list[SeenPhoto]:
        """Return what was found in the content of a photo, as `see` does.

        Args:
            name: What messages call it.
            content: Its file, or an image.
            kept: Whether it may be in the cache, and may be stored there.
            face: Which of the faces that are large enough, from 1 for the most prominent; None for
                every one.
        """
        model, cache = self.model, self.cache if kept else None
        digest = hashlib.sha256(content).digest() if isinstance(content, bytes) else b""
        seen, photo, found = SeenPhoto(name, digest=digest, face=face or 1), None, []
        try:
            record = cache.record(digest, model.aligned) if cache else None
            known = record is not None
            if record is None:
                photo = open_photo(content, name)
                record = inspect(photo, model.aligned, digest)
            seen = seen._replace(record=record, new=kept and not known)
            last = max(1, len(large_enough(record.found)))
            for number in range(1, last + 1) if face is None else (face,):
                one = seen._replace(face=number)
                if cache and known and self.embeds:
                    embedding = cache.embedding(self.network, digest, number)
                    if embedding is not None and len(embedding) == self.scorer.width:
                        found.append(one._replace(embedding=embedding))
                        continue
                photo = photo or open_photo(content, name)  # once for all faces
                crop = crop_known(photo, record, model.framing, number)
                found.append(one._replace(crop=crop, new=one.new or (kept and self.embeds)))
            return found
        except BadImage as error:
            return [seen._replace(error=error.kept())]


def _is_file(source: ImageSource) -> TypeGuard[str | os.PathLike[str] | bytes | IO[bytes]]:
    return isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read")
