"""`python smoke_fit.py native|numpy`: whether an installation works, in a few seconds.

Needs nothing but robustbn and what it depends on. Fits ALARM to rows of which a tenth are bad, from
an array and from a file, writes and reads a model and a page, and runs the command; says with which
kernels and libraries.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from pathlib import Path

EPS = 0.1


def fit_everything(folder: Path) -> None:
    """Fit, save, load, report and judge; raise if anything is not as it should be."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import robustbn
    from robustbn.simulate import corrupt

    alarm = robustbn.example_network("alarm")
    good = robustbn.sample(alarm, 20_000, random_state=0)
    codes, is_bad = corrupt(good, alarm, "mixture", eps=EPS, random_state=1)
    fit = robustbn.fit(alarm, codes, random_state=0)
    assert abs(fit.contamination_ - EPS) < 0.01, fit.contamination_
    assert fit.row_weights_[is_bad].mean() < 0.05 < 0.95 < fit.row_weights_[~is_bad].mean()
    counted = robustbn.MaximumLikelihoodEstimator(alarm).fit(codes)
    errors = [robustbn.total_variation(alarm, each.network_) for each in (fit, counted)]
    assert 5 * errors[0] < errors[1], errors

    columns = {n: np.array(alarm.states[n])[codes[:, i]] for i, n in enumerate(alarm.nodes)}
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    alarm.write(folder / "alarm.bif")
    again = robustbn.fit(str(folder / "alarm.bif"), folder / "rows.parquet", random_state=0)
    assert abs(again.contamination_ - fit.contamination_) < 1e-6
    fit.save(folder / "model.json")
    loaded = robustbn.RobustEstimator.load(folder / "model.json")
    np.testing.assert_allclose(loaded.weights(codes), fit.weights(codes))
    fit.report(folder / "page.html")
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")


def run_command(folder: Path) -> str:
    """Judge rows on the command line; return what it says of its version."""
    command = shutil.which("robustbn", path=sysconfig.get_path("scripts"))
    assert command, "the command is not installed"
    judged = [command, "score", folder / "model.json", folder / "rows.parquet"]
    subprocess.run([*judged, "-o", folder / "judged.csv"], check=True, capture_output=True)
    assert (folder / "judged.csv").stat().st_size > 20_000
    shown = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    return shown.stdout.strip()


def main() -> None:
    """Try the installation, and say what was tried."""
    from robustbn._rows.kernels import has_native
    from robustbn.exceptions import SlowBackendWarning

    expected = sys.argv[1] if len(sys.argv) > 1 else "native"
    assert has_native() == (expected == "native"), f"not the {expected} kernels"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_everything(Path(folder))
        said = run_command(Path(folder))
    told = any(issubclass(each.category, SlowBackendWarning) for each in caught)
    assert told == (expected == "numpy"), "slow kernels are told, fast ones are not"
    libraries = ("numpy", "pyarrow", "narwhals")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    print(f"{said}: {expected} kernels, Python {platform.python_version()}, {versions}")


if __name__ == "__main__":
    main()
