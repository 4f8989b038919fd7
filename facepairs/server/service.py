"""Answer requests that were read and checked: no HTTP here."""

import msgspec

from facepairs.errors import NotEnrolled
from facepairs.gallery.enrol import Enrolment
from facepairs.gallery.gallery import Gallery
from facepairs.gallery.identification import Identification
from facepairs.photos.face_sample import FaceResult, FaceSample
from facepairs.server import schema
from facepairs.server.answers import RequestProblem
from facepairs.support.html import data_url
from facepairs.verification.verdict import Verdict, verdict_rows
from facepairs.verification.verifier import Verifier

STRANGER_RATES = (0.9, 0.5, 0.1, 0.01, 0.001, 0.0001)


class Service:
    """Answers requests; thread-safe.

    Args:
        verifier: The model.
        gallery: Known people; None without any.
        writable: Whether people may be enrolled and removed.
        max_photo_bytes: The largest photo, for those who ask.
    """

    def __init__(
        self,
        verifier: Verifier,
        gallery: Gallery | None,
        writable: bool,
        max_photo_bytes: int,
    ) -> None:
        self.verifier = verifier
        self._gallery = gallery
        self._writable = writable
        self.max_photo_bytes = max_photo_bytes
        self._model = verifier.model.place

    def model(self) -> schema.ModelResult:
        """Describe the model."""
        model, point = self.verifier.model, self.verifier.operating_point()
        gallery = None if self._gallery is None else "write" if self._writable else "read"
        return schema.ModelResult(
            model=self._model,
            kind=model.network.kind,
            aligned=model.aligned,
            gallery=gallery,
            max_bytes=self.max_photo_bytes,
            operating_point=point,
            label=point.label,
            description=point.describe(),
            curve=model.profile.errors,
        )

    def score_limits(self) -> list[float]:
        """Return rising scores that tell distributions of scores apart.

        They are the scores that 90, 50 and 10 % of the strangers reached where the model was
        measured, those of rarer rates, and its threshold; tenths of an unmeasured model.
        """
        profile, point = self.verifier.model.profile, self.verifier.operating_point()
        table = profile.own_errors or profile.errors
        if table is None or point.threshold is None:
            return [step / 10 for step in range(-10, 11)]
        return sorted({*map(table.threshold_for, STRANGER_RATES), point.threshold})

    def verify(self, request: schema.VerifyRequest) -> Verdict:
        """Compare two photos."""
        verdict = self.verifier.verify(
            request.left,
            request.right,
            request.threshold,
            request.max_fmr,
            request.prior,
            (request.left_face, request.right_face),
            ("left", "right"),
        )
        if request.describe:
            verdict = msgspec.structs.replace(verdict, description=verdict_rows(verdict))
        return verdict

    def detect(self, request: schema.DetectRequest) -> schema.DetectResult:
        """Find the faces of a photo."""
        faces = self.verifier.detect(request.image)
        photo, results = faces[0].to_record(), [_face(face, request.crops) for face in faces]
        return schema.DetectResult(
            width=photo.width_px, height=photo.height_px, faces=results, model=self._model
        )

    def embed(self, request: schema.EmbedRequest) -> schema.EmbedResult:
        """Embed the most prominent face of each photo."""
        self.verifier.model.check_embeds("embeddings are needed")
        faces = [
            self.verifier.detect_face(photo, name=f"image {number}")
            for number, photo in enumerate(request.image, 1)
        ]
        rows = self.verifier.represent(faces)
        results = [face.to_result() for face in faces]
        return schema.EmbedResult(embeddings=rows.tolist(), faces=results, model=self._model)

    def people(self) -> schema.PeopleResult:
        """List the people of the gallery."""
        return schema.PeopleResult(people=self._known().people())

    def enrol(self, request: schema.EnrolRequest) -> Enrolment:
        """Enrol photos of one person."""
        return self._changed().add(
            request.name, request.photo, request.forget_after, request.any_quality, request.face
        )

    def forget(self, request: schema.ForgetRequest) -> schema.ForgetResult:
        """Remove a person from the gallery for good."""
        try:
            photos = self._changed().remove(request.name)
        except NotEnrolled:
            raise RequestProblem(
                404,
                "not_enrolled",
                f"{request.name} is not enrolled; see GET /v1/people",
            ) from None
        return schema.ForgetResult(name=request.name, photos=photos)

    def identify(self, request: schema.IdentifyRequest) -> Identification:
        """Identify the person in a photo among the people of the gallery."""
        try:
            found = self._known().identify(
                request.image, request.max_fpir, request.threshold, request.top, request.face
            )
        except NotEnrolled:  # whose message has the gallery's path
            raise RequestProblem(
                404, "not_enrolled", "the gallery is empty; enrol people first"
            ) from None
        if request.describe:
            found = msgspec.structs.replace(found, description=found.rows())
        return found

    def ready(self) -> schema.StatusResult:
        """Check that requests can be answered: the gallery, if any, can be read."""
        if self._gallery is not None:
            self._gallery.check_model(self.verifier.model)
        return schema.StatusResult("ready")

    def _known(self) -> Gallery:
        if self._gallery is None:
            raise RequestProblem(
                404, "no_gallery", "this server has no gallery; start it with --gallery"
            )
        return self._gallery

    def _changed(self) -> Gallery:
        gallery = self._known()
        if not self._writable:
            raise RequestProblem(
                403, "read_only", "this server only reads its gallery; enrol people elsewhere"
            )
        return gallery


def _face(face: FaceSample, crop: bool) -> FaceResult:
    result = face.to_result()
    if crop and face.crop is not None:
        result = msgspec.structs.replace(result, crop=data_url(face.crop))
    return result
