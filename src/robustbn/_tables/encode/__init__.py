"""From what a caller holds to codes: one small integer a row and node.

A code is the position of a state in `network.states[node]`; column k of an array of codes belongs
to `network.nodes[k]`.
"""

from robustbn._tables.encode.codes import as_codes, check_known, check_weights, require_rows
from robustbn._tables.encode.columns import (
    ColumnCoder,
    as_numbers,
    count_intervals,
    count_missing,
    distinct_values,
    find_edges,
    without_gone,
)
from robustbn._tables.encode.moments import moments_of, with_moments
from robustbn._tables.encode.tally import Tally

__all__ = [
    "ColumnCoder",
    "Tally",
    "as_codes",
    "as_numbers",
    "check_known",
    "check_weights",
    "count_intervals",
    "count_missing",
    "distinct_values",
    "find_edges",
    "moments_of",
    "require_rows",
    "with_moments",
    "without_gone",
]
