"""Robust fits of tables that are not held in memory: which they are, and one such run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustbn._core.allocate import physical_bytes
from robustbn._core.config import RobustConfig, TableConfig
from robustbn._core.protocols import Data, Survey
from robustbn._core.result import JudgedRows, Round, Trust
from robustbn._core.version import __version__
from robustbn._learn.conductor import RobustFit, fit_robustly
from robustbn._networks.json import to_text
from robustbn._rows.memory import load_rows
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.checkpoint import Checkpoint
from robustbn._rows.stream.data import Progress, RowsInStream
from robustbn._rows.stream.find import find_parts, is_relation
from robustbn._rows.stream.parts import CodeStream, open_stream
from robustbn._rows.stream.weights import WeightFiles, refuse_among_rows
from robustbn._tables.encode import Tally
from robustbn._tables.table import Reading, as_weights
from robustbn.estimator.model_file import build_verdict, describe_verdict
from robustbn.exceptions import CheckpointError, DataError, ModelFileError
from robustbn.network import BayesianNetwork

MOST_DOUBTFUL = 1_000_000  # distrusted rows that are fetched from a cluster
MEMORY_SHARE = 0.25  # codes of rows that take more than this of the memory are not held


COMPRESSION = 16  # a compressed text file may hold this many times as much text

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class StreamConfig:
    """Where a long run keeps and writes things; see `RobustEstimator`.

    Parameters
    ----------
    is_seeded : whether the seed was given; otherwise a checkpoint goes on with its own.
    """

    on_error: str = "raise"
    cache: PathLike | None = None
    checkpoint: PathLike | None = None
    weights_to: PathLike | None = None
    is_seeded: bool = True


Found = tuple[RobustFit, Reading, JudgedRows]


def is_large(table: Any, network: BayesianNetwork) -> bool:
    """Whether a table lies in files or a database, and its codes would take much of the memory."""
    limit = MEMORY_SHARE * physical_bytes()
    if isinstance(table, str | os.PathLike):
        from robustbn._tables.files import COMPRESSED, find_files, is_packed, open_file

        files = find_files(os.fspath(table))
        if not is_packed(files):  # text: a value takes two bytes or more
            sizes = [
                f.stat().st_size * (COMPRESSION if f.suffix in COMPRESSED else 1) for f in files
            ]
            return sum(sizes) / 2 > limit
        source = open_file(os.fspath(table), sep=None, encoding="utf-8")
        return (source.n_rows or 0) * network.n_nodes > limit
    if type(table).__module__.startswith("pyarrow") and hasattr(table, "count_rows"):
        return bool(table.count_rows() * network.n_nodes > limit)
    if is_relation(table):
        return bool(table.aggregate("count(*)").fetchall()[0][0] * network.n_nodes > limit)
    return callable(table)


def fit_stream(
    network: BayesianNetwork,
    table: Any,
    config: RobustConfig,
    reading: TableConfig,
    where: StreamConfig,
    tell: Callable[[Round], None],
    progress: Progress = lambda *_: None,
) -> Found:
    """Fit robustly to rows that are read in stretches: the same answer as in memory.

    Two passes over the files, one with a cache; memory O(sample).
    """
    backend = None if config.backend == "stream" else config.backend
    config = replace(config, backend=backend)
    stream = open_stream(*find_parts(table, where.on_error, reading), network, reading)
    data, config = _prepare(stream, table, config, where)
    data.progress = progress
    kept = _Keeping(data)
    try:
        fit = fit_robustly(network, kept, None, config, tell)
        if data.weight_files:
            data.weight_files.finish()
    finally:
        if data.weight_files:
            data.weight_files.discard()
        data.cache.clear()
    if data.checkpoint:
        data.checkpoint.clear()
    survey = kept.surveyed
    trust = fit.weigh(load_rows(network, survey.codes, backend, config.n_threads))
    doubtful = np.flatnonzero(trust < 0.5)
    found = Reading(
        n_read=data.surveyed.n_read,
        n_rows=survey.n_rows,
        n_missing=dict(data.surveyed.missing),
        n_unknown=dict(data.surveyed.unknown),
        ignored=stream.ignored,
        kind=stream.kind,
        where=os.fspath(table) if isinstance(table, str | os.PathLike) else _name(stream),
        config=stream.config,
        skipped=dict(stream.skipped),
    )
    known = fit.weights
    spread = Trust.of(trust).scaled(survey.n_rows / len(trust))
    if known is not None:
        spread = Trust.of(known[~np.isnan(known)])
    judged = JudgedRows(
        known, spread, survey.numbers[doubtful], survey.codes[doubtful], trust[doubtful]
    )
    return fit, found, judged


def fit_on_dask(
    network: BayesianNetwork,
    table: Any,
    sample_weight: Any,
    config: RobustConfig,
    reading: TableConfig,
    tell: Callable[[Round], None],
    progress: Progress = lambda *_: None,
) -> Found:
    """Fit robustly to rows that live on a Dask cluster: the same answer as in memory."""
    from robustbn._rows.dask import load_on_dask

    data = load_on_dask(
        network,
        table,
        reading,
        backend=config.backend,
        n_threads=config.n_threads,
        progress=lambda done, total, what: progress(what, done, total),
    )
    weights = as_weights(sample_weight, data)
    if weights is not None and not weights.all():
        raise DataError("On a cluster no row may have the weight 0: leave such rows out.")
    config = replace(config, backend=data.backend)  # hashes of rows are a backend's own
    kept = _Keeping(data)
    fit = fit_robustly(network, kept, weights, config, tell)
    first = data.numbers_read(fit.repeats.first)
    fit = replace(fit, repeats=replace(fit.repeats, first=first))
    if fit.weights is None:  # what the rows that were drawn say stands for all
        survey = kept.surveyed
        trust = fit.weigh(survey.rows)
        doubtful = np.flatnonzero(trust < 0.5)
        numbers = data.numbers_read(survey.numbers[doubtful])
        spread = Trust.of(trust).scaled(survey.n_rows / len(trust))
        judged = JudgedRows(None, spread, numbers, survey.codes[doubtful], trust[doubtful])
        return fit, data.reading, judged
    doubtful = np.flatnonzero(fit.weights < 0.5)[:MOST_DOUBTFUL]
    judged = JudgedRows(
        data.spread(fit.weights),
        Trust.of(fit.weights),
        data.numbers_read(doubtful),
        data.fetch(doubtful),
        fit.weights[doubtful],
    )
    return fit, data.reading, judged


def _prepare(
    stream: CodeStream, table: Any, config: RobustConfig, where: StreamConfig
) -> tuple[RowsInStream, RobustConfig]:
    """Return the rows of a stream with whatever they are to keep, and settings with the seed."""
    network, backend = stream.network, config.backend
    weight_files, checkpoint = None, None
    if where.weights_to is not None:
        refuse_among_rows(where.weights_to, table)
        weight_files = WeightFiles(where.weights_to, list(stream.files))
    if where.checkpoint is not None:
        named = replace(config, n_threads=None, seed=config.seed if where.is_seeded else -1)
        checkpoint = Checkpoint(where.checkpoint, _identity(stream, named))
        if not where.is_seeded:
            stored = checkpoint.load_document("seed")
            if stored is None:
                checkpoint.save_document("seed", {"seed": config.seed})
            else:
                config = replace(config, seed=stored["seed"])

    def unpack(document: dict[str, Any]) -> Any:
        try:
            return build_verdict(document, network, backend)
        except ModelFileError as error:
            raise CheckpointError(f"{where.checkpoint} is damaged: {error}") from None

    data = RowsInStream(
        stream,
        CodeCache(network.layout, backend, where.cache),
        on_error=where.on_error,
        backend=backend,
        n_threads=config.n_threads,
        weight_files=weight_files,
        checkpoint=checkpoint,
        pack=describe_verdict,
        unpack=unpack,
    )
    return data, config


class _Keeping:
    """Rows that are not held in memory, with the survey kept for whoever asks later."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self.judge, self.remember, self.all_rows = data.judge, data.remember, data.all_rows
        self.surveyed: Survey

    def survey(self, weights: Any, n_most: int, seed: int) -> Survey:
        self.surveyed = self._data.survey(weights, n_most, seed)
        return self.surveyed


def _identity(stream: CodeStream, config: RobustConfig) -> dict[str, str]:
    """Return what a run is of: a checkpoint of another is refused."""
    states = [
        f"{part.name} {part.first_row} {_state(stream, k)}" for k, part in enumerate(stream.parts)
    ]
    return {
        "version": __version__,
        "network": _digest(to_text(stream.network.with_cpts(None))),
        "data": _digest("\n".join(states)),
        "settings": _digest(f"{config} {stream.config}"),
    }


def _state(stream: CodeStream, part: int) -> str:
    """Return what tells a part from another: the stamp of its file, or its first rows."""
    if stream.parts[part].stamp:
        return stream.parts[part].stamp
    with closing(stream.read(part, Tally())) as blocks:
        first = next(blocks, None)
    return "" if first is None else hashlib.sha256(first.codes.tobytes()).hexdigest()


def _name(stream: CodeStream) -> str:
    files = list(stream.files)
    return files[0] if len(files) == 1 else f"The dataset of {len(files)} files"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
