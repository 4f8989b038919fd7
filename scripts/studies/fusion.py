"""Whether a second network beside the included one decides better: the published scores of View 2.

    python scripts/studies/fusion.py

For each fold, scores become log-likelihood ratios by logistic regression on the other nine folds,
whose people are others. Two ways to join two networks: the mean of their ratios, and a weighted sum
whose weights are learnt on the same nine folds. The decision threshold comes from these folds, too.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from facepairs.evaluation.fitting import fit_logistic
from facepairs.evaluation.metrics.curves import best_threshold, threshold_at_far
from facepairs.evaluation.metrics.estimates import over_folds
from facepairs.support.words import align_columns

RESULTS = Path(__file__).parents[1] / "results"
INCLUDED, OTHERS = "view2_included", ("view2_aligned/fisher", "view2_aligned/difference")
FAR = 0.001

Floats = npt.NDArray[np.float64]


def read_scores(name: str) -> npt.NDArray[np.void]:
    """Return pairs and scores in one order for all verifiers."""
    path = RESULTS / name / "scores.csv"
    rows = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return np.sort(rows, order=["left", "right"])


def joined(score: Floats, genuine: npt.NDArray[np.bool_], fold: npt.NDArray[np.int64]) -> Floats:
    """Return, float64[2, N], the mean of both ratios and their weighted sum; `score` is [N, 2]."""
    result = np.zeros((2, len(score)))
    for number in np.unique(fold):
        known, new = fold != number, fold == number
        curves = [fit_logistic(genuine[known], column[known]) for column in score.T]
        ratio = np.stack(
            [
                curve.scale * column + curve.offset
                for curve, column in zip(curves, score.T, strict=True)
            ],
            axis=1,
        )
        weighted = LogisticRegression(C=1e6).fit(ratio[known], genuine[known])
        result[0, new] = ratio[new].mean(axis=1)
        result[1, new] = weighted.decision_function(ratio[new])
    return result


def accuracies(
    score: Floats, genuine: npt.NDArray[np.bool_], fold: npt.NDArray[np.int64]
) -> Floats:
    """Return the accuracy of each fold at the threshold of the others, float64[folds]."""
    return np.array(
        [
            np.mean(
                (score[fold == k] >= best_threshold(genuine[fold != k], score[fold != k]))
                == genuine[fold == k]
            )
            for k in np.unique(fold)
        ]
    )


def main() -> None:
    included = read_scores(INCLUDED)
    genuine, fold = included["genuine"] == 1, included["fold"]
    verifiers = {"included alone": included["score"]}
    for name in OTHERS:
        both = np.stack([included["score"], read_scores(name)["score"]], axis=1)
        mean, weighted = joined(both, genuine, fold)
        other = Path(name).name
        verifiers |= {f"and {other}, mean": mean, f"and {other}, weighted": weighted}
    alone = accuracies(included["score"], genuine, fold)
    table = [["verifier", "accuracy", "less that of the included", f"TAR at FAR {FAR:g}"]]
    for name, score in verifiers.items():
        found = accuracies(score, genuine, fold)
        gap = found - alone
        error = gap.std(ddof=1) / len(gap) ** 0.5
        tar = np.mean(score[genuine] >= threshold_at_far(genuine, score, FAR))
        accuracy = "{:.4f} ± {:.4f}".format(*over_folds(found)[:2])
        table.append([name, accuracy, f"{gap.mean():+.4f} ± {error:.4f}", f"{tar:.3f}"])
    print("\n".join(align_columns(table)))


if __name__ == "__main__":
    main()
