"""Enrol photos: hash them, find the face, judge its quality, embed it, and report the result."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

import msgspec

from facepairs.bundles.scorer import ScoreArray
from facepairs.errors import BadImage
from facepairs.photos.align import chosen_face, known_face
from facepairs.photos.hints import Hint, face_hints
from facepairs.photos.photo import content_of, open_photo, read_checked
from facepairs.verification.photos import FaceInPhoto, PhotoReader, SeenPhoto
from facepairs.verification.verifier import Verifier

DEFAULT_FPIR = 0.01
POOR = ("small", "blurred", "dark", "bright", "profile", "covered")
"""Hints for which a photo is not enrolled: every later comparison would suffer from it."""


class Refused(msgspec.Struct, frozen=True):
    """A photo that was not enrolled, and why."""

    person: str
    photo: str
    error: str


@dataclass
class Enrolment:
    """The result of enrolling some photos.

    Attributes:
        enrolled: Number of photos that were added.
        known: Number of photos that were already enrolled for the same person.
        refused: Photos that cannot be used, or are enrolled for another person.
        unnamed: Number of people who were left out because they have no name yet.
        renamed: Old and new names of people whose folders were renamed.
    """

    enrolled: int = 0
    known: int = 0
    refused: list[Refused] = field(default_factory=list)
    unnamed: int = 0
    renamed: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        return dict(msgspec.to_builtins(self))


class Photo(NamedTuple):
    """A photo to enrol: the person, a name for messages, and the file or content.

    `face` is the number of the face, from 1 for the most prominent.
    """

    person: str
    name: str
    source: os.PathLike[str] | bytes | IO[bytes]
    face: int = 1


class ReadPhoto(NamedTuple):
    """A photo after reading: with a problem, the person it is enrolled for, or an embedding."""

    person: str
    photo: str
    digest: bytes = b""
    owner: str | None = None
    vector: ScoreArray | None = None
    problem: BadImage | None = None
    put_off: bool = False


@dataclass(frozen=True)
class EnrolPhotos:
    """Reads and embeds some photos in one call of the network; threads share it.

    Attributes:
        verifier: The model that embeds.
        owner: Returns the person for whom the photo of a SHA-256 is already enrolled.
        any_quality: Also take photos that are hard to judge.
        put_off: Do not choose among several faces yet.
    """

    verifier: Verifier
    owner: Callable[[bytes], str | None]
    any_quality: bool = False
    put_off: bool = False

    def __call__(self, photos: Sequence[Photo]) -> list[ReadPhoto]:
        """Read each photo and embed its face."""
        # Reads the photo cache but stores nothing there: it would outlive the gallery's entry.
        reader = self.verifier.reader(keep=False)
        read, seen = zip(*(self._read(reader, photo) for photo in photos), strict=True)
        embedded = reader.complete(seen)
        return [
            result._replace(vector=found.embedding)
            for result, found in zip(read, embedded, strict=True)
        ]

    def _read(self, reader: PhotoReader, photo: Photo) -> tuple[ReadPhoto, SeenPhoto]:
        """Return the photo, and its face if it is to be embedded."""
        person, name, source, _ = photo
        result, nothing = ReadPhoto(person, name), SeenPhoto(name)
        try:
            data = read_checked(source, content_of, name)
            digest = hashlib.sha256(data).digest()
            result = result._replace(digest=digest, owner=self.owner(digest))
            if result.owner is not None:
                return result, nothing
            seen, hints = self._see(reader, data, photo)
            if self.put_off and seen.record and len(seen.record.found) > 1:
                return result._replace(put_off=True), nothing
            poor = [hint.text for hint in hints if hint.kind in POOR]
            if poor and not self.any_quality:
                advice = "use a better photo, or take any quality (--any-quality, any_quality)"
                raise BadImage(f"{name}: {'; '.join(poor)}; {advice}")
        except BadImage as error:
            return result._replace(problem=error.kept()), nothing
        return result, seen

    def _see(
        self, reader: PhotoReader, data: bytes, photo: Photo
    ) -> tuple[SeenPhoto, tuple[Hint, ...]]:
        """Return the face of a photo, and its hints."""
        name = photo.name
        if photo.face != 1:
            face = chosen_face(self.verifier.detect(data, name), photo.face, name, "face")
            return SeenPhoto(name, crop=face.crop), face.hints
        other = photo.source.face if isinstance(photo.source, FaceInPhoto) else 1
        (seen,) = reader.see_content(name, data, isinstance(photo.source, os.PathLike), other)
        if seen.error:
            raise seen.error
        assert seen.record
        if other > 1:
            hints = face_hints(open_photo(data, name), known_face(seen.record, other, name))
            return seen, hints
        return seen, seen.record.hints


def note_known(enrolment: Enrolment, photo: ReadPhoto, owner: str) -> None:
    """Note a photo that is already enrolled for `owner`."""
    if owner == photo.person:
        enrolment.known += 1
        return
    error = (
        f"{photo.photo}: this very photo is enrolled as {owner}; if that is another name of this "
        f"person, rename them (gallery rename); if it does not show {owner}, remove {owner} and "
        "enrol their other photos again"
    )
    enrolment.refused.append(Refused(photo.person, photo.photo, error))
