"""Raha and Baran, a published cleaning system, on one dirty table: `repair` starts it.

usage: cleaning_peer.py DIRTY CLEAN SEED

Raha is told which cells of 20 rows are wrong and finds wrong cells; Baran is told what is right in
the same rows and corrects what Raha found. Both have their defaults otherwise, and no model of
Wikipedia's revisions. Answers with a line of JSON. Runs in a process and a folder of its own, for
both start processes, write files, and draw from global generators.
"""

from __future__ import annotations

import json
import random
import sys
import time
import warnings


def main(dirty: str, clean: str, seed: int) -> dict[str, float]:
    """Return how many cells were wrong, how many were changed, and how many of those rightly."""
    import numpy as np
    import pandas as pd

    if not hasattr(pd.DataFrame, "applymap"):
        pd.DataFrame.applymap = pd.DataFrame.map  # its name before pandas 3, by which Raha calls it
    import raha

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, the generator that Raha draws from
    start = time.perf_counter()
    finder, mender = raha.Detection(), raha.Correction()
    finder.SAVE_RESULTS = mender.SAVE_RESULTS = False
    data = finder.initialize_dataset({"name": "table", "path": dirty, "clean_path": clean})
    finder.run_strategies(data)
    finder.generate_features(data)
    finder.build_clusters(data)
    while len(data.labeled_tuples) < finder.LABELING_BUDGET:
        finder.sample_tuple(data)
        finder.label_with_ground_truth(data)
    finder.propagate_labels(data)
    finder.predict_labels(data)
    data = mender.initialize_dataset(data)
    mender.initialize_models(data)
    for row in data.labeled_tuples:
        data.sampled_tuple = row
        mender.update_models(data)
    mender.predict_corrections(data)
    wrong = data.get_actual_errors_dictionary()
    seen = data.dataframe
    changed = {c: value for c, value in data.corrected_cells.items() if value != seen.iloc[c]}
    return {
        "wrong": len(wrong),
        "changed": len(changed),
        "right": sum(wrong.get(c) == value for c, value in changed.items()),
        "labelled_rows": len(data.labeled_tuples),
        "seconds": time.perf_counter() - start,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
