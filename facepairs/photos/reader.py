"""The one way from a photo to a face: read, hash, look up, find, crop, embed.

A photo is read once for all of this; `group` reads it again to measure the sharpness of a face and
to cut it out. What the cache of photos knows of its content is not computed again: the faces, their
hints, and the embedding by the network.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeGuard

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.errors import BadImage, NoFace
from facepairs.photos.crop import Crop, CropSpec, crop_photo
from facepairs.photos.decode import is_tf_decodable, orientation_of
from facepairs.photos.detector import MIN_FACE_PX, locate_in_photo, search_photo
from facepairs.photos.face_sample import FaceRef, FaceSample, no_such_face
from facepairs.photos.frame import Face, crop_face
from facepairs.photos.hints import HINTS_SPEC, gray_of, hints_of_face, hints_of_whole, sharpness
from facepairs.photos.photo import ImageSource, Photo, content_of, open_photo, read_checked
from facepairs.photos.photo_record import PhotoRecord, large_enough, record_kind

if TYPE_CHECKING:
    from facepairs.photos.photo_cache import PhotoCache

Source = ImageSource | FaceRef | FaceSample
Named = tuple[str, Source]
"""The name of a photo in messages, and its path, content, image, or a face that was found."""


class Network(Protocol):
    """What the reader needs of a network; `bundles.scorer.Scorer` is one."""

    @property
    def cache_key(self) -> str:
        """The name of its embeddings in the cache; "" if none are kept."""

    def represent(self, crops: Crop) -> npt.NDArray[Any]:
        """Return what is compared of each of uint8[N, crop_px, crop_px, 3], such as embeddings."""


@dataclass(frozen=True)
class PhotoReader:
    """Reads photos as a network sees them, and embeds them; threads and processes can share it.

    Attributes:
        aligned: Whether faces are found; if not, images are used whole.
        framing: The crop that the network takes; None: faces are found, but not cropped.
        network: The network; None where crops are all that is needed.
        cache: Where files given by their paths are looked up, and what is found is stored; None
            for nowhere.
        keep: Whether anything is stored there.
        all_hints: Look for hints of the faces behind the first, too.
        open: Returns the content of a file; may raise OSError.
    """

    aligned: bool
    framing: CropSpec | None = None
    network: Network | None = None
    cache: "PhotoCache | None" = None
    keep: bool = True
    all_hints: bool = False
    open: Callable[[Any], bytes] = content_of

    @cached_property
    def _cache_key(self) -> bytes:
        """The key of embeddings in the cache: network, crop, detector; b"" if none are kept."""
        if not (self.network and self.network.cache_key):
            return b""
        parts = self.network.cache_key, repr(self.framing), record_kind(self.aligned)
        return hashlib.sha256("\0".join(parts).encode()).digest()[:16]

    def read(self, photos: Iterable[Named], every: bool = False) -> list[FaceSample]:
        """Return the faces of some photos with their embeddings, or with crops without a network.

        What is wrong with a photo is part of its sample.

        Args:
            photos: A `FaceRef` says which face is used; of others, it is the most prominent.
            every: Return every face that is large enough instead.
        """
        return self.embed([face for photo in photos for face in self.find(*photo, every)])

    def records(self, names: Iterable[Any]) -> list[PhotoRecord]:
        """Return the records of some files; what is wrong with a file is part of its record."""
        return [sample.to_record() for sample in self.read((str(name), name) for name in names)]

    def find(self, name: str, source: Source, every: bool = False) -> list[FaceSample]:
        """Read a photo and return its faces, each with its crop or an embedding that is known."""
        if isinstance(source, FaceSample):
            return [source]
        try:
            return self.see(*self.fetch(name, source), every)
        except BadImage as error:
            return [FaceSample(name, error.kept())]

    def fetch(self, name: str, source: ImageSource | FaceRef) -> tuple[FaceSample, ImageSource]:
        """Read and hash a photo, which is neither looked up nor opened yet; raises BadImage.

        Returns:
            What is known of it so far, and the file's content, or the image if it is in memory.
        """
        content = read_checked(source, self.open, name) if _is_file(source) else source
        digest = hashlib.sha256(content).digest() if isinstance(content, bytes) else b""
        number = source.number if isinstance(source, FaceRef) else 1
        has_path = isinstance(source, str | os.PathLike)  # what is found in others is not kept
        return FaceSample(name, digest=digest, number=number, is_new=has_path), content

    def see(
        self, sample: FaceSample, content: ImageSource, every: bool = False, precise: bool = False
    ) -> list[FaceSample]:
        """Return the faces of a photo that was read, as `find` does.

        Args:
            sample: The photo, from `fetch`.
            content: Its content, likewise.
            every: Return every face that is large enough.
            precise: Locate all faces as precisely as the first; behind them come small faces of a
                large photo.
        """
        name, digest, number = sample.name, sample.digest, sample.number
        photo = cache(partial(open_photo, content, name))  # opened once, if at all
        store = self.cache if sample.is_new else None
        try:
            known = store.record(digest, self.aligned) if store else None
            record = known or inspect(photo(), self.aligned, digest)
            if precise and record.usable:
                record = locate(photo(), record)
            sample = replace(sample, record=record, is_new=store is not None and not known)
            if self.framing is None:
                return [sample]
            faces = list(enumerate(record.numbered_faces(name), 1))
            chosen = faces if every else faces[number - 1 : number]
            if not chosen:
                raise NoFace(f"{name}: {no_such_face(number, len(faces))}")
            lookup = store if known else None
            return [self._sample(sample, *face, photo, lookup) for face in chosen]
        except BadImage as error:
            return [replace(sample, error=error.kept())]

    def detect(self, name: str, source: ImageSource, every: bool = True) -> list[FaceSample]:
        """Return the faces of a photo with crops and hints; nothing is looked up or stored.

        Args:
            name: The name of the photo in messages.
            source: The photo.
            every: Return all faces, located as precisely as the first; behind them come small
                faces of a large photo. Otherwise the most prominent face alone.

        Raises:
            BadImage: The photo cannot be read.
            NoFace: No face is found.
            TooSmallFace: Every face is smaller than MIN_FACE_PX.
        """
        reader = replace(self, cache=None, all_hints=True)
        sample, content = reader.fetch(name, source)
        faces = reader.see(replace(sample, number=1), content, every, precise=every)
        if faces[0].error:
            raise faces[0].error
        return faces

    def embed(self, samples: Sequence[FaceSample]) -> list[FaceSample]:
        """Embed all faces that have crops, in one call, and store in the cache what is new.

        Without a network the crops stay.
        """
        done = list(samples)
        if self.network and (crops := [face.crop for face in done if face.crop is not None]):
            rows = iter(self.network.represent(np.stack(crops)))
            done = [
                face if face.crop is None else replace(face, crop=None, embedding=next(rows))
                for face in done
            ]
        new = [face for face in done if face.is_new]
        if self.cache and self.keep and new:
            records = {face.digest: face.record for face in new if face.record}
            found = {
                (face.digest, face.number): face.embedding
                for face in new
                if self._cache_key and face.embedding is not None
            }
            self.cache.put(records.values(), self._cache_key, found)
        return done

    def sharpness(self, faces: Sequence[tuple[FaceSample, Path]]) -> list[float]:
        """Return the sharpness of faces, see `hints.sharpness`; the cache keeps it.

        Args:
            faces: Faces of photos, and the paths of their photos, read if it is not known.
        """
        key = hashlib.sha256(f"sharpness {record_kind(True)}".encode()).digest()[:16]
        values, new = [], {}
        opened = lru_cache(1)(open_photo)  # the faces of a photo follow each other
        for sample, source in faces:
            place = sample.digest, sample.number
            known = self.cache.embedding(key, *place) if self.cache else None
            if known is None:
                assert sample.face
                square = crop_face(opened(source, sample.name), sample.face.landmarks, HINTS_SPEC)
                known = new[place] = np.array([sharpness(gray_of(square))], np.float32)
            values.append(float(known[0]))
        if self.cache and self.keep and new:
            self.cache.put([], key, new)
        return values

    def _sample(
        self,
        sample: FaceSample,
        number: int,
        face: Face | None,
        photo: Callable[[], Photo],
        known: "PhotoCache | None",
    ) -> FaceSample:
        """Return one face of a photo with its hints, and its embedding if known, or its crop."""
        assert self.framing
        hints = sample.record.hints if sample.record and number == 1 else ()
        if face and number > 1 and self.all_hints:
            hints = hints_of_face(photo(), face)
        sample = replace(sample, number=number, face=face, hints=hints)
        if known and self._cache_key:
            embedding = known.embedding(self._cache_key, sample.digest, number)
            if embedding is not None:
                return replace(sample, embedding=embedding)
        crop = _crop(photo(), face, self.framing)
        is_new = sample.is_new or (known is not None and self._cache_key != b"")
        return replace(sample, crop=crop, is_new=is_new)


def inspect(photo: Photo, aligned: bool, digest: bytes) -> PhotoRecord:
    """Return the record of a photo, which is decoded for it.

    Args:
        photo: What `open_photo` returned.
        aligned: Find faces; without it, the whole image is looked at.
        digest: The SHA-256 of the file; b"" of an image in memory.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
        ImageProblem: The photo is damaged; or it is nearly black, without a face.
    """
    found = search_photo(photo) if aligned else []
    usable = large_enough(found)
    hints = hints_of_face(photo, usable[0]) if usable else () if aligned else hints_of_whole(photo)
    width_px, height_px = photo.upright_px
    return PhotoRecord(
        width_px=width_px,
        height_px=height_px,
        tf_decodable=is_tf_decodable(photo),
        orientation=orientation_of(photo.opened) if photo.opened else 1,
        faces=tuple(found) if aligned else None,
        hints=hints,
        digest=digest,
    )


def locate(photo: Photo, record: PhotoRecord) -> PhotoRecord:
    """Return a record with its faces located precisely, and more small ones; see `detect`."""
    usable = record.usable
    located = locate_in_photo(photo, usable)
    precise = [
        new if new.side_px >= MIN_FACE_PX else old  # else the numbers behind it would change
        for old, new in zip(usable, located, strict=False)
    ]
    tiny = [face for face in record.faces or () if face.side_px < MIN_FACE_PX]
    small = large_enough(located[len(usable) :])
    return msgspec.structs.replace(record, faces=(*precise, *tiny, *small))


def _crop(photo: Photo, face: Face | None, spec: CropSpec) -> Crop:
    return crop_photo(photo, spec) if face is None else crop_face(photo, face.landmarks, spec)


def _is_file(source: object) -> TypeGuard[str | os.PathLike[str] | bytes | IO[bytes]]:
    return isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read")
