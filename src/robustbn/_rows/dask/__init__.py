"""A table on a Dask cluster, as rows that can be passed over.

Every partition is read and encoded by a worker and stays there. A pass is one task a worker: it is
sent a small question (the filters, or a table of shape (M, r)) and the partitions the worker holds,
and answers with sums over their rows. Nothing that a worker holds is needed to go on: partitions
come back from the graph that Dask keeps, and weights are a function of the rows and the question,
so when a worker is lost its share of the pass is done again elsewhere, with the same result.
"""

from robustbn._rows.dask.load import load_on_dask
from robustbn._rows.dask.rows import read_aside

__all__ = ["load_on_dask", "read_aside"]
