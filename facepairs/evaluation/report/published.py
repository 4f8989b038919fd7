"""Published accuracies on LFW's View 2, and the baselines of this package, for comparison.

Published accuracies are means of ten folds as their authors report them, most also on the results
page of LFW (University of Massachusetts Amherst). None was reached under the rule that this package
follows, *unrestricted, no outside data*: no entry has ever been filed there.
"""

from dataclasses import dataclass

ONLY_LFW_PHOTOS = "LFW alone"
ONLY_LFW = "LFW alone, image-restricted"
LABEL_FREE = "LFW and label-free outside data"
LABELLED = "millions of labelled outside photos"
MEASURED_HERE = "measured by this package: scripts/results/view2"


@dataclass(frozen=True)
class Published:
    """One published accuracy, 0 to 1, with its training data and its source."""

    method: str
    accuracy: float
    trained_on: str
    source: str


PUBLISHED = (
    Published("Eigenfaces", 0.6002, ONLY_LFW, "Turk and Pentland, CVPR 1991; run by LFW's authors"),
    Published("Eigen-PEP", 0.8897, ONLY_LFW, "Li et al., ACCV 2014"),
    Published("Joint Bayesian", 0.9090, LABEL_FREE, "Chen et al., ECCV 2012"),
    Published("ConvNet-RBM", 0.9175, LABEL_FREE, "Sun et al., ICCV 2013"),
    Published("Fisher vector faces", 0.9303, LABEL_FREE, "Simonyan et al., BMVC 2013"),
    Published("High-dimensional LBP", 0.9318, LABEL_FREE, "Chen et al., CVPR 2013"),
    Published("MDML-DCPs", 0.9558, LABEL_FREE, "Ding et al., TPAMI 2016"),
    Published("MRF-Fusion-CSKDA", 0.9589, ONLY_LFW, "Arashloo and Kittler, TIFS 2014"),
    Published("dlib", 0.9938, LABELLED, "King, README of dlib-models, 2017"),
    Published("MobileFaceNet", 0.9955, LABELLED, "Chen et al., CCBR 2018"),
)
BASELINES = (
    Published("pixels", 0.6197, "nothing", MEASURED_HERE),
    Published("eigenfaces", 0.7097, ONLY_LFW_PHOTOS, MEASURED_HERE),
)
