"""Compare two uploaded photos."""

from flask import Flask, request

from facepairs import BadImage, Verifier

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 20_000_000  # bytes of both photos
verifier = Verifier.load()  # once; threads may share it


@app.post("/verify")
def verify():
    """Return the verdict on the photos a and b."""
    try:
        verdict = verifier.verify(request.files["a"].read(), request.files["b"].read())
    except BadImage as error:  # no face, or a file that is no photo
        return {"error": str(error)}, 422
    return {"same": verdict.same, "score": verdict.score, "errors": verdict.point.describe()}
