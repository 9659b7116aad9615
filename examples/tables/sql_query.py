"""Learn from a query on any database with cursors, such as the one that comes with Python."""

import sqlite3

import robustbn

network = robustbn.BayesianNetwork(
    parents={"smoker": [], "age": [], "cough": ["smoker", "age"]},
    states={"smoker": ["no", "yes"], "age": ["young", "old"], "cough": [0, 1]},
)
people = [("N", 23, 0), ("Y", 71, 1), ("N", 64, 0), ("Y", 35, 1), ("N", 90, 1), ("?", 50, 0)] * 200

database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE people (smokes TEXT, age INTEGER, cough INTEGER)")
database.executemany("INSERT INTO people VALUES (?, ?, ?)", people)

table = robustbn.read_table(
    "SELECT smokes, age, cough FROM people",
    network,
    connection=database,
    rename={"smokes": "smoker"},
    labels={"smoker": {"N": "no", "Y": "yes"}},
    bins={"age": [65]},
    on_unknown="drop",
)
fitted = robustbn.MaximumLikelihoodEstimator(network).fit(table)
database.close()
print(table.reading)
print(fitted.network_.cpts["smoker"])
assert table.reading.n_unknown == {"smoker": 200}
assert fitted.network_.cpts["smoker"].tolist() == [0.6, 0.4]
