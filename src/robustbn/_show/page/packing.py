"""The states of rows in few bytes: each in as many bits as its node needs, a row in base64."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._show.page.content import ExplainedRow, Report


@dataclass(frozen=True, eq=False)
class Coded:
    """The single rows of a page.

    Parameters
    ----------
    rows : that are distrusted.
    codes : theirs, then those of the rows that are repeated; shape (n, d). One past the last state
        stands for a missing value.
    """

    rows: Sequence[ExplainedRow]
    codes: NDArray[np.int64]


def code_rows(report: Report) -> Coded:
    """Return the rows of a report by the codes of their states; none if they are hidden."""
    network = report.network
    rows = () if report.rows_hidden else report.rows
    repeats = () if report.rows_hidden else report.repeats
    code_of: list[Mapping[object, int]] = [
        {state: v for v, state in enumerate(network.states[node])} for node in network.nodes
    ]
    lines = [row.states for row in rows]
    lines += [tuple(r.states[node] for node in network.nodes) for r in repeats]
    codes = np.array(
        [[c.get(s, len(c)) for c, s in zip(code_of, line, strict=True)] for line in lines],
        np.int64,
    )
    return Coded(rows, codes.reshape(len(lines), network.n_nodes))


def bits_of(cards: Sequence[int], is_holed: bool) -> list[int]:
    """Return the bits that each node takes: what `c - 1` needs, or c if values are missing."""
    return [int(card - 1 + is_holed).bit_length() for card in cards]


def pack_rows(codes: NDArray[np.int64], bits: Sequence[int]) -> list[str]:
    """Return each row in base64: node by node, the highest bit first."""
    columns = [
        ((codes[:, i, None] >> np.arange(size - 1, -1, -1)) & 1).astype(np.uint8)
        for i, size in enumerate(bits)
    ]
    packed = np.packbits(np.concatenate(columns, axis=1), axis=1)
    return [base64.b64encode(line.tobytes()).decode("ascii") for line in packed]
