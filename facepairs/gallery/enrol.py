"""Enrol photos: read them, judge the quality of the face, embed it, and report the result."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, NamedTuple

import msgspec
import numpy as np

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage
from facepairs.photos.face_sample import FaceRef, FaceSample, choose_face
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.subject_faces import MOST_OTHERS
from facepairs.support.results import Result
from facepairs.verification.verifier import Verifier, subject_faces

DEFAULT_FPIR = 0.01
LONGEST_DAYS = 1e6  # until an enrolled photo expires
POOR = ("small", "blurred", "dark", "bright", "profile", "covered")
"""Hints for which a photo is not enrolled: every later comparison would suffer from it."""


class Refused(msgspec.Struct, frozen=True):
    """A photo that was not enrolled, and why."""

    person: str
    photo: str
    error: str


class Enrolment(Result, frozen=False, kw_only=True):  # type: ignore[misc]  # it grows
    """The result of enrolling some photos.

    Attributes:
        enrolled: Number of photos that were added.
        known: Number of photos that were already enrolled for the same person.
        refused: Photos that cannot be used, or are enrolled for another person.
        unnamed: Number of people who were left out because they have no name yet.
        renamed: Old and new names of people whose folders were renamed.
        people: Number of people in the gallery afterwards.
        photos: Number of their photos.
    """

    enrolled: int = 0
    known: int = 0
    refused: list[Refused] = msgspec.field(default_factory=list)
    unnamed: int = 0
    renamed: dict[str, str] = msgspec.field(default_factory=dict)
    people: int = 0
    photos: int = 0


class SubmittedPhoto(NamedTuple):
    """A photo to enrol: the person, a name for messages, the file or content, and which face."""

    person: str
    name: str
    source: os.PathLike[str] | bytes | IO[bytes]
    face: int = 1


class ReadPhoto(NamedTuple):
    """A photo to enrol after it was read.

    Attributes:
        person: The person.
        sample: The face with its embedding, or the error.
        owner: The person who is enrolled with this photo already; it was then not searched.
        put_off: It shows several faces, and none was chosen yet.
    """

    person: str
    sample: FaceSample
    owner: str | None = None
    put_off: bool = False


def read_submitted(
    verifier: Verifier,
    owner_of: Callable[[bytes], str | None],
    any_quality: bool,
    put_off: bool,
    photos: Sequence[SubmittedPhoto],
) -> list[ReadPhoto]:
    """Read some photos and embed their faces in one call of the network.

    Args:
        verifier: The model that embeds.
        owner_of: Returns the person for whom the photo of a SHA-256 is already enrolled.
        any_quality: Also take photos that are hard to judge.
        put_off: Do not choose among several faces yet.
        photos: The photos.
    """
    # Reads the photo cache but stores nothing there: it would outlive the gallery's entry.
    reader = verifier.reader(keep=False, all_hints=True)

    def read(photo: SubmittedPhoto) -> ReadPhoto:
        person, name, source, number = photo
        try:
            sample, content = reader.fetch(name, source)
            owner = owner_of(sample.digest)
            if owner is not None:
                return ReadPhoto(person, sample, owner)
            if number == 1:
                (sample,) = reader.see(sample, content)
            else:
                sample = choose_face(reader.detect(name, content), number)
            if sample.error:
                raise sample.error
            if put_off and (sample.faces or 0) > 1:
                return ReadPhoto(person, replace(sample, crop=None, embedding=None), put_off=True)
            poor = [hint.text for hint in sample.hints if hint.kind in POOR]
            if poor and not any_quality:
                advice = "use a better photo, or take any quality (--any-quality, any_quality)"
                raise BadImage(f"{name}: {'; '.join(poor)}; {advice}")
        except BadImage as error:
            return ReadPhoto(person, FaceSample(name, error.kept()))
        return ReadPhoto(person, sample)

    found = [read(photo) for photo in photos]
    embedded = reader.embed([photo.sample for photo in found])
    return [photo._replace(sample=sample) for photo, sample in zip(found, embedded, strict=True)]


def note_known(enrolment: Enrolment, photo: ReadPhoto, owner: str) -> None:
    """Note a photo that is already enrolled for `owner`."""
    if owner == photo.person:
        enrolment.known += 1
        return
    name = photo.sample.name
    error = (
        f"{name}: this very photo is enrolled as {owner}; if that is another name of this "
        f"person, rename them (gallery rename); if it does not show {owner}, remove {owner} and "
        "enrol their other photos again"
    )
    enrolment.refused.append(Refused(photo.person, name, error))


def faces_to_enrol(
    index: FaceIndex, records: Mapping[int, PhotoRecord]
) -> Iterator[tuple[int, FaceRef]]:
    """Yield the photos that show several faces, and the face that fits the folder's other photos.

    Args:
        index: The photos of a folder.
        records: What is known of some of them, by number.
    """
    several = [image for image, record in records.items() if (record.face_count or 0) > 1]
    others, excluded = list[int](), set(several)
    for person in np.unique(index.person_of[several]).tolist():
        others += [k for k in index.images_of(person) if k not in excluded][:MOST_OTHERS]
    faces = subject_faces(index, [*several, *others], records, keep=False)
    yield from ((image, faces.face_of(index, image)) for image in several)
