"""A fitted estimator as a file: plain JSON, versioned, exact doubles, nothing that can run.

`{"format": "robustbn-model", "version": 1, "versions", "estimator", "settings", "network",
"reading", "fit"}`. `network` is a network file of its own (see `docs/networks.md`), with the
learned tables; `fit` holds how rows are judged. Trust in rows is not stored: it belongs with the
rows, and `weights(X)` gives it again.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robustbn._core.calls import require_path
from robustbn._core.documents import (
    VERSIONS,
    build,
    check_numbers,
    describe,
    from_plain,
    require_shapes,
    to_plain,
)
from robustbn._core.file_names import name_of
from robustbn._core.groups import Cause, FoundGroups
from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector
from robustbn._core.result import Calibration, Inferred, RobustFit, UsualNumbers
from robustbn._networks import MAX_CELLS
from robustbn._networks.files import decode, encode, find_file, read_bytes, write_bytes
from robustbn._networks.json import describe_network, find_parts
from robustbn._networks.parts import build_network
from robustbn._rows.memory import fingerprint_codes
from robustbn._tables.coded import Reading
from robustbn.estimator.groups import describe_found
from robustbn.exceptions import ModelFileError
from robustbn.network import BayesianNetwork

MODEL_FORMAT = "robustbn-model"
MODEL_VERSION = 1


@dataclass(frozen=True)
class Model:
    """What a model file holds, in its outermost layer."""

    estimator: str
    settings: dict[str, Any]
    network: dict[str, Any]
    reading: dict[str, Any]
    fit: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Counted:
    """What the file of any fit holds: the weight on each cell, and what was inferred."""

    counts: Vector
    inferred: Inferred | None = None


@dataclass(frozen=True, eq=False)
class BesideFit:
    """What the file of a robust fit holds beside the fit: tables by counting, and its groups."""

    plain_probabilities: Vector
    found_counts: Vector  # as in `FoundGroups`
    causes: tuple[tuple[int, Cause], ...]  # with the number of the group of each
    # how much like mixed columns good rows are; None in files of releases that did not keep it, or
    # kept it as `calibration`, of the user's network
    good_rows: Calibration | None = None
    # sum of `w (1 - w)` of the trust in the rows of each configuration; None likewise
    doubt: Vector | None = None
    # where the numbers of the nodes were that are cut into intervals; None if private, or likewise
    numbers: dict[str, UsualNumbers] | None = None


def write_model(
    path: str | Path,
    estimator: str,
    settings: Mapping[str, Any],
    network: BayesianNetwork,
    reading: Reading,
    fit: Any,
) -> None:
    """Write a model as JSON, under a temporary name first; `.gz` is compressed."""
    require_path(path, "save(path)")
    try:
        model = Model(
            estimator, to_plain(settings), describe_network(network), _describe(reading), fit
        )
        head = {"format": MODEL_FORMAT, "version": MODEL_VERSION, "versions": VERSIONS}
        document = {**head, **vars(model)}
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: this estimator cannot be written: {error}.") from None
    write_bytes(encode(text, str(path)), Path(path))


def read_model(path: str | Path) -> Model:
    """Read and check the outermost layer of a model file."""
    require_path(path, "load(path)")
    path = find_file(path)
    if path.suffix.lower() in (".pkl", ".pickle", ".joblib"):
        raise ModelFileError(f"{path} is refused: a pickle may run code when it is opened.")
    text, path = decode(read_bytes(path), name_of(path)), name_of(path)
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a model file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != MODEL_FORMAT:
        raise ModelFileError(f'{path} is not a model file: "format" must be "{MODEL_FORMAT}".')
    if document.get("version") != MODEL_VERSION:
        raise ModelFileError(
            f"{path} has version {document.get('version')!r}; this release reads version "
            f"{MODEL_VERSION}. A newer release of robustbn may read it."
        )
    try:
        return from_plain(Model, document, "")
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number that a model file may hold")


# --- the parts ------------------------------------------------------------------------------


def build_model_network(document: Any, path: str | Path) -> BayesianNetwork:
    """Return the network of a model file."""
    parts = find_parts(document, f"{path}, network")
    return build_network(parts, str(path), tables=True, normalize=False, max_cells=MAX_CELLS)


def _describe(reading: Reading) -> Any:
    """Return how a table was read as plain values; labels, which need not be text, as pairs."""
    labels = {node: list(pairs.items()) for node, pairs in reading.config.labels.items()}
    document = to_plain(replace(reading, config=replace(reading.config, labels={})))
    document["config"]["labels"] = to_plain(labels)
    return document


def build_reading(document: dict[str, Any]) -> Reading:
    """Return how the table was read."""
    check_numbers({k: v for k, v in document.items() if k != "config"}, "reading")
    config = from_plain(dict[str, Any], document.get("config"), "reading.config")
    pairs = dict[str, list[tuple[Hashable, Hashable]]]
    labels = from_plain(pairs, config.get("labels"), "reading.config.labels")
    plain = {**document, "config": {**config, "labels": {}}}
    reading = from_plain(Reading, plain, "reading")
    named = {node: dict(of) for node, of in labels.items()}
    return replace(reading, config=replace(reading.config, labels=named))


def describe_fit(
    fit: RobustFit,
    plain: Vector,
    found: FoundGroups,
    calibration: Calibration | None = None,
    doubt: Vector | None = None,
    numbers: dict[str, UsualNumbers] | None = None,
) -> dict[str, Any]:
    """Return what a robust fit found as plain values."""
    causes = tuple((group.number, group.cause) for group in found.groups if group.cause)
    cells = None if fit.cells is None else fit.cells.without_rows()
    return {
        **describe(replace(fit, weights=None, cells=cells)),
        **to_plain(BesideFit(plain, found.counts, causes, calibration, doubt, numbers)),
    }


def build_fit(
    document: Any, network: BayesianNetwork, n_rows: int, kernels: str | None
) -> tuple[RobustFit, BesideFit, FoundGroups]:
    """Return a robust fit, without the trust in its rows; what is beside it; its groups."""
    layout = network.layout
    fit = build(document, layout, fingerprint_codes(network, kernels))
    beside, m = from_plain(BesideFit, document, "fit"), network.n_cells
    require_shapes(
        "fit",
        plain_counts=(fit.plain_counts, (m,)),
        plain_probabilities=(beside.plain_probabilities, (m,)),
        found_counts=(beside.found_counts, (m, fit.model.n_others + 1)),
    )
    if fit.recorded is not None:
        require_shapes(
            "fit.recorded",
            states=(fit.recorded.states, (sum(layout.cards), 2)),
            configurations=(fit.recorded.configurations, (layout.n_configurations, 2)),
        )
    if beside.good_rows is not None:
        _check_calibration(beside.good_rows, layout)
    for node, usual in (beside.numbers or {}).items():
        if node not in network.nodes or any(each.n_beyond > usual.n_rows for each in usual.limits):
            raise ModelFileError(f"fit.numbers.{node} is damaged: no node, or too many numbers.")
    if beside.doubt is not None:
        require_shapes("fit", doubt=(beside.doubt, (layout.n_configurations,)))
    for _, cause in beside.causes:
        unknown = [c for c in cause.columns if c not in network.nodes]
        if unknown:
            raise ModelFileError(f"fit.causes is damaged: there is no node {unknown[0]!r}.")
    found = describe_found(network, fit, beside.found_counts, n_rows, dict(beside.causes))
    return replace(fit, weights=None), beside, found


def _check_calibration(known: Calibration, layout: Layout) -> None:
    """Refuse what is known of good rows if new ones cannot be judged by it."""
    where, columns = "fit.good_rows", frozenset(range(layout.n_nodes))
    more = [card - own for card, own in zip(known.cards, layout.cards, strict=False)]
    if len(known.cards) != layout.n_nodes or not set(more) <= {0, 1}:
        raise ModelFileError(f"{where}.cards is damaged: a node has its states, or one more.")
    are_right = len(known.families) == layout.n_nodes and all(
        family[-1:] == (c,) and len(set(family)) == len(family) and set(family) <= columns
        for c, family in enumerate(known.families)
    )
    if not are_right:
        raise ModelFileError(f"{where}.families is damaged: each is of columns, its own the last.")
    require_shapes(
        where,
        counts=(known.counts, (Layout(known.cards, known.families).n_cells,)),
        inflation=(known.inflation, (None,)),
    )
    if len(known.inflation) not in (layout.n_nodes + 2, 2 * layout.n_nodes + 2):
        raise ModelFileError(
            f"{where}.inflation is damaged: it has {len(known.inflation)} numbers."
        )
    if not (known.spread > 0 and known.n_rows > 0 and (known.inflation >= 1).all()):
        raise ModelFileError(
            f"{where} is damaged: spread and n_rows are above 0, inflation is at least 1."
        )


def build_counted(document: Any, network: BayesianNetwork) -> Counted:
    """Return what any fit holds."""
    check_numbers(document, "fit")
    counted, m = from_plain(Counted, document, "fit"), network.n_cells
    require_shapes("fit", counts=(counted.counts, (m,)))
    if counted.inferred is not None:
        observed, missing = counted.inferred.observed_counts, counted.inferred.missing
        require_shapes(
            "fit.inferred", observed_counts=(observed, (m,)), missing=(missing, (network.n_nodes,))
        )
    return counted
