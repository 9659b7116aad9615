"""What scikit-learn asks of an estimator, without importing scikit-learn until it asks."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Self

import numpy as np

from robustbn.exceptions import NotFittedError


class Settings:
    """Settings by name, as `clone`, pipelines and searches expect."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; it has {', '.join(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not is_same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_clone__(self) -> Self:
        """Return a copy with the same settings; they are values, and need no copy themselves."""
        copy = type(self)(**self.get_params())
        if hasattr(self, "_metadata_request"):
            copy._metadata_request = self._metadata_request
        return copy

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what this estimator takes."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="outlier_detector" if hasattr(self, "predict") else "density_estimator",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(categorical=True, string=True, sparse=True, allow_nan=False),
        )

    def get_metadata_routing(self) -> Any:
        """Return what `fit` takes beside the rows: `sample_weight`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        request = MetadataRequest(owner=self)
        request.fit.add_request(param="sample_weight", alias=None)
        return request

    def set_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether pipelines and searches hand `sample_weight` on to `fit`."""
        request = self.get_metadata_routing()
        request.fit.add_request(param="sample_weight", alias=sample_weight)
        self._metadata_request = request
        return self


def not_fitted(message: str) -> NotFittedError:
    """Return our error, which is scikit-learn's too where scikit-learn is in use."""
    if "sklearn" not in sys.modules:
        return NotFittedError(message)
    from sklearn import exceptions

    both = type("NotFittedError", (NotFittedError, exceptions.NotFittedError), {})
    error: NotFittedError = both(message)
    return error


def is_same(value: Any, default: Any) -> bool:
    """Whether a setting is its default; never compares an array element by element."""
    return value is default or (
        type(value) is type(default) and not isinstance(value, np.ndarray) and value == default
    )
