"""From what a caller holds to codes: one small integer a row and node.

A code is the position of a state in `network.states[node]`; column k of an array of codes belongs
to `network.nodes[k]`.
"""

from robustbn._tables.encode.coder import ColumnCoder, count_intervals, find_edges
from robustbn._tables.encode.codes import as_codes, check_known, check_weights, require_rows
from robustbn._tables.encode.tally import Tally
from robustbn._tables.encode.values import as_numbers, distinct_values, without_gone

__all__ = [
    "ColumnCoder",
    "Tally",
    "as_codes",
    "as_numbers",
    "check_known",
    "check_weights",
    "count_intervals",
    "distinct_values",
    "find_edges",
    "require_rows",
    "without_gone",
]
