"""Too little memory, pipes and devices, names without end, settings of the wrong type: all told."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator, read_table
from robustbn._tables.sources import Source
from robustbn.exceptions import (
    CodeRangeError,
    DataError,
    InsufficientMemoryError,
    NetworkError,
    RobustBNError,
    SettingError,
    UnknownSettingError,
)
from tests.tables import one_node

LONG = "n" * 5000

# --- memory -------------------------------------------------------------------------------------

STARVED = """
import resource, warnings
import numpy as np, pyarrow as pa, pyarrow.csv, pyarrow.dataset
import robustbn
from robustbn.exceptions import InsufficientMemoryError
warnings.simplefilter("ignore")
network = robustbn.random_network("tree", 20, random_state=0)
few = robustbn.sample(network, 2000, random_state=0)
robustbn.RobustEstimator(network, random_state=0, n_threads=4).fit(few)  # all is loaded
{prepare}
for megabytes in (1, 8, 24):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, -1))
    try:
        {action}
        said = "enough"
    except InsufficientMemoryError as error:
        said = f"{{isinstance(error, MemoryError)}} {{error}}"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(said)
"""
ACTIONS = {
    "fit": (
        "X = robustbn.sample(network, 4_000_000, random_state=0)",
        "robustbn.RobustEstimator(network, random_state=0, n_threads=4).fit(X)",
    ),
    "count": (
        "X = robustbn.sample(network, 4_000_000, random_state=0)",
        "robustbn.MaximumLikelihoodEstimator(network, n_threads=4).fit(X)",
    ),
    "read": (
        "frame = {n: np.zeros(4_000_000, np.int64) for n in network.nodes}",
        "robustbn.read_table(frame, network)",
    ),
    "arrow": (
        "frame = pa.table({n: pa.array(np.zeros(3_000_000, np.int8)) for n in network.nodes})",
        "robustbn.read_table(frame, network)",
    ),
}


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")  # noqa: PTH110
@pytest.mark.parametrize("action", ACTIONS)
def test_an_allocation_that_fails_is_told_and_nothing_hangs_or_aborts(action):
    prepare, act = ACTIONS[action]
    code = STARVED.format(prepare=prepare, action=act)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-1500:]
    told = done.stdout.splitlines()
    assert len(told) == 3
    for line in told:
        assert line == "enough" or re.match("True .*needs.*memory", line), line


def test_an_allocation_of_arrow_that_fails_is_told():
    def fail(positions):
        raise pa.ArrowMemoryError("malloc of size 123456789 failed")
        yield

    source = Source(("a",), 1, 1, "pyarrow", "The table", fail)
    with pytest.raises(InsufficientMemoryError, match=r"last request was for 123,456,789 bytes"):
        list(source.read([0]))


# --- pipes and devices --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".jsonl", ".xlsx"])
def test_a_pipe_is_no_table(suffix, tmp_path):
    os.mkfifo(tmp_path / f"t{suffix}")
    with pytest.raises(DataError, match="is a pipe, which has no known end"):
        read_table(tmp_path / f"t{suffix}", one_node("no", "yes"))


@pytest.mark.parametrize("suffix", [".bif", ".json.gz", ".xdsl", ".csv"])
def test_a_pipe_is_no_network(suffix, tmp_path):
    os.mkfifo(tmp_path / f"n{suffix}")
    with pytest.raises(NetworkError, match="is a pipe, which"):
        robustbn.read_network(tmp_path / f"n{suffix}", states={} if suffix == ".csv" else None)


def test_a_pipe_is_no_model_and_a_device_no_file(tmp_path):
    os.mkfifo(tmp_path / "m.json")
    with pytest.raises(RobustBNError, match="is a pipe, which"):
        RobustEstimator.load(tmp_path / "m.json")
    with pytest.raises(NetworkError, match="is a device, which"):
        robustbn.read_network("/dev/zero", format="bif")
    with pytest.raises(DataError, match="is a device, which"):
        read_table("/dev/zero", one_node("no", "yes"))


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda: read_table({"a": [LONG]}, one_node("no", "yes")),
        lambda: read_table({"a": ["?"]}, one_node("no", LONG)),
        lambda: read_table({LONG: ["no"]}, one_node("no", "yes")),
        lambda: BayesianNetwork({LONG: [LONG]}, {LONG: ["x", "y"]}),
        lambda: read_table({"a": ["x y " * 2000]}, one_node("no", "yes")),
    ],
)
def test_long_names_and_labels_are_shortened_in_messages(ask):
    with pytest.raises(RobustBNError) as caught:
        ask()
    assert len(str(caught.value)) < 2500
    assert " characters)" in str(caught.value)


def test_long_names_and_labels_are_shortened_in_pages(tmp_path):
    label = "<&'\"" + LONG
    network = BayesianNetwork({LONG: [], "b": [LONG]}, {LONG: ["x", label], "b": ["u", "v"]})
    codes = np.random.default_rng(0).integers(0, 2, (500, 2)).astype(np.uint8)
    fit = RobustEstimator(network, random_state=0).fit(codes)
    fit.report(tmp_path / "page.html")
    assert LONG not in (tmp_path / "page.html").read_text(encoding="utf-8")


# --- settings and weights -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_threads", "2"), ("n_threads", 0), ("n_threads", 1.5), ("n_threads", 2**40),
        ("polish", "yes"), ("method", 3), ("prior", [1]), ("pseudo_count", "many"),
        ("pseudo_count", float("nan")), ("kernels", 1), ("place", b"stream"),
        ("contamination", None), ("sample_rows", True), ("misfit", 1), ("on_missing", None),
    ],
)  # fmt: skip
def test_a_setting_of_the_wrong_type_is_refused_by_name(setting, value):
    with pytest.raises(SettingError, match=f"^{setting} is "):
        RobustEstimator(one_node("no", "yes"), **{setting: value}).fit(np.zeros((9, 1), np.uint8))


def test_a_network_that_is_none_is_refused_by_name():
    with pytest.raises(UnknownSettingError, match="network must be a BayesianNetwork"):
        RobustEstimator("net.bif").fit(np.zeros((9, 1), np.uint8))


@pytest.mark.parametrize("weight", [1e308, 1e200])
def test_weights_that_overflow_are_told_as_such(weight):
    with pytest.raises(DataError, match="Row weights overflow: their sum is"):
        MaximumLikelihoodEstimator(one_node("no", "yes")).fit(
            np.zeros((9, 1), np.uint8), sample_weight=np.full(9, weight)
        )


def test_an_error_keeps_what_it_holds():
    assert CodeRangeError(1, 2, 3, 2, "a").row == 1
