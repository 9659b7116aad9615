"""What the estimators share: settings, reading tables, priors, likelihoods, files."""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, warn
from robustbn._core.calls import say_unknown
from robustbn._core.config import TableConfig, check_setting, is_same
from robustbn._core.dirichlet import Expert
from robustbn._core.docstrings import explained_by
from robustbn._core.expansion import bdeu_pseudo_counts, log_probabilities
from robustbn._core.holes import Holes
from robustbn._core.numbers import count
from robustbn._core.protocols import Rows, Vector
from robustbn._core.result import Inferred
from robustbn._networks.json import describe_network
from robustbn._rows.kernels import load_kernels
from robustbn._rows.memory import gather, load_rows
from robustbn._show.expert import ExpertView
from robustbn._show.posterior import Posterior, find_posterior
from robustbn._show.progress import showing_progress
from robustbn._show.words import find_constants, say_unseen
from robustbn._tables.coded import (
    Reading,
    Table,
    require_rows,
    with_missing_nodes,
    with_missing_states,
    without_missing_nodes,
)
from robustbn._tables.sources import build_frame
from robustbn._tables.table import encode_table, infer_network
from robustbn.exceptions import (
    ConstantColumnWarning,
    ConvergenceWarning,
    DataError,
    ModelFileError,
    NotFittedError,
    SettingError,
    UnknownSettingError,
    UnseenConfigurationWarning,
)
from robustbn.network import BayesianNetwork

PRIORS = ("none", "laplace", "bdeu")
PATH_SETTINGS = ("streaming__cache", "streaming__weights_to")  # never saved in a file


class Settings:
    """Settings by name, as `clone`, pipelines and searches expect."""

    on_missing: str
    _GROUPS: ClassVar[Mapping[str, type]] = {}  # settings that contain others, with their class

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of the settings."""
        return list(inspect.signature(cls).parameters)

    def _hold(self, given: Mapping[str, Any]) -> None:
        """Set the settings that a call of `__init__` was given, each under its name."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    @classmethod
    def _inner_names(cls) -> list[str]:
        """Return the names of the settings inside groups."""
        return [f"{group}__{each.name}" for group, of in cls._GROUPS.items() for each in fields(of)]

    def _check_settings(self) -> None:
        """Refuse settings of the wrong type; the error names the setting."""
        for name, parameter in inspect.signature(type(self)).parameters.items():
            check_setting(name, parameter.annotation, getattr(self, name))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the settings inside a group, as `group__name`.
        """
        settings = {name: getattr(self, name) for name in self._names()}
        if deep:
            for group, value in list(settings.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params()
                    settings.update({f"{group}__{name}": of for name, of in inner.items()})
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name.

        Parameters
        ----------
        **settings : dict
            The new values; settings inside a group are named `group__name`.
        """
        for name, value in settings.items():
            group, _, inner = name.partition("__")
            if name not in (*self._names(), *self._inner_names()):
                raise SettingError(say_unknown(type(self).__name__, name, self._names()))
            if inner:
                before = getattr(self, group) or self._GROUPS[group]()
                value = replace(before, **{inner: value})
            setattr(self, group, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not is_same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_clone__(self) -> Self:
        """Return an estimator with the same settings, which are values and are not copied."""
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
        """Return what `fit` accepts beside the rows: `sample_weight`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        request = MetadataRequest(owner=self)
        request.fit.add_request(param="sample_weight", alias=None)
        return request

    def set_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether pipelines and searches pass `sample_weight` on to `fit`.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to pass it on, False not to, or the name under which callers give it.
        """
        request = self.get_metadata_routing()
        request.fit.add_request(param="sample_weight", alias=sample_weight)
        self._metadata_request = request
        return self


def not_fitted(message: str) -> NotFittedError:
    """Return our error; if scikit-learn is loaded, it is also scikit-learn's error."""
    if "sklearn" not in sys.modules:
        return NotFittedError(message)
    from sklearn import exceptions

    both = type("NotFittedError", (NotFittedError, exceptions.NotFittedError), {})
    error: NotFittedError = both(message)
    return error


class TableEstimator(Settings, ABC):
    """What the estimators share: reading tables, priors, likelihoods."""

    _HAS_CONTEXT: ClassVar[bool] = False  # whether columns that are not nodes are used as context
    network: BayesianNetwork | None
    prior: BayesianNetwork | str | float | None
    pseudo_count: float
    equivalent_sample_size: float
    equivalent_rows: float | Mapping[str, Any]
    on_unknown: str
    on_missing: str
    missing_is_evidence = False
    bins: Any
    n_threads: int | None
    kernels: str | None
    verbose: bool | int | None = None
    network_: BayesianNetwork
    counts_: Vector
    unseen_configurations_: list[tuple[str, dict[str, Hashable]]]
    reading_: Reading
    result_: Any  # what a robust fit found
    inferred_: Inferred | None
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def log_likelihood(self, X: Any) -> float:
        """Return the log-likelihood of all rows together: `sum over cells of C[j] log q[j]`.

        It is minus infinity if a row has a state to which the tables give probability zero.

        Parameters
        ----------
        X : table-like
            The rows to judge, in any form that `read_table` accepts.
        """
        return self._log_likelihood(self._encode(X))

    @explained_by(log_likelihood)
    def score(self, X: Any, y: None = None) -> float:
        """Return the mean log-likelihood per row, for model selection.

        Parameters
        ----------
        y : None, default=None
            Ignored; scikit-learn passes it.
        """
        table = self._encode(X)
        require_rows(len(table))
        return self._log_likelihood(table) / len(table)

    def _log_likelihood(self, table: Table) -> float:
        q = self._fitted().probabilities
        counts = self._load(table).count()
        touched = counts > 0
        shown = float(counts[touched] @ log_probabilities(q[touched]))
        if not table.holed:
            return shown
        expected = self._gather(table).expect(q)
        return float(shown + expected.log_likelihood) if not expected.n_impossible else -np.inf

    def _gather(self, table: Table) -> Holes:
        """Return the missing values of a table, ready to be inferred."""
        layout = self.network_.layout
        return gather(layout, table.codes, None, self.n_threads, engine=self.kernels)

    def impute(self, X: Any) -> Any:
        """Return a frame with one line per missing value: row, node, value, probability.

        The value is the most probable state given the rest of the row, with its probability. The
        table itself is not changed. The frame is of the same library as the table.

        Parameters
        ----------
        X : table-like
            A table in any form that `read_table` accepts, or the result of `read_table`.
        """
        network, table = self._fitted(), self._encode(X)
        found = self._gather(table).posterior(table.codes, network.probabilities)
        rows = found.rows if table.kept is None else table.kept[found.rows]
        best = found.probabilities.argmax(axis=1)
        states = [network.states[node] for node in network.nodes]
        values = [states[c][v] for c, v in zip(found.columns, best, strict=True)]
        names = np.array(network.nodes, object)[found.columns]
        probability = found.probabilities[np.arange(len(best)), best]
        columns = {"row": rows, "node": names, "value": values, "probability": probability}
        return build_frame(columns, table.reading.kind)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a JSON file, compressed if its name ends in `.gz`.

        The file has everything that is needed to judge new rows. It does not have the trust in the
        rows of `fit`, which `weights(X)` computes again, nor the paths `cache` and `weights_to`: a
        model that someone sends you must not choose where you write.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        from robustbn.estimator.model_file import write_model

        network = self._fitted()
        settings = {
            name: value
            for name, value in self.get_params().items()
            if name != "network" and name not in self._GROUPS and name not in PATH_SETTINGS
        }
        if not isinstance(settings.get("random_state"), int | np.integer | None):
            settings["random_state"] = None  # the state of a generator has changed since
        if isinstance(self.prior, BayesianNetwork):
            settings["prior"] = describe_network(self.prior)
        fit = self._describe_fit()
        write_model(path, type(self).__name__, settings, network, self.reading_, fit)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return a fitted estimator from a file written by `save`.

        Loading runs no code from the file and uses no paths from it.

        Parameters
        ----------
        path : str or Path
            The file to read.
        """
        from robustbn.estimator.model_file import build_model_network, build_reading, read_model

        model = read_model(path)
        if model.estimator != cls.__name__:
            raise ModelFileError(
                f"{path} contains a {model.estimator}; use the load() method of that class."
            )
        network = build_model_network(model.network, path)
        known = {*cls._names(), *cls._inner_names()} - {"network", *cls._GROUPS}
        unknown = [name for name in model.settings if name not in known]
        if unknown:
            raise ModelFileError(f"{path} has the unknown setting {unknown[0]!r}.")
        settings = {
            name: value for name, value in model.settings.items() if name not in PATH_SETTINGS
        }
        if isinstance(settings.get("prior"), dict):
            with warnings.catch_warnings():  # the warning was given when the prior was read
                warnings.simplefilter("ignore", UnseenConfigurationWarning)
                settings["prior"] = build_model_network(settings["prior"], f"{path}, prior")
        self = cls()
        self.set_params(network=network.with_cpts(None), **settings)
        try:
            self._check_settings()
            self._pseudo_counts(network)
            load_kernels(self.kernels)
        except SettingError as error:
            raise ModelFileError(f"{path}, settings: {error}") from None
        self.n_features_in_ = network.n_nodes
        try:
            self._restore(network, build_reading(model.reading), model.fit)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None
        return self

    def __repr__(self) -> str:
        said = super().__repr__()
        return f"{said}, {self._say_fitted()}" if hasattr(self, "network_") else said

    def _say_fitted(self) -> str:
        return f"fitted to {count(self.reading_.n_rows, 'row')}"

    def _repr_html_(self) -> str:
        """Show the settings, and the network, in a notebook."""
        from robustbn._show.page.inline import settings_html  # loaded only when it is needed

        return settings_html(repr(self), getattr(self, "network_", self.network))

    @abstractmethod
    def _describe_fit(self) -> dict[str, Any]:
        """Return what was found, as plain values for a file."""

    @abstractmethod
    def _restore(
        self, network: BayesianNetwork, reading: Reading, document: dict[str, Any]
    ) -> None:
        """Take what was found from the plain values of a file."""

    def _fitted(self) -> BayesianNetwork:
        if not hasattr(self, "network_"):
            raise not_fitted(f"This {type(self).__name__} is not fitted yet: call fit(X) first.")
        return self.network_

    def _read(self, X: Any) -> tuple[BayesianNetwork, Table]:
        """Return the structure and the rows to fit."""
        context = None if self._HAS_CONTEXT else ()
        config = TableConfig(self.on_unknown, self.on_missing, self.bins, context=context)
        network = self._given_network()
        if network is None:
            network = infer_network(X, config)
        table = encode_table(X, network, config)
        require_rows(len(table))
        if table.holed and table.reading.config.on_missing == "state":
            network, table = with_missing_states(network, table)
        if table.holed and self.missing_is_evidence:
            network, table = with_missing_nodes(network, table, table.holed)
        return network, table

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Set all attributes inside, or, if anything goes wrong, none of them."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:  # Ctrl-C is one, too
            self.__dict__ = before
            raise

    def _given_network(self) -> BayesianNetwork | None:
        """Return the structure to fit, if one was given; refuse anything but a network."""
        if self.network is None or isinstance(self.network, BayesianNetwork):
            return self.network
        raise UnknownSettingError(
            f"network must be a BayesianNetwork; found {type(self.network).__name__}. For a file, "
            "use read_network(path); robustbn.fit also accepts a path or a list of edges."
        )

    def _note_columns(self, X: Any, network: BayesianNetwork) -> None:
        """Set what scikit-learn asks about the columns of a table."""
        self.n_features_in_ = network.n_nodes
        if hasattr(type(X), "columns"):
            self.feature_names_in_ = np.array(network.nodes, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _encode(self, X: Any, *, has_context: bool = False, forgives: bool = False) -> Table:
        """Return rows as codes, read in the same way as the rows of `fit`."""
        network, columns = self._fitted(), list[int]()
        if self.missing_is_evidence:
            network, columns = without_missing_nodes(network)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2 and shape[1] != network.n_nodes and not hasattr(type(X), "columns"):
            raise DataError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting "
                f"{network.n_nodes} features as input: column k belongs to network_.nodes[k]."
            )
        config = self.reading_.config
        config = config if has_context else replace(config, context=())
        if forgives and config.on_unknown == "error":
            config = replace(config, on_unknown="missing")
        given = self._given_network() if config.on_missing == "state" else None
        if isinstance(X, Table) and given is not None and X.states == given.states:
            X = with_missing_states(given, X)[1]  # as it was before the fit
        table = encode_table(X, network, config, is_later=True)
        return with_missing_nodes(network, table, columns)[1] if columns else table

    def _load(self, table: Table) -> Rows:
        return load_rows(
            self.network_, table.codes, self.kernels, self.n_threads, holed=table.holed
        )

    def _expert(self, network: BayesianNetwork) -> Expert | None:
        """Return the expert's tables in the order of the network's cells; None without any."""
        if not isinstance(self.prior, BayesianNetwork):
            return None
        from robustbn.estimator.expert import align_expert

        return align_expert(network, self.prior, self.equivalent_rows)

    def expert_tables(self) -> Any:
        """Return a frame with one line per cell: the expert's, the counted and the learned value.

        The columns are node, parents, state, expert, counted (all rows, nothing added), learned,
        expert_rows (how many rows the expert counts for in this configuration), rows (trusted rows
        that show it), nats (the log of how many times more probable these rows are under an unknown
        table than under the expert's) and p_value (corrected for the number of configurations). The
        configurations in which the rows contradict the expert most come first; those that the
        expert left empty are not listed.
        """
        network, result = self._fitted(), vars(self).get("result_")
        expert = self._expert(network) if result is None else None
        view = result.expert if result else None
        if expert is not None:
            view = ExpertView(network, expert, self.counts_, self.counts_)
        if view is None:
            raise SettingError(
                "This fit has no expert's tables: fit with prior=network, equivalent_rows=50."
            )
        return build_frame(view.columns(), self.reading_.kind)

    def update(self, X: Any, *, forgetting: float = 1.0) -> Self:
        """Return a fit with more rows; the earlier rows are not needed again.

        New rows are judged by the fit and added to its counts. Groups and the decisions about them
        stay as they are, and rates follow the rows. As long as nothing drifts, the tables are those
        of a fit to all rows; they are exactly those if no row is distrusted. `fit.check(X)` says
        how the new rows differ, and `robustbn.compare(fit, updated)` what changed; fit again if
        much did.

        Parameters
        ----------
        X : table-like
            The new rows, in any form that `read_table` accepts.
        forgetting : float, default=1.0
            How much the earlier rows count, above 0 and at most 1.
        """
        self._fitted()
        new = copy(self)
        with showing_progress("Adding rows", self.verbose):
            new._add(X, forgetting)
        return new

    @abstractmethod
    def _add(self, X: Any, forgetting: float) -> None:
        """Add rows to what was counted."""

    def posterior(self) -> Posterior:
        """Return the posterior of each table: a mapping from each node to Dirichlet parameters.

        `posterior()["x"]` has the shape of the table of x. `intervals()` gives intervals for all
        probabilities, `sample(n)` whole networks, and `query(x, evidence)` an interval for an
        answer. Without a prior, half a row is added to every cell (Jeffreys' prior).
        """
        network = self._fitted()
        if "result_" in vars(self):
            return cast("Posterior", self.result_.posterior)
        shown = self.counts_ if self.inferred_ is None else self.inferred_.observed_counts
        rows = network.layout.sum_configurations(shown)
        added = self._pseudo_counts(network, self.counts_)
        return find_posterior(network, self.counts_, rows, added, self.reading_.kind)

    def _pseudo_counts(
        self, network: BayesianNetwork, counts: Vector | None = None
    ) -> Vector | float:
        """Return what the prior adds to the counts; less where they contradict an expert."""
        expert = self._expert(network)
        if expert is not None:
            layout = network.layout
            return expert.added(layout) if counts is None else expert.weighed(layout, counts)
        if isinstance(self.prior, Real) and not isinstance(self.prior, bool):
            if not (math.isfinite(self.prior) and self.prior >= 0):
                raise SettingError(f"prior must be finite and not negative; found {self.prior!r}.")
            return float(self.prior)
        prior = "none" if self.prior is None else str(self.prior).lower()
        if prior not in PRIORS:
            raise SettingError(
                f"Unknown prior {self.prior!r}; choose one of {', '.join(PRIORS)}, a number, or a "
                "BayesianNetwork with tables."
            )
        for name in ("pseudo_count", "equivalent_sample_size"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise SettingError(f"{name} must be finite and not negative; found {value!r}.")
        if prior == "laplace":
            return self.pseudo_count
        if prior == "bdeu":
            return bdeu_pseudo_counts(network.layout, self.equivalent_sample_size)
        return 0.0

    def _warn_of_tables(self, has_prior: bool) -> None:
        """Warn about constant columns, unseen configurations, and EM that did not converge."""
        constant = find_constants(self.network_, self.counts_)
        if constant:
            node, state = constant[0]
            warn(
                f"Column {node!r} is {state!r} in every row (constant columns: {len(constant)}): "
                "nothing can be learned about its other states, or about nodes that depend on "
                "them (n_eff = 0). Check how the table was made.",
                ConstantColumnWarning,
            )
        if self.unseen_configurations_:
            said = say_unseen(self.unseen_configurations_, self.network_, has_prior=has_prior)
            warn(
                Advice(said, Either(" See unseen_configurations_ for all.", "")),
                UnseenConfigurationWarning,
            )
        inferred = self.inferred_
        if inferred is not None and not inferred.is_converged:
            warn(str(inferred), ConvergenceWarning)
