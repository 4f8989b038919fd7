"""`Gallery`: enrol people once, then identify them in photos."""

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from facepairs.bundles.error_profile import identification_point
from facepairs.bundles.model import Model
from facepairs.bundles.scorer import BATCH_CROPS
from facepairs.data.index import UNNAMED, FaceIndex
from facepairs.errors import BadConfig, NotEnrolled
from facepairs.gallery.encryption import Passphrase
from facepairs.gallery.enrol import (
    DEFAULT_FPIR,
    LONGEST_DAYS,
    Enrolment,
    ReadPhoto,
    Refused,
    SubmittedPhoto,
    faces_to_enrol,
    note_known,
    read_submitted,
)
from facepairs.gallery.identification import Identification, identify_among
from facepairs.gallery.identity import ModelIdentity, clean_name, identify_model
from facepairs.gallery.stores import open_store
from facepairs.gallery.stores.base import NewFace, Person, now_s
from facepairs.gallery.vectors import Vectors
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.photo import ImageSource
from facepairs.photos.photo_record import PhotoRecord
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.support.words import command_line
from facepairs.verification.verifier import Verifier, is_one_image


class Gallery:
    """People whose photos are enrolled, in one file or a PostgreSQL database; thread-safe.

    Names and embeddings of faces are biometric data: only the file's owner may read it, and removed
    entries are overwritten. A person's score is that of their most similar photo.

    Examples:
        >>> with Gallery("known.gallery", write=True) as gallery:
        ...     gallery.add("Ann", ["ann1.jpg", "ann2.jpg"])
        >>> print(Gallery("known.gallery").identify("photo.jpg").words)

    Args:
        place: The file; or a database that several machines share, as
            postgresql://USER@HOST/DATABASE, which needs the extra `postgres`.
        verifier: The model that embeds; None for the included one. It must be the model that the
            gallery was created with.
        write: Open the gallery for changes; expired photos are removed.
        passphrase: Passphrase of an encrypted gallery, or a function that returns it; by default
            the environment variable FACEPAIRS_PASSPHRASE. A new gallery is encrypted if this is a
            text.
        create: With `write`, create the gallery if it is missing.

    Raises:
        BadData: The gallery is missing, damaged or unreachable, is not a gallery, was created with
            another model, or has another passphrase.
        BadBundle: The model has no embeddings.
        MissingExtra: The package for encryption or for the database is not installed.
    """

    def __init__(
        self,
        place: Path | str,
        verifier: Verifier | None = None,
        write: bool = False,
        passphrase: Passphrase = None,
        create: bool = True,
    ) -> None:
        self._given = verifier
        self.store = open_store(place, write, passphrase, create)
        self._lock = threading.RLock()
        self._vectors: Vectors | None = None
        self._version = -1
        if verifier is not None:
            try:
                self.check_model(verifier.model)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> "Gallery":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self.store.close()

    @property
    def place(self) -> str:
        """The file or the database, without its password, for messages."""
        return self.store.place

    @cached_property
    def verifier(self) -> Verifier:
        """The model that embeds; raises BadData if the gallery was created with another."""
        verifier = self._given or Verifier.load()
        self.check_model(verifier.model)
        return verifier

    @property
    def model(self) -> ModelIdentity | None:
        """The model that the gallery was created with; None while it is empty."""
        return self.store.model()

    def check_model(self, model: Model) -> None:
        """Raise an error for a model without embeddings, or not the one of the gallery."""
        model.check_embeds("a gallery keeps them")
        if made_with := self.store.model():
            made_with.check(model, self.place)

    def _set_model(self, width: int) -> None:
        """Record which model makes the first embeddings, of `width` numbers."""
        if self.store.model() is None:
            self.store.set_model(identify_model(self.verifier.model, width))
            self._vectors = None  # those of an empty gallery have no width
        self.check_model(self.verifier.model)  # another process may have set its own

    def add(
        self,
        name: str,
        photos: Iterable[Path | str | bytes | IO[bytes]],
        forget_after: float | None = None,
        any_quality: bool = False,
        face: int = 1,
    ) -> Enrolment:
        """Enrol photos of one person, who may be new; photos that are already enrolled are skipped.

        Args:
            name: Name of the person.
            photos: Image files, open or not, or their content; of several faces, the most prominent
                is enrolled.
            forget_after: Days after which they expire; None for never.
            any_quality: Also take photos that are dark, blurred, or otherwise hard to judge.
            face: Its number, from 1 for the most prominent, in the order of `Verifier.detect`.

        Returns:
            The enrolled and the refused photos; a photo that cannot be used is listed, not raised.
            Content without a name is called by its position: `photo 1` for the first.

        Raises:
            BadConfig: The name is empty or not printable, `photos` is a single photo,
                `forget_after` is not above 0, or a photo has no face of that number.
            BadData: The file cannot be written.
        """
        name = clean_name(name)
        if is_one_image(photos):
            raise BadConfig("photos is a single photo; give a list of photos")
        named = [
            SubmittedPhoto(name, str(photo), Path(photo), face)
            if isinstance(photo, str | Path)
            else SubmittedPhoto(name, f"photo {number}", photo, face)
            for number, photo in enumerate(photos, 1)
        ]
        enrolment = Enrolment()
        self._enrol(named, forget_after, any_quality, enrolment)
        return self._counted(enrolment)

    def add_folder(
        self,
        folder: Path | str | FaceIndex,
        forget_after: float | None = None,
        any_quality: bool = False,
        unnamed: bool = False,
    ) -> Enrolment:
        """Enrol all people of a folder of `Person_Name/photo.jpg`.

        Unnamed people whom `group` found (`person_0004`) are left out. A person who is enrolled
        under such a name is renamed if the folder has been renamed. Each batch of photos is on disk
        before the next one, and photos that are already enrolled are skipped: call it again after
        an interruption. Of several faces in a photo, the one that fits the folder's other photos
        is enrolled.

        Args:
            folder: The folder, or its index.
            forget_after: As for `add`.
            any_quality: As for `add`.
            unnamed: Also enrol people without a name.

        Returns:
            The enrolled and the refused photos; a photo that cannot be used is listed, not raised.

        Raises:
            BadConfig: A folder's name is not a valid name, or `forget_after` is not above 0.
            BadData: The folder has no photos, or the file cannot be written.
        """
        index = folder if isinstance(folder, FaceIndex) else FaceIndex.scan(folder)
        names = [clean_name(person) for person in index.people]
        photos = [
            SubmittedPhoto(names[person], str(path), path)
            for person, path in zip(index.person_of.tolist(), index.paths, strict=True)
        ]
        left_out = {name for name in names if UNNAMED.fullmatch(name) and not unnamed}
        enrolment = Enrolment(unnamed=len(left_out))
        named = [photo for photo in photos if photo.person not in left_out]
        known = self._enrol(named, forget_after, any_quality, enrolment, frozenset(names))
        records = {k: known[one.name] for k, one in enumerate(photos) if one.name in known}
        chosen = [photos[k]._replace(source=face) for k, face in faces_to_enrol(index, records)]
        self._enrol(chosen, forget_after, any_quality, enrolment)
        return self._counted(enrolment)

    def _counted(self, enrolment: Enrolment) -> Enrolment:
        """Return an enrolment with the size of the gallery."""
        photos = [person.photos for person in self.people()]
        enrolment.people, enrolment.photos = len(photos), sum(photos)
        return enrolment

    def _enrol(
        self,
        photos: Sequence[SubmittedPhoto],
        forget_after: float | None,
        any_quality: bool,
        enrolment: Enrolment,
        people: frozenset[str] | None = None,
    ) -> dict[str, PhotoRecord]:
        """Enrol photos, and return the records of those with usable faces by their names.

        With `people`, the names in a folder, photos with several faces are not enrolled yet, and
        unnamed people whose folder is gone are renamed.
        """
        if forget_after is not None and not 0 < forget_after < LONGEST_DAYS:
            raise BadConfig(f"forget-after is {forget_after:g}; use a number of days above 0")
        done, progress = 0, console.progress("enrolling photos")
        records, with_subjects = dict[str, PhotoRecord](), people is not None
        read = partial(read_submitted, self.verifier, self.store.owner, any_quality, with_subjects)
        try:
            for batch in thread_map(read, batches(photos, BATCH_CROPS)):
                with self._lock:
                    put = [photo for photo in batch if not photo.put_off]
                    if people is not None:
                        put = [self._take_name(photo, people, enrolment) for photo in put]
                    self._put(put, enrolment, forget_after)
                found = ((photo.sample.name, photo.sample.record) for photo in batch)
                records |= {name: record for name, record in found if record}
                done += len(batch)
                progress(done, len(photos))
        finally:
            if forget_after is not None:
                self._vectors = None  # what is in memory does not expire
        return records

    def _take_name(
        self, photo: ReadPhoto, people: frozenset[str], enrolment: Enrolment
    ) -> ReadPhoto:
        """Rename an unnamed person whose folder was renamed since."""
        owner = enrolment.renamed.get(photo.owner or "", photo.owner)
        if owner and UNNAMED.fullmatch(owner) and owner not in people:
            self.rename(owner, photo.person)
            enrolment.renamed[owner] = owner = photo.person
        return photo._replace(owner=owner)

    def _put(
        self, batch: list[ReadPhoto], enrolment: Enrolment, forget_after: float | None
    ) -> None:
        """Store a batch, and add it to the result."""
        new, rows = list[ReadPhoto](), list[NewFace]()
        for photo in batch:
            sample = photo.sample
            if sample.error:
                enrolment.refused.append(Refused(photo.person, sample.name, str(sample.error)))
            elif photo.owner is not None:
                note_known(enrolment, photo, photo.owner)
            elif sample.embedding is not None:
                new.append(photo)
                rows.append(NewFace(photo.person, sample.digest, sample.embedding))
        if not new:
            return
        self._set_model(len(rows[0].vector))
        vectors = self.vectors()
        for photo, row, owner in zip(new, rows, self.store.put(rows, forget_after), strict=True):
            if owner is not None:
                note_known(enrolment, photo, owner)
                continue
            enrolment.enrolled += 1
            vectors.append([row.person], row.vector[None])

    def identify(
        self,
        photo: ImageSource,
        max_fpir: float | None = None,
        threshold: float | None = None,
        top: int = 5,
        face: int = 1,
    ) -> Identification:
        """Identify the person in a photo among the people of the gallery.

        Args:
            photo: A path, bytes, an open binary file, a Pillow image or an array; of several faces,
                the most prominent is compared.
            max_fpir: The share of strangers who may be misidentified, in (0, 1]; by default
                .01. The threshold follows from it, the model's errors and the gallery's size.
            threshold: A score instead.
            top: Number of candidates to return.
            face: Its number, from 1 for the most prominent, in the order of `Verifier.detect`.

        Raises:
            BadImage: The photo cannot be read.
            NoFace: It shows no face.
            TooSmallFace: Its face has too few pixels.
            NotEnrolled: The gallery is empty.
            BadConfig: Both or impossible `max_fpir` and `threshold` are given, or the photo has no
                face of that number.
            NotEnough: The model's errors were measured on too few pairs for `max_fpir`.
        """
        sample = self.verifier.detect_face(photo, face)
        return self._identify([sample], max_fpir, threshold, top)[0]

    def identify_faces(
        self,
        photo: ImageSource,
        max_fpir: float | None = None,
        threshold: float | None = None,
        top: int = 5,
    ) -> list[Identification]:
        """Find out who of the gallery each face of a photo shows, the most prominent face first.

        Arguments and errors as in `identify`; faces of too few pixels are left out.
        """
        return self._identify(self.verifier.detect(photo), max_fpir, threshold, top)

    def _identify(
        self, faces: list[FaceSample], max_fpir: float | None, threshold: float | None, top: int
    ) -> list[Identification]:
        if threshold is not None and max_fpir is not None:
            raise BadConfig("both threshold and max FPIR are given; give one of them")
        verifier, vectors = self.verifier, self.vectors()
        if not len(vectors):
            raise NotEnrolled(
                f"{self.place}: is empty; add people: "
                + command_line("gallery", "add", self.place, "photos/")
            )
        if threshold is not None:
            point = verifier.operating_point(threshold)
        else:
            max_fpir = DEFAULT_FPIR if max_fpir is None else max_fpir
            point = identification_point(verifier.model.profile, max_fpir, len(vectors))
        return identify_among(vectors, verifier, faces, point, max_fpir, top)

    def people(self) -> list[Person]:
        """Return all enrolled people whose photos have not expired, by name."""
        return self.store.people()

    def remove(self, name: str) -> int:
        """Remove a person with all embeddings and hashes of photos, for good.

        Returns:
            The number of photos that were enrolled.

        Raises:
            NotEnrolled: No person has this name.
            BadData: The file cannot be written.
        """
        with self._lock:
            return self._changed(self.store.remove(clean_name(name)), name)

    def rename(self, old: str, new: str) -> int:
        """Give a person another name, or merge them into the person who has that name.

        Returns:
            The number of photos that were renamed.

        Raises:
            BadConfig: The new name is not a valid name.
            NotEnrolled: No person has the old name.
            BadData: The file cannot be written.
        """
        with self._lock:
            return self._changed(self.store.rename(clean_name(old), clean_name(new)), old)

    def _changed(self, photos: int, name: str) -> int:
        """Have the embeddings read again after `photos` of a person changed, and return them."""
        self._vectors = None
        if not photos:
            listing = command_line("gallery", "list", self.place)
            raise NotEnrolled(f"{self.place}: {name} is not enrolled; for all names: {listing}")
        return photos

    def check(self) -> list[str]:
        """Return the problems of the gallery: damage, or a file that others may read."""
        return self.store.problems()

    def vectors(self) -> Vectors:
        """Return the current embeddings of the gallery."""
        with self._lock:
            version, vectors = self.store.version(), self._vectors
            if vectors is None or vectors.until <= now_s() or version != self._version:
                self.check_model(self.verifier.model)  # it was perhaps empty until now
                vectors = self._vectors = self.store.load()
                self._version = version
            return vectors
