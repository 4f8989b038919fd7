"""`FaceEmbedder`: embeddings of photos as a step of a scikit-learn pipeline."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from facepairs.images.photo import ImageSource
from facepairs.verification.verifier import Verifier


class FaceEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn photos into embeddings, for scikit-learn's classifiers, clusterings and pipelines.

    It has nothing to learn: `fit` opens the model. It can be cloned and pickled, and follows
    scikit-learn's checks except those that pass numbers, since its input are photos.

    Examples:
        >>> pipeline = make_pipeline(facepairs.FaceEmbedder(), KNeighborsClassifier(1))
        >>> pipeline.fit(paths, names).predict(["unknown.jpg"])

    Args:
        model: A bundle, the TOML file of an external embedder, or `default`.
        workers: Threads that read and embed photos; None for one per core.
    """

    def __init__(self, model: Path | str = "default", workers: int | None = None) -> None:
        self.model = model
        self.workers = workers

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Open the model; `X` and `y` are not used."""
        self.verifier_ = Verifier.load(self.model)
        return self

    def transform(self, X: Iterable[ImageSource]) -> npt.NDArray[np.float32]:  # noqa: N803
        """Embed the most prominent face of each photo.

        Args:
            X: Paths, bytes, Pillow images or arrays; a column [N, 1] of paths works too.

        Returns:
            float32[N, D], rows of length 1.

        Raises:
            NotFittedError: `fit` was not called.
            BadImage: A photo cannot be used, or shows no face; the message names it.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        photos: Any = X.to_numpy() if hasattr(X, "to_numpy") else X
        if getattr(photos, "ndim", 4) == 2:
            photos = photos.reshape(-1)
        rows = self.verifier_.embed(photos, self.workers)
        self._n_features_out = rows.shape[1]
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.no_validation = True
        return tags
