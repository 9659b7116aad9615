"""How far apart two networks are: total variation, the paper's bound on it, and node by node."""

from __future__ import annotations

from math import prod
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.calls import naming_the_nearest, require_network
from robustbn._core.docstrings import explained_by
from robustbn._core.expansion import log_probabilities
from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._rows.draw import sample
from robustbn._rows.memory import load_rows
from robustbn.exceptions import NetworkError, SettingError
from robustbn.network import BayesianNetwork

__all__ = [
    "TotalVariation",
    "configuration_probabilities",
    "node_distances",
    "total_variation",
    "total_variation_bound",
]

MAX_ENUMERATED_STATES = 2**22
BLOCK_DRAWS = 2**18


class TotalVariation(float):
    """A total variation distance: a float that also knows how exact it is.

    Parameters
    ----------
    value : float
        The distance.
    standard_error : float, default=0.0
        The standard error of a Monte Carlo estimate; 0 if the value is exact.
    n_draws : int, default=0
        The number of rows drawn; 0 if the value is exact.
    confidence : float, default=0.95
        The confidence level of the interval from `low` to `high`.

    Attributes
    ----------
    low : float
        The lower end of the confidence interval; the value itself if it is exact.
    high : float
        The upper end of the confidence interval.
    exact : bool
        Whether all joint states were enumerated.

    Examples
    --------
    >>> from robustbn.distance import TotalVariation
    >>> estimate = TotalVariation(0.2, standard_error=0.01, n_draws=1000)
    >>> estimate + 0.1, round(estimate.high, 2)
    (0.30000000000000004, 0.22)
    >>> estimate
    TotalVariation(0.2, 0.1804 to 0.2196)
    """

    low: float
    high: float
    standard_error: float
    exact: bool
    n_draws: int

    def __new__(
        cls, value: float, standard_error: float = 0.0, n_draws: int = 0, confidence: float = 0.95
    ) -> TotalVariation:
        """Build from an estimate and its standard error."""
        self = super().__new__(cls, value)
        reach = NormalDist().inv_cdf(0.5 + confidence / 2) * standard_error
        self.low, self.high = max(0.0, value - reach), min(1.0, value + reach)
        self.standard_error, self.n_draws, self.exact = standard_error, n_draws, n_draws == 0
        return self

    def __repr__(self) -> str:
        if self.exact:
            return f"TotalVariation({float(self):.6g}, exact)"
        return f"TotalVariation({float(self):.6g}, {self.low:.6g} to {self.high:.6g})"


@naming_the_nearest
def total_variation(
    P: BayesianNetwork,
    Q: BayesianNetwork,
    *,
    n_draws: int = 200_000,
    random_state: Any = 0,
    confidence: float = 0.95,
    method: str = "auto",
) -> TotalVariation:
    """Return the total variation distance: `max over events A of |P(A) - Q(A)|`.

    It is exact, by enumeration, if there are at most 2^22 joint states. Otherwise it is the mean of
    `|tanh(log(P(x) / Q(x)) / 2)|` over rows drawn half from P and half from Q, which is unbiased
    and bounded, with a confidence interval. The networks need the same nodes and states, in any
    order; their edges may differ.

    Parameters
    ----------
    P : BayesianNetwork
        A network with tables.
    Q : BayesianNetwork
        A network with tables and the same nodes and states as P.
    n_draws : int, default=200000
        The number of rows to draw, half from each network. The standard error falls with its square
        root.
    random_state : int, Generator or None, default=0
        The seed of the draws; the same seed gives the same result.
    confidence : float, default=0.95
        The confidence level of the interval from `low` to `high`.
    method : {"auto", "exact", "monte_carlo"}, default="auto"
        Whether to enumerate or to draw; "auto" enumerates if it can.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.distance import total_variation
    >>> fair = BayesianNetwork({"coin": []}, {"coin": ["h", "t"]}, {"coin": [0.5, 0.5]})
    >>> loaded = fair.with_cpts({"coin": [0.6, 0.4]})
    >>> total_variation(fair, loaded)
    TotalVariation(0.1, exact)
    """
    for each in (P, Q):
        require_network(each, "total_variation(P, Q)")
    Q = _aligned(Q, P)
    n_states = prod(P.layout.cards)
    if method == "auto":
        method = "exact" if n_states <= MAX_ENUMERATED_STATES else "monte_carlo"
    if method == "exact":
        if n_states > MAX_ENUMERATED_STATES:
            raise SettingError(
                f"The networks have {n_states:.3g} joint states; at most {MAX_ENUMERATED_STATES:,} "
                "are enumerated. Use method='monte_carlo'."
            )
        return TotalVariation(float(np.abs(_joint(P) - _joint(Q)).sum()) / 2)
    if method != "monte_carlo":
        raise SettingError(f"Unknown method {method!r}; choose auto, exact or monte_carlo.")
    return _estimate_by_drawing(P, Q, n_draws, random_state, confidence)


@explained_by(total_variation)
def total_variation_bound(
    P: BayesianNetwork, Q: BayesianNetwork, *, n_draws: int = 1_000_000, random_state: Any = 0
) -> float:
    """Return the paper's upper bound on the total variation (Lemma dtv-bn), at most 1.

    `sqrt(sum over k of sqrt(pi_P[k] pi_Q[k]) sum over v of (p - q)^2 / (p + q))`, which for two
    states is the paper's `2 (p - q)^2 / ((p + q)(2 - p - q))`. Needs one structure for both. The
    configuration probabilities pi are exact when there are at most 2^22 joint states, and counted
    in `n_draws` drawn rows otherwise.

    Parameters
    ----------
    Q : BayesianNetwork
        A network with tables and the same structure as P.
    n_draws : int, default=1000000
        The number of rows to draw if there are too many joint states to enumerate.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.distance import total_variation, total_variation_bound
    >>> fair = BayesianNetwork({"coin": []}, {"coin": ["h", "t"]}, {"coin": [0.5, 0.5]})
    >>> loaded = fair.with_cpts({"coin": [0.6, 0.4]})
    >>> float(total_variation(fair, loaded)) <= total_variation_bound(fair, loaded) < 0.15
    True
    """
    Q = _same_structure(P, Q)
    pi_P = configuration_probabilities(P, n_draws=n_draws, random_state=random_state)
    pi_Q = configuration_probabilities(Q, n_draws=n_draws, random_state=random_state)
    p, q = P.probabilities, Q.probabilities
    chi = np.divide((p - q) ** 2, p + q, out=np.zeros_like(p), where=p + q > 0)
    squared = np.sqrt(pi_P * pi_Q) @ P.layout.sum_configurations(chi)
    return min(1.0, float(np.sqrt(squared)))


@explained_by(total_variation_bound)
def node_distances(
    P: BayesianNetwork, Q: BayesianNetwork, *, n_draws: int = 1_000_000, random_state: Any = 0
) -> dict[str, float]:
    """Return how far apart the tables of each node are, weighted by what rows of P show.

    `sum over configurations k of pi_P[k] TV(P(. | k), Q(. | k))`: the distance of each
    configuration counts in proportion to its probability under P, so a large difference in a
    configuration that never occurs does not matter. Both networks need the same structure.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.distance import node_distances
    >>> fair = BayesianNetwork({"coin": []}, {"coin": ["h", "t"]}, {"coin": [0.5, 0.5]})
    >>> node_distances(fair, fair.with_cpts({"coin": [0.75, 0.25]}))
    {'coin': 0.25}
    """
    Q = _same_structure(P, Q)
    pi = configuration_probabilities(P, n_draws=n_draws, random_state=random_state)
    layout = P.layout
    apart = layout.sum_configurations(np.abs(P.probabilities - Q.probabilities)) / 2
    by_node = np.add.reduceat(pi * apart, layout.config_start[:-1])
    return dict(zip(P.nodes, by_node.tolist(), strict=True))


@explained_by(total_variation_bound)
def configuration_probabilities(
    network: BayesianNetwork, *, n_draws: int = 1_000_000, random_state: Any = 0
) -> Vector:
    """Return `pi[k]`, the probability that configuration k occurs; shape (m,).

    Exact when there are at most 2^22 joint states; otherwise counted in `n_draws` drawn rows.

    Parameters
    ----------
    network : BayesianNetwork
        A network with tables.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.distance import configuration_probabilities
    >>> network = BayesianNetwork(
    ...     {"rain": [], "wet": ["rain"]},
    ...     {"rain": ["no", "yes"], "wet": ["no", "yes"]},
    ...     {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]},
    ... )
    >>> configuration_probabilities(network)  # of rain, of wet without rain, of wet with rain
    array([1. , 0.8, 0.2])
    """
    layout = network.layout
    if prod(layout.cards) > MAX_ENUMERATED_STATES:
        codes = sample(network, n_draws, random_state)
        return layout.sum_configurations(load_rows(network, codes).count()) / n_draws
    joint = _joint(network).reshape(layout.cards)
    pi = []
    for family in layout.families:
        parents = family[:-1]
        others = tuple(i for i in range(layout.n_nodes) if i not in parents)
        place_in_family = np.argsort(np.argsort(parents))
        pi.append(joint.sum(axis=others).transpose(place_in_family).ravel())
    return np.concatenate(pi)


def _joint(network: BayesianNetwork) -> NDArray[np.float64]:
    """Return the probability of every joint state, in C order of the columns."""
    joint = np.ones([1] * network.n_nodes)
    for node, family in zip(network.nodes, network.layout.families, strict=True):
        columns = np.argsort(family)
        shape = [1] * network.n_nodes
        for c in family:
            shape[c] = network.layout.cards[c]
        joint = joint * network.cpts[node].transpose(columns).reshape(shape)
    return joint.ravel()


def _estimate_by_drawing(
    P: BayesianNetwork, Q: BayesianNetwork, n_draws: int, random_state: Any, confidence: float
) -> TotalVariation:
    """Estimate with the mixture estimator, the draws stratified: half from P, half from Q."""
    if n_draws < 4:
        raise SettingError(f"n_draws must be at least 4; found {n_draws!r}.")
    rng = np.random.default_rng(random_state)
    half = n_draws // 2
    mean, variance = 0.0, 0.0
    for source in (P, Q):
        total = total_of_squares = 0.0
        for start in range(0, half, BLOCK_DRAWS):
            codes = sample(source, min(BLOCK_DRAWS, half - start), rng)
            value = np.abs(np.tanh(_log_ratio(P, Q, codes) / 2))
            total += float(value.sum())
            total_of_squares += float(np.square(value).sum())
        stratum = total / half
        mean += stratum / 2
        variance += max(total_of_squares / half - stratum**2, 0.0) / (half - 1) / 4
    return TotalVariation(mean, float(np.sqrt(variance)), 2 * half, confidence)


def _log_ratio(P: BayesianNetwork, Q: BayesianNetwork, codes: Codes) -> NDArray[np.float64]:
    """Return `log P(x) - log Q(x)`, infinite where one of them rules the row out."""
    log_p, log_q = log_probabilities(P.probabilities), log_probabilities(Q.probabilities)
    if P.has_same_structure(Q):  # one table of small differences: no cancellation
        with np.errstate(invalid="ignore"):
            ratio = np.nan_to_num(log_p - log_q, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return load_rows(P, codes).project(ratio[:, None])[:, 0].astype(np.float64)
    with np.errstate(invalid="ignore"):
        of_p = load_rows(P, codes).project(log_p[:, None])[:, 0].astype(np.float64)
        return of_p - load_rows(Q, codes).project(log_q[:, None])[:, 0]


def _aligned(Q: BayesianNetwork, P: BayesianNetwork) -> BayesianNetwork:
    """Return Q with the node and state order of P; refuse other nodes or states."""
    if set(P.nodes) != set(Q.nodes):
        raise NetworkError(
            "The networks have different nodes: only in the first "
            f"{sorted(set(P.nodes) - set(Q.nodes))}, only in the second "
            f"{sorted(set(Q.nodes) - set(P.nodes))}."
        )
    for node in P.nodes:
        if set(P.states[node]) != set(Q.states[node]):
            raise NetworkError(
                f"Node {node!r} has states {list(P.states[node])} in the first network and "
                f"{list(Q.states[node])} in the second."
            )
    if P.nodes == Q.nodes and dict(P.states) == dict(Q.states):
        return Q
    place = {n: [Q.states[n].index(label) for label in P.states[n]] for n in P.nodes}
    return BayesianNetwork(
        parents={n: Q.parents[n] for n in P.nodes},
        states=P.states,
        cpts={n: Q.cpts[n][np.ix_(*(place[x] for x in (*Q.parents[n], n)))] for n in P.nodes},
    )


def _same_structure(P: BayesianNetwork, Q: BayesianNetwork) -> BayesianNetwork:
    """Return Q aligned with P, its parents in P's order; refuse another structure."""
    Q = _aligned(Q, P)
    for node in P.nodes:
        if set(P.parents[node]) != set(Q.parents[node]):
            raise NetworkError(
                "This distance compares table by table and needs one structure: node "
                f"{node!r} has parents {list(P.parents[node])} in the first network and "
                f"{list(Q.parents[node])} in the second. total_variation() compares networks of "
                "different structure."
            )
    if P.has_same_structure(Q):
        return Q
    return BayesianNetwork(
        P.parents,
        P.states,
        {
            n: Q.cpts[n].transpose([*(Q.parents[n].index(p) for p in P.parents[n]), -1])
            for n in P.nodes
        },
    )
