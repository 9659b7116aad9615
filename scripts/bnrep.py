"""Make BIF files of the networks of the R package bnRep, and check that all of them can be used.

`python scripts/bnrep.py` prints a script for R, which needs the packages bnRep and bnlearn and is
run with `Rscript export.R FOLDER`. `python scripts/bnrep.py FOLDER` then reads every BIF file in
the folder, writes it in other formats and reads it again, draws rows from it and fits them. Nothing
is downloaded. The script for R has not been run by the tests.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import robustbn
from robustbn import MaximumLikelihoodEstimator, RobustEstimator

N_ROWS = 2_000
FORMATS = ("bif", "json", "xmlbif")
EXPORT = r"""
library(bnlearn)
folder <- commandArgs(trailingOnly = TRUE)[1]
dir.create(folder, showWarnings = FALSE, recursive = TRUE)
for (name in data(package = "bnRep")$results[, "Item"]) {
  network <- getExportedValue("bnRep", name)
  is_discrete <- inherits(network, "bn.fit") &&
    all(sapply(network, inherits, c("bn.fit.dnode", "bn.fit.onode")))
  if (is_discrete) write.bif(file.path(folder, paste0(name, ".bif")), network)
}
"""


def check(network: robustbn.BayesianNetwork, folder: Path) -> str:
    """Return what is wrong with one network; empty if nothing is."""
    for name in FORMATS:
        robustbn.write_network(network, folder / f"n.{name}")
        if robustbn.read_network(folder / f"n.{name}") != network:
            return f"differs after it was written as {name}"
    rows = robustbn.sample(network, N_ROWS, random_state=0)
    for estimator in (MaximumLikelihoodEstimator(network), RobustEstimator(network)):
        tables = estimator.fit(rows).network_.probabilities
        if not (tables.min() >= 0 and tables.max() <= 1):
            return f"{type(estimator).__name__} learned tables that are none"
    return ""


def main(arguments: list[str]) -> int:
    """Print the script for R, or check a folder."""
    if not arguments:
        print(EXPORT.strip())
        return 0
    paths, n_unknown, n_wrong = sorted(Path(arguments[0]).glob("*.bif")), 0, 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in paths:
            try:
                network = robustbn.read_network(path)
                n_unknown += bool(network.is_unknown.any())
                said = check(network, Path(folder))
            except robustbn.exceptions.RobustBNError as error:
                said = f"{type(error).__name__}: {error}"
            n_wrong += bool(said)
            if said:
                print(f"{path.name}: {said}")
    print(f"{len(paths)} networks, {n_unknown} with unknown configurations, {n_wrong} failed")
    return int(n_wrong > 0 or not paths)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
