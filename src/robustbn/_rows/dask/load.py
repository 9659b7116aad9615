"""From a Dask collection, or a path, to encoded partitions on the workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

from robustbn._core.config import TableConfig
from robustbn._rows.dask.cluster import MakePartition, Partitions, Progress, load_distributed
from robustbn._rows.dask.partition import (
    FoundInRows,
    Partition,
    Reader,
    encode_batches,
    encode_frame,
    encode_part,
)
from robustbn._rows.dask.rows import RowsOnDask
from robustbn._rows.kernels import choose_kernels
from robustbn._rows.stream.find import find_parts, is_on_dask
from robustbn._rows.stream.parts import Part
from robustbn._tables.aside import plan_aside
from robustbn._tables.coded import Reading, require_rows
from robustbn._tables.columns import find_columns, follow_network
from robustbn._tables.sources import Source
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

LEAST_ROWS = 2**20  # of a partition that is a part of a file


def load_on_dask(
    network: BayesianNetwork,
    table: Any,
    config: TableConfig,
    *,
    kernels: str | None = None,
    n_threads: int | None = None,
    progress: Progress = lambda *_: None,
) -> RowsOnDask:
    """Have the workers of a cluster read and encode a table, and return its rows.

    The cluster is the one of the current `distributed.Client`. Memory on the workers: N d bytes of
    codes, the packed rows, and the distinct questions of rows that miss values; on the host:
    nothing that grows with N.
    """
    client = _find_client()
    config = follow_network(network, config)
    _require_edges(config)
    name = choose_kernels(kernels)
    reader = Reader(network.with_cpts(None), config, name)
    tasks, reading, files = _plan(network, table, reader)
    partitions = Partitions.make(client, tasks, progress)
    described = partitions.ask("describing partitions", describe)[1]
    partitions = replace(partitions, sizes=tuple(n for n, _ in described))
    require_rows(partitions.n_rows)
    founds = tuple(found for _, found in described)
    found = FoundInRows.join(founds)
    reading = replace(
        reading,
        n_read=found.n_read,
        n_rows=partitions.n_rows,
        n_missing={n: found.n_missing[n] for n in network.nodes if n in found.n_missing},
        n_unknown={n: found.n_unknown[n] for n in network.nodes if n in found.n_unknown},
        n_incomplete=found.n_incomplete,
        ignored=tuple(dict.fromkeys([*reading.ignored, *found.ignored])),
    )
    return RowsOnDask(network, partitions, reading, founds, found, files, name, n_threads)


def describe(partition: Partition, _: None) -> tuple[None, tuple[int, FoundInRows]]:
    return None, (len(partition.codes), partition.found)


def _find_client() -> Any:
    distributed = load_distributed()
    try:
        return distributed.default_client()
    except ValueError:
        raise DataError(
            "There is no Dask cluster to work on. Start one on this machine with `from distributed "
            "import Client; client = Client()`, or connect to one with Client('tcp://host:8786'); "
            "the current client is used."
        ) from None


def _require_edges(config: TableConfig) -> None:
    """Refuse intervals that only a look at all rows could find."""
    bins = config.bins
    cuts = bins.items() if isinstance(bins, Mapping) else [(None, bins)]
    for node, cut in cuts:
        if isinstance(cut, str | Integral):
            where = "bins" if node is None else f"bins[{node!r}]"
            raise DataError(
                f"{where}={cut!r}: intervals are not computed from the rows on a cluster, where "
                "each partition is read separately. Give their inner edges, such as [18, 65]."
            )


def _plan(
    network: BayesianNetwork, table: Any, reader: Reader
) -> tuple[list[MakePartition], Reading, tuple[str, ...]]:
    """Return what makes each partition, not run yet; what is known of the table so far; files."""
    from dask.delayed import delayed

    how = delayed(reader, traverse=False)
    encode: Callable[[Any, int, Reader], Partition] = encode_batches
    kind, where, ignored, files = "python", "The Dask bag", tuple[str, ...](), tuple[str, ...]()
    if isinstance(table, str | os.PathLike):
        root = os.fspath(table)
        encode, kind, where = encode_part, "file", root
        parts = _find_files(root, reader.config)
        files = tuple(part.name for part in parts)
        pieces: list[Any] = [delayed(part, traverse=False) for part in parts]
    elif is_on_dask(table) and hasattr(table, "columns") and hasattr(table, "to_delayed"):
        encode, kind, where = encode_frame, "pandas", "The Dask frame"
        names = tuple(str(name) for name in table.columns)
        source = Source(names, len(names), None, kind, where, lambda positions: iter(()))
        wanted = {names[k] for k in find_columns(source, network, reader.config)}
        ignored = tuple(name for name in names if name not in wanted)
        plan = plan_aside(source, [k for k, n in enumerate(names) if n in wanted], reader.config)
        wanted |= set(plan.columns) if reader.config.context is not None else set(names)
        pieces = table[[c for c in table.columns if str(c) in wanted]].to_delayed()
    elif is_on_dask(table) and type(table).__name__ == "Bag":
        pieces = table.to_delayed()
    else:
        raise DataError(
            "On a Dask cluster a table is a Dask frame, a Dask bag of frames or batches, or a path "
            f"that the workers can read; found {type(table).__module__}.{type(table).__name__}. "
            "For an array, use dask.dataframe.from_dask_array(x, columns=[...])."
        )
    encode_one = delayed(encode, pure=False, traverse=False)

    def make(piece: Any, number: int, *, is_anew: bool) -> Any:
        # what several workers have died over, or is lost, stays so under its name
        return encode_one(piece, number, delayed(reader, traverse=False) if is_anew else how)

    tasks: list[MakePartition] = [partial(make, each, k) for k, each in enumerate(pieces)]
    return tasks, Reading(0, 0, {}, {}, ignored, kind, where, reader.config), files


def _find_files(root: str, config: TableConfig) -> list[Part]:
    """Return the files of a path, in order; those of Parquet in parts, where they are large."""
    from robustbn._core.file_names import url_of
    from robustbn._tables.here import STANDARD_INPUT

    if url_of(root) is not None or root == STANDARD_INPUT:
        raise DataError(
            f"{root} would be copied here, where the workers do not see it: give a Dask frame, "
            "such as dask.dataframe.read_parquet(...) reads it."
        )
    return find_parts(root, "raise", config, LEAST_ROWS)[0]
