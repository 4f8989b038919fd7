"""Figures on LFW's View 2, to see one's own against: others' published ones and our baselines.

Published accuracies are means of ten folds as their authors report them, most also on the results
page of LFW (University of Massachusetts Amherst). None was reached under the rule that this package
follows, *unrestricted, no outside data*: no entry has ever been filed there.
"""

from typing import NamedTuple


class Published(NamedTuple):
    """One published accuracy, 0 to 1, with what it was trained on and where it stands."""

    method: str
    accuracy: float
    trained_on: str
    source: str


PUBLISHED = (
    Published(
        "Eigenfaces",
        0.6002,
        "LFW alone, image-restricted",
        "Turk and Pentland, CVPR 1991; as run by LFW's authors",
    ),
    Published("Eigen-PEP", 0.8897, "LFW alone, image-restricted", "Li et al., ACCV 2014"),
    Published(
        "Joint Bayesian", 0.9090, "LFW and label-free outside data", "Chen et al., ECCV 2012"
    ),
    Published("ConvNet-RBM", 0.9175, "LFW and label-free outside data", "Sun et al., ICCV 2013"),
    Published(
        "Fisher vector faces",
        0.9303,
        "LFW and label-free outside data",
        "Simonyan et al., BMVC 2013",
    ),
    Published(
        "High-dimensional LBP", 0.9318, "LFW and label-free outside data", "Chen et al., CVPR 2013"
    ),
    Published("MDML-DCPs", 0.9558, "LFW and label-free outside data", "Ding et al., TPAMI 2016"),
    Published(
        "MRF-Fusion-CSKDA", 0.9589, "LFW alone, image-restricted", "Arashloo and Kittler, TIFS 2014"
    ),
    Published(
        "MobileFaceNet", 0.9955, "millions of other people's photos", "Chen et al., CCBR 2018"
    ),
)


class Baseline(NamedTuple):
    """A baseline of this package: accuracy, and true accepts at some rates of false accepts."""

    method: str
    accuracy: float
    points: tuple[tuple[float, float], ...]
    trained_on: str
    source: str


MEASURED = "measured by this package: scripts/results/view2"
BASELINES = (
    Baseline("pixels", 0.6197, ((0.1, 0.298), (0.01, 0.075), (0.001, 0.016)), "nothing", MEASURED),
    Baseline(
        "eigenfaces", 0.7097, ((0.1, 0.505), (0.01, 0.243), (0.001, 0.111)), "LFW alone", MEASURED
    ),
)
