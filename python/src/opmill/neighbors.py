"""The nearest neighbours of scikit-learn's interface, found by a server:

    from opmill.neighbors import NearestNeighbors
    distances, ids = NearestNeighbors(c, n_neighbors=5).fit(x).kneighbors(queries)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._arguments import checked
from ._index import Index
from ._named_operators import Metric
from .errors import FailedPrecondition, InvalidArgument

Array = NDArray[Any]

# Those of opmill.Index, by scikit-learn's names.
_METRICS: Mapping[str, Metric] = {"cosine": "cosine", "euclidean": "l2", "l2": "l2",
                                  "sqeuclidean": "l2"}


class NearestNeighbors:
    """Has the methods of sklearn.neighbors.NearestNeighbors that need no radius, and does not need
    scikit-learn. `metric` is euclidean, l2 (the same), sqeuclidean or cosine. Vectors and queries are
    converted to `dtype`. The vectors stay on the server until `delete`, the end of a `with` block, or
    the next `fit`."""

    @checked
    def __init__(self, client: Any, *, n_neighbors: int = 5, metric: str = "euclidean",
                 dtype: DTypeLike = "float32") -> None:
        self.client = client
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.dtype = dtype
        self._index: Index | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"client": self.client, "n_neighbors": self.n_neighbors, "metric": self.metric,
                "dtype": self.dtype}

    def set_params(self, **parameters: Any) -> NearestNeighbors:
        for name, value in parameters.items():
            if name not in self.get_params():
                raise InvalidArgument(f"{name} is none of {', '.join(self.get_params())}.",
                                      field=name)
            setattr(self, name, value)
        return self

    def fit(self, X: ArrayLike, y: object = None) -> NearestNeighbors:
        """`y` has no effect, as in scikit-learn."""
        if self.metric not in _METRICS:
            raise InvalidArgument(f'metric ("{self.metric}") is none of {", ".join(_METRICS)}.',
                                  field="metric")
        index = Index(self.client, X, metric=_METRICS[self.metric], dtype=self.dtype)
        self.delete()
        self._index, self._queries = index, np.asarray(X)
        self.n_samples_fit_, self.n_features_in_ = index.rows, index.dimensions
        self.effective_metric_ = self.metric
        return self

    @checked
    def kneighbors(self, X: ArrayLike | None = None, n_neighbors: int | None = None,
                   return_distance: bool = True) -> Array | tuple[Array, Array]:
        """Distances and ids, the nearest first. Without X, of the fitted vectors, each of which is then
        not its own neighbour."""
        index = self._index
        if index is None:
            raise FailedPrecondition("This NearestNeighbors is not fitted; call fit first.")
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        most = index.rows - (X is None)
        if not 1 <= k <= most:
            raise InvalidArgument(f"n_neighbors ({k}) is not between 1 and {most}.",
                                  field="n_neighbors")
        if X is None:
            scores, ids = index.search(self._queries, k + 1)
            # Equal vectors may come before it, so that it is not among the k + 1: then the last goes.
            own = ids == np.arange(len(ids))[:, np.newaxis]
            own[:, -1] |= ~own.any(axis=1)
            scores, ids = scores[~own].reshape(-1, k), ids[~own].reshape(-1, k)
        else:
            scores, ids = index.search(X, k)
        if not return_distance:
            return ids
        if self.metric == "cosine":
            return 1 - scores, ids
        return scores if self.metric == "sqeuclidean" else np.sqrt(scores), ids

    def delete(self) -> None:
        """Deletes the vectors on the server."""
        if self._index is not None:
            self._index.delete()
        self._index = None

    def __enter__(self) -> NearestNeighbors:
        return self

    def __exit__(self, *exception: object) -> None:
        self.delete()
