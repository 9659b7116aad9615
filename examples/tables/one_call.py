"""From two files to tables that one in ten bad rows did not harm, in one call."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

import robustbn
from robustbn.simulate import corrupt

truth = robustbn.random_network("tree", 20, cards=3, random_state=5)
good = robustbn.sample(truth, 20_000, random_state=1)
codes, is_bad = corrupt(good, truth, "product", eps=0.1, random_state=2)

with tempfile.TemporaryDirectory() as folder:
    network_file, table_file = Path(folder) / "network.bif", Path(folder) / "rows.csv.gz"
    robustbn.write_network(truth, network_file)
    table = pa.table({n: codes[:, k] for k, n in enumerate(truth.nodes)})
    with pa.CompressedOutputStream(str(table_file), "gzip") as stream:
        pyarrow.csv.write_csv(table, stream)
    fitted = robustbn.fit(network_file, table_file, contamination="auto", random_state=0)

robust = robustbn.total_variation(fitted.network_, truth)
plain = robustbn.total_variation(fitted.plain_network_, truth)
print(fitted.reading_)
print(f"distrusted share of the rows: {fitted.contamination_:.3f}")
print(f"distance to the truth: {robust:.3f} (counting: {plain:.3f})")
assert abs(fitted.contamination_ - 0.1) < 0.01
assert robust < plain / 3
