"""What scikit-learn asks of an estimator, without importing scikit-learn until it asks."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

from robustbn._core.config import check_setting, is_same
from robustbn._core.file_names import nearest_name
from robustbn.exceptions import NotFittedError, SettingError, UnknownSettingError

Init = TypeVar("Init", bound=Callable[..., None])


def understand_earlier(init: Init) -> Init:
    """Let a constructor take earlier spellings too, which its signature does not show."""
    known = list(inspect.signature(init).parameters)[1:]  # without self

    @wraps(init)
    def understanding(self: Settings, *values: Any, **settings: Any) -> None:
        earlier = {name: settings.pop(name) for name in self._EARLIER if name in settings}
        for name in settings:
            if name not in known:
                raise UnknownSettingError(say_unknown(type(self).__name__, name, known))
        init(self, *values, **settings)
        for name, value in earlier.items():
            self._set(name, value)

    return cast("Init", understanding)


def say_unknown(owner: str, name: str, known: Sequence[str]) -> str:
    """Return that there is no setting of a name, those that there are, and the nearest."""
    near = nearest_name(name, known)
    return f"{owner} has no setting {name!r}; it has {', '.join(known)}.{near}"


class Settings:
    """Settings by name, as `clone`, pipelines and searches expect."""

    on_missing: str
    _EARLIER: ClassVar[Mapping[str, str]] = {"backend": "kernels"}  # spelling -> setting
    _GROUPS: ClassVar[Mapping[str, type]] = {}  # settings that hold others, by their class

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of the settings."""
        return list(inspect.signature(cls).parameters)

    @classmethod
    def _inner_names(cls) -> list[str]:
        """Return the names of the settings inside groups."""
        return [f"{group}__{each.name}" for group, of in cls._GROUPS.items() for each in fields(of)]

    @classmethod
    def _is_setting(cls, name: str) -> bool:
        """Whether there is a setting of this name, or of an earlier spelling."""
        return name.partition("__")[0] in cls._names() or name in cls._EARLIER

    def _check_settings(self) -> None:
        """Refuse settings of the wrong kind, by name."""
        for name, parameter in inspect.signature(type(self)).parameters.items():
            check_setting(name, parameter.annotation, getattr(self, name))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; with `deep`, those inside a group as `group__name` too."""
        settings = {name: getattr(self, name) for name in self._names()}
        if deep:
            for group, value in list(settings.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params()
                    settings.update({f"{group}__{name}": of for name, of in inner.items()})
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name; those inside a group as `group__name`."""
        for name, value in settings.items():
            if not self._is_setting(name):
                raise SettingError(say_unknown(type(self).__name__, name, self._names()))
            self._set(name, value)
        return self

    def _set(self, name: str, value: Any) -> None:
        """Change one setting, by its name, by a name inside a group, or by an earlier spelling."""
        group, _, inner = self._EARLIER.get(name, name).partition("__")
        if inner:
            before = getattr(self, group)
            kind = type(before) if before is not None else self._GROUPS[group]
            known = {} if before is None else before.get_params()
            value = kind(**{**known, inner: value})
        setattr(self, group, value)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not is_same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_clone__(self) -> Self:
        """Return a copy with the same settings; they are values, and need no copy themselves."""
        copy = type(self)(**self.get_params(deep=False))
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
            input_tags=InputTags(
                categorical=True, string=True, sparse=True, allow_nan=self.on_missing != "error"
            ),
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
