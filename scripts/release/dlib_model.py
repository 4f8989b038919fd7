"""Measure the thresholds and errors that come with `--model dlib`, on the people of LFW's View 1.

    python scripts/release/dlib_model.py DATA --lists LISTS

The pairs show people of peopleDevTest.txt. dlib's author kept LFW's people out of its training.
"""

import argparse
import sys
from pathlib import Path

import msgspec

from facepairs.bundles.identities import Identities
from facepairs.cli.shared.output import ERROR, print_error, progress_display
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.data.minimums import limit_pairs_per_person
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import FacepairsError
from facepairs.evaluation.pair_scores import add_impostors, score_pairs
from facepairs.training.recalibrate import measured_of
from facepairs.verification.embedders.dlib_model import FOLDER
from facepairs.verification.embedders.measured import MEASURED
from facepairs.verification.loading import DLIB
from facepairs.verification.verifier import Verifier

PAIRS = 8_000
IMPOSTORS = 300_000
MEASURED_ON = "test people of LFW View 1"
SOURCE = "probability one half on the test people of LFW's View 1"


def measure(data: Path, lists: Path) -> bytes:
    """Return the content of `measured.json`."""
    index = FaceIndex.scan(data)
    (people,) = read_people(lists / "peopleDevTest.txt", index)
    pairs = limit_pairs_per_person(distinct_pairs(index.first, people, PAIRS, 0), index.person_of)
    pairs = add_impostors(index, pairs, count=IMPOSTORS)
    scored = score_pairs(Verifier.load(DLIB), index, pairs, progress_display()("embedding"))
    fitted = scored.calibrate(MEASURED_ON, SOURCE)
    known = Identities.of((), [index.people[int(person)] for person in people])
    errors = msgspec.structs.replace(fitted.errors, clusters=())  # too small for a table
    return measured_of(fitted, errors, known.calibration).to_bytes()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    parser.add_argument("--out", type=Path, default=FOLDER / MEASURED)
    options = parser.parse_args(arguments)
    try:
        options.out.write_bytes(measure(options.data, options.lists))
    except (FacepairsError, OSError) as error:
        print_error("error", str(error), False)
        return ERROR
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
