"""Learn from a lazy polars frame of text; rows with a missing value are left out and counted."""

import polars as pl

import robustbn

truth = robustbn.random_network("tree", 20, cards=3, random_state=5)
codes = robustbn.sample(truth, 20_000, random_state=1)
lazy = pl.LazyFrame({n: codes[:, k] for k, n in enumerate(truth.nodes)}).with_columns(
    pl.all().cast(pl.String), pl.lit("not a node").alias("comment")
)
first = truth.nodes[0]
lazy = lazy.with_row_index().with_columns(
    pl.when(pl.col("index") % 1000 == 0).then(None).otherwise(pl.col(first)).alias(first)
)

fitted = robustbn.fit(truth, lazy, on_missing="drop", random_state=0)
print(fitted.reading_)
print(fitted.rows().filter(pl.col("weight").is_nan()).head(3))
assert fitted.reading_.n_dropped == 20
assert fitted.reading_.n_missing == {first: 20}
assert fitted.reading_.ignored == ("index", "comment")
