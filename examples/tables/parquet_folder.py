"""Learn from a folder of Parquet files, one of whose columns is in the names of its folders."""

import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

import robustbn

truth = robustbn.random_network("tree", 20, cards=3, random_state=5)
codes = robustbn.sample(truth, 20_000, random_state=1)
table = pa.table({n: codes[:, k].astype(str) for k, n in enumerate(truth.nodes)})

with tempfile.TemporaryDirectory() as folder:
    pq.write_to_dataset(table, folder, partition_cols=[truth.nodes[3]])
    by_folder = robustbn.MaximumLikelihoodEstimator(truth).fit(folder)
    by_pattern = robustbn.MaximumLikelihoodEstimator(truth).fit(f"{folder}/*/*.parquet")

by_codes = robustbn.MaximumLikelihoodEstimator(truth).fit(codes)
print(f"{by_folder.reading_.n_rows:,} rows of {len(truth.nodes)} columns were read.")
assert (by_folder.counts_ == by_codes.counts_).all()
assert (by_pattern.counts_ == by_codes.counts_).all()
