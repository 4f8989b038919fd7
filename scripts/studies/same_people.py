"""How often `data check` proposes that two different people are one, by the size of the folder.

Folders of random people of LFW are checked, and folders of people whose names belong to a group by
short lists of names. LFW holds some people under two names and some photos under a wrong one: pairs
in KNOWN were looked at, and are one person or look it. Every other proposal counts as wrong.

    python scripts/studies/same_people.py LFW/lfw-deepfunneled
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.evaluation.likeness import find_same_people
from facepairs.verification.verifier import Verifier

DRAWS = 100
SIZES = (50, 100, 250, 500)
NAMES = {
    "East Asian": "chan chang chen cheng choi chung fujimori han hu huang hui hun ito jiang jong "
    "kim koizumi kwan lee li lin liu nakamura nguyen park roh shin sun suzuki takahashi tanaka "
    "tran tsai wang wen won wong woo wu xie yamamoto yang yao yi yoon yuan zhang zhao zheng zhou "
    "zhu",
    "Arabic and South Asian": "abdul abdullah ahmad ahmed al ali amir bin faisal hamid hasan "
    "hassan hussein ibrahim jamal khan kumar mahmoud mohamed mohammad mohammed muhammad musharraf "
    "nasser omar patel rahman saddam saeed salman sharif singh vajpayee yousef",
    "Spanish and Portuguese": "alvarez antonio carlos castro chavez diego fernandez garcia gomez "
    "gonzalez gutierrez hernandez jose juan lopez luis maria martinez mendoza miguel ortiz pedro "
    "perez ramirez ramos rodriguez romero ruiz sanchez silva torres",
    "African": "annan bongo kagame kibaki mandela mbeki mugabe museveni obasanjo taylor "
    "tsvangirai wade tutu",
}
KNOWN = {
    frozenset(pair.split("/"))
    for pair in (
        "Carlos_Beltran/Raul_Ibanez",
        "Emmy_Rossum/Eva_Amurri",
        "Bart_Hendricks/Ricky_Ray",
        "Andrew_Caldecott/Andrew_Gilligan",
        "John_Barnett/John_Burnett",
        "Shinya_Taniguchi/Takahiro_Mori",
        "Chyung_Dai-chul/Dai_Chul_Chyung",
        "Choi_Sung-hong/Sung_Hong_Choi",
        "Felipe_De_Borbon/Prince_Felipe",
        "Noer_Moeis/Noer_Muis",
        "Hasan_Wirayuda/Hassan_Wirajuda",
        "Bison_Dele/Brian_Williams",
        "Carlos_Ruckauf/Eduardo_Duhalde",
        "Gabrielle_Rose/Martha_Bowen",
        "Joseph_Blatter/Sepp_Blatter",
        "Wang_Yingfan/Yingfan_Wang",
        "Mireya_Elisa_Moscoso_Rodriguez/Mireya_Moscoso",
        "Nan_Wang/Wang_Nan",
        "Tamara_Mowry/Tia_Mowry",
        "Claire_Hentzen/Morgan_Hentzen",
        "Jason_Kapono/Ray_Young",
        "Harold_Scott/Jeff_Roehm",
        "Diana_Taurasi/Shavon_Earp",
    )
}
Ints = npt.NDArray[np.int64]


def proposals(index: FaceIndex, embeddings: npt.NDArray[np.float32], people: Ints) -> list[str]:
    """Return the pairs that are proposed in a folder of some people."""
    images = np.flatnonzero(np.isin(index.person_of, people))
    part = index.without(np.setdiff1d(np.arange(len(index)), images).tolist())
    cohort = Verifier.load().model.profile.cohort
    found = find_same_people(part, embeddings[images], cohort)
    return ["/".join((part.people[one], part.people[other])) for one, other in found]


def report(
    title: str, index: FaceIndex, embeddings: npt.NDArray[np.float32], pool: Ints, size: int
) -> None:
    """Print the mean number of proposals in random folders of some people."""
    random = np.random.default_rng(0)
    found = [
        proposals(index, embeddings, random.choice(pool, size, replace=False))
        for _ in range(DRAWS if size < len(pool) else 1)
    ]
    wrong = [[one for one in row if frozenset(one.split("/")) not in KNOWN] for row in found]
    print(
        f"{title:32} {size:5,} people  proposals {np.mean(list(map(len, found))):.3f}  wrong "
        f"{np.mean(list(map(len, wrong))):.3f}  folders with a wrong one "
        f"{np.mean([bool(row) for row in wrong]):.3f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    options = parser.parse_args()
    index = FaceIndex.scan(options.data)
    embeddings = Verifier.load(threads=1).embed(index.paths)
    everybody = np.arange(len(index.people))
    several = np.flatnonzero(index.image_counts >= 2)
    for one in proposals(index, embeddings, everybody):
        print(one, "" if frozenset(one.split("/")) in KNOWN else "wrong")
    for size in SIZES:
        report("any", index, embeddings, everybody, size)
        report("two photos or more", index, embeddings, several, size)
    for group, names in NAMES.items():
        words = set(names.split())
        pool = np.array(
            [
                number
                for number, name in enumerate(index.people)
                if words & set(name.lower().replace("-", "_").split("_"))
            ]
        )
        for size in sorted({min(size, len(pool)) for size in SIZES}):
            report(group, index, embeddings, pool, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
