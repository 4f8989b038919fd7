"""Compare two uploaded photos."""

from flask import Flask, request

from facepairs import BadImage, Verifier

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 20_000_000  # bytes of both photos
MAX_FMR = 0.01  # of strangers who look alike
verifier = Verifier.load()  # once; threads may share it
verifier.operating_point(max_fmr=MAX_FMR)  # stops here if the model cannot promise that


@app.errorhandler(400)
@app.errorhandler(413)
def explain(error):
    """Say what to send where a photo is missing or too large."""
    return {"error": "send two photos, a and b, of at most 20 MB together"}, error.code


@app.post("/verify")
def verify():
    """Return the verdict on the photos a and b."""
    try:
        a, b = (request.files[name].read() for name in ("a", "b"))
        verdict = verifier.verify(a, b, max_fmr=MAX_FMR)
    except BadImage as error:  # no face, or a file that is not a photo
        return {"error": str(error)}, 422
    faces = {"a": verdict.left, "b": verdict.right}
    return {
        "same": verdict.same,
        "verdict": verdict.words,
        "probability": verdict.describe_probability(),
        "score": verdict.score,
        "errors": verdict.point.describe(),
        "hints": {name: [hint.text for hint in face.hints] for name, face in faces.items()},
    }
