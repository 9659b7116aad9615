"""Two runs never mix what they write; a run that is killed leaves nothing half-written."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustbn
from robustbn._rows.stream import weights as stream_weights
from robustbn._rows.stream.weights import WeightFiles, holding
from robustbn.adversary import corrupt
from robustbn.exceptions import DataError, InUseError

NETWORK = robustbn.random_network("tree", 12, random_state=3)
N_ROWS, N_FILES = 24_000, 6

CHILD = """
import os, pathlib, signal, sys
import numpy as np
from robustbn import RobustEstimator, Streaming, read_network
folder, settings, number = pathlib.Path(sys.argv[1]), eval(sys.argv[2]), int(sys.argv[3])
n_changes = 0

def dying(change):
    def changed(*values, **named):
        global n_changes
        n_changes += 1
        if n_changes == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return change(*values, **named)
    return changed

for name in ("replace", "unlink", "mkdir"):
    setattr(pathlib.Path, name, dying(getattr(pathlib.Path, name)))
print("begun", flush=True)
network = read_network(folder / "network.json")
streaming = Streaming(**settings)
fit = RobustEstimator(network, place="stream", random_state=0, streaming=streaming)
fit.fit(folder / "rows")
np.savez(sys.stdout.buffer, counts=fit.counts_, weights=fit.row_weights_)
print(n_changes, file=sys.stderr)
"""


def write_rows(folder):
    """Write a network and bad rows in several files."""
    rows = robustbn.sample(NETWORK, N_ROWS, random_state=3)
    codes = corrupt(rows, NETWORK, "flipped", eps=0.15, random_state=3)[0]
    (folder / "rows").mkdir(parents=True)
    robustbn.write_network(NETWORK, folder / "network.json")
    for k, piece in enumerate(np.array_split(codes, N_FILES)):
        table = pa.table({n: piece[:, i].astype(str) for i, n in enumerate(NETWORK.nodes)})
        pq.write_table(table, folder / f"rows/{k}.parquet")


def start_child(folder, settings, number):
    """Start a fit that kills itself before its change of files of that number; 0: never."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), repr(settings)]
    return subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def writing_to(path):
    """Return an estimator that writes the trust in each row."""
    streaming = robustbn.Streaming(weights_to=path)
    return robustbn.RobustEstimator(NETWORK, random_state=0, streaming=streaming)


def settings_in(folder):
    """Return settings under which a run keeps and writes all that it can."""
    return {name: str(folder / name) for name in ("cache", "weights_to")}


def digest_of(folder, printed):
    """Return a digest of what a run has printed, and of all files of weights."""
    digest = hashlib.sha256(printed.partition(b"begun\n")[2])
    for file in sorted((folder / "weights_to").rglob("*.parquet")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


HOLDER = """
import sys, time
from pathlib import Path
from robustbn._rows.stream.weights import holding
with holding(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    time.sleep(60)
"""


def start_holder(file):
    """Return another process that holds a lock."""
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"held\n"
    return child


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given") / "here"
    write_rows(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(given, tmp_path_factory):
    """What a run prints and writes that nothing happens to."""
    out = tmp_path_factory.mktemp("undisturbed")
    return digest_of(out, finish(start_child(given, settings_in(out), 0)))


@pytest.fixture(scope="module")
def n_changes(given, tmp_path_factory):
    """How often such a run changes files."""
    child = start_child(given, settings_in(tmp_path_factory.mktemp("counted")), 0)
    return int(child.communicate()[1].split()[-1])


def finish(child):
    printed, told = child.communicate()
    assert child.returncode == 0, told.decode()
    return printed


# --- locks ----------------------------------------------------------------------------------------


def test_a_lock_says_who_holds_it_and_is_free_once_its_owner_is_killed(tmp_path):
    file = tmp_path / ".lock"
    child = start_holder(file)
    who = rf"it is in use by another run: process {child.pid} on {socket.gethostname()}\."
    with pytest.raises(InUseError, match=who), holding(file, "it"):
        pass
    child.kill()
    child.communicate()
    assert file.exists()
    with holding(file, "it") as is_alone:
        assert is_alone
        assert f"process {os.getpid()} on" in file.read_text()
    assert not file.exists()


def test_a_lock_keeps_out_the_same_process_too(tmp_path):
    with (
        holding(tmp_path / ".lock", "it"),
        pytest.raises(InUseError, match=f"process {os.getpid()} on"),
        holding(tmp_path / ".lock", "it"),
    ):
        pass
    with holding(tmp_path / ".lock", "it"):
        pass


@pytest.fixture
def no_locks(monkeypatch):
    """A file system that knows of no locks."""
    monkeypatch.setattr(stream_weights, "_try_lock", lambda held: False)


def test_where_there_are_no_locks_runs_write_apart_and_leave_alone_what_others_write(
    tmp_path, no_locks
):
    (tmp_path / ".w.0badcafe.partial").write_text("another's")
    with holding(tmp_path / ".w.lock", "it") as is_alone, holding(tmp_path / ".w.lock", "it"):
        assert not is_alone
        runs = [WeightFiles(tmp_path / "w", ["0.parquet"], is_alone=is_alone) for _ in range(2)]
        for weight, files in enumerate(runs):
            files.add(0, 0, np.full(5, float(weight)))
        runs[0].finish()
        with pytest.raises(DataError, match="w exists already"):
            runs[1].finish()
        runs[1].discard()
    assert pq.read_table(tmp_path / "w")["weight"].to_pylist() == [0.0] * 5
    assert (tmp_path / ".w.0badcafe.partial").read_text() == "another's"


def test_what_cannot_be_locked_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match=r"it cannot be written"),
        holding(tmp_path / "file/.lock", "it"),
    ):
        pass


@pytest.mark.parametrize("how", ["link", "link to nothing", "hard link", "file"])
def test_what_is_no_lock_of_ours_is_refused_and_left_alone(how, tmp_path):
    precious, file = tmp_path / "precious.txt", tmp_path / ".w.parquet.lock"
    if how != "link to nothing":
        precious.write_text("mine")
    if how == "file":
        precious.rename(file)
    elif how == "hard link":
        os.link(precious, file)
    else:
        file.symlink_to(precious)
    before = contents_of(tmp_path)
    with (
        pytest.raises(DataError, match=r"it cannot be locked: .*\.lock is not a lock file of"),
        holding(file, "it"),
    ):
        pass
    assert contents_of(tmp_path) == before


def contents_of(folder):
    """What is below a folder: where links point to, and what files hold."""
    found = {f.relative_to(folder).as_posix(): f for f in folder.rglob("*")}
    return {
        name: str(f.readlink()) if f.is_symlink() else f.read_bytes() if f.is_file() else None
        for name, f in found.items()
    }


# --- two runs -------------------------------------------------------------------------------------


def test_a_second_run_is_refused_while_one_writes_there(given, tmp_path):
    child = start_holder(tmp_path / ".w.lock")
    estimator = writing_to(tmp_path / "w")
    try:
        with pytest.raises(InUseError, match=rf"w is in use by .* {child.pid} on"):
            estimator.fit(given / "rows")
    finally:
        child.kill()
        child.communicate()
    estimator.fit(given / "rows")


def test_runs_that_start_together_end_in_one_result_and_refusals(given, tmp_path, undisturbed):
    children = [start_child(given, settings_in(tmp_path), 0) for _ in range(2)]
    ended = [(*child.communicate(), child.returncode) for child in children]
    good = [printed for printed, _, code in ended if code == 0]
    refused = [told.decode() for _, told, code in ended if code]
    assert len(good) == 1
    assert all("in use by another run" in told or "exists already" in told for told in refused)
    assert digest_of(tmp_path, good[0]) == undisturbed


# --- kills ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", range(4))
def test_a_run_killed_at_any_of_its_last_changes_leaves_all_or_nothing_and_the_next_gives_the_same(
    back, given, tmp_path, undisturbed, n_changes
):
    killed = start_child(given, settings_in(tmp_path), n_changes - back)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    if (tmp_path / "weights_to").exists():
        assert len(list((tmp_path / "weights_to").iterdir())) == N_FILES
        shutil.rmtree(tmp_path / "weights_to")
    again = finish(start_child(given, settings_in(tmp_path), 0))
    assert digest_of(tmp_path, again) == undisturbed
    assert not list(tmp_path.rglob(".*"))
    assert not list((tmp_path / "cache").iterdir())


def test_what_a_killed_run_left_beside_its_target_is_removed(given, tmp_path):
    (tmp_path / ".w.0badcafe.partial").mkdir()
    (tmp_path / ".w.0badcafe.partial/0.parquet").write_text("old")
    (tmp_path / ".other.0badcafe.partial").write_text("somebody's")
    estimator = writing_to(tmp_path / "w")
    estimator.fit(given / "rows")
    assert sorted(f.name for f in tmp_path.iterdir()) == [".other.0badcafe.partial", "w"]


def test_what_only_looks_like_the_rest_of_a_killed_run_is_left_alone(given, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/0.parquet").write_text("mine")
    (tmp_path / ".w.notes.partial").write_text("mine, too")
    (tmp_path / ".w.0badcafe.partial").symlink_to(tmp_path / "precious")
    before = contents_of(tmp_path)
    writing_to(tmp_path / "w").fit(given / "rows")
    found = contents_of(tmp_path)
    assert {name: found.get(name) for name in before} == before
    assert {name for name in found if not name.startswith("w/")} == {*before, "w"}


def test_weights_do_not_replace_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "w").symlink_to(tmp_path / "later")
    with pytest.raises(DataError, match="w exists already"):
        WeightFiles(tmp_path / "w", ["0.parquet"], is_alone=True)
