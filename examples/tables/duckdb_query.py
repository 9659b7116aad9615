"""Learn from a DuckDB relation and from a query; nothing but the network's columns is fetched."""

import duckdb
import pyarrow as pa

import robustbn

truth = robustbn.random_network("tree", 20, cards=3, random_state=5)
codes = robustbn.sample(truth, 20_000, random_state=1)
database = duckdb.connect()
database.register("rows", pa.table({n: codes[:, k] for k, n in enumerate(truth.nodes)}))

relation = database.sql("SELECT *, 'a comment' AS comment FROM rows")
by_relation = robustbn.read_table(relation, truth)
query = "SELECT X7, * EXCLUDE (X7) FROM rows"
by_query = robustbn.read_table(query, truth, connection=database)
print(by_relation)
assert (by_relation.codes == codes).all()
assert (by_query.codes == codes).all()
