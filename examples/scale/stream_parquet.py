"""Learn from a folder of Parquet files in stretches; write the trust in each row beside them."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import robustbn
from robustbn.adversary import corrupt

truth = robustbn.random_network("tree", 20, random_state=5)
codes = robustbn.sample(truth, 40_000, random_state=1)
codes, is_bad = corrupt(codes, truth, "product", eps=0.1, random_state=1)

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "rows").mkdir()
    for k, piece in enumerate(np.array_split(codes, 8)):
        table = pa.table({node: piece[:, j].astype(str) for j, node in enumerate(truth.nodes)})
        pq.write_table(table, folder / "rows" / f"{k}.parquet", write_page_checksum=True)
    damaged = folder / "rows" / "5.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1000])

    streamed = robustbn.RobustEstimator(
        truth,
        random_state=0,
        place="stream",
        streaming=robustbn.Streaming(on_error="skip", weights_to=folder / "weights"),
    ).fit(folder / "rows")
    weights = [pq.read_table(file)["weight"] for file in sorted((folder / "weights").iterdir())]

print(streamed.reading_)
print(f"{streamed.contamination_:.1%} of the rows are distrusted.")
others = np.concatenate([p for k, p in enumerate(np.array_split(codes, 8)) if k != 5])
held = robustbn.RobustEstimator(truth, random_state=0).fit(others)
np.testing.assert_allclose(streamed.counts_, held.counts_, rtol=1e-9)
np.testing.assert_array_equal(np.concatenate(weights), streamed.row_weights_)
