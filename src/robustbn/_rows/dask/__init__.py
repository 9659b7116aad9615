"""A table on a Dask cluster, as rows that can be passed over.

Every partition is read and encoded by a worker and stays there. A pass is one task a worker, which
answers a small question with sums over its rows. When a worker is lost, its share of the pass is
done again elsewhere, with the same result.
"""

from robustbn._rows.dask.load import load_on_dask
from robustbn._rows.dask.rows import read_aside

__all__ = ["load_on_dask", "read_aside"]
