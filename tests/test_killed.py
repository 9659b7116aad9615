"""Two runs never mix what they write, and a run that is killed goes on to the same bits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from benchmarks.kills import NETWORK, digest_of, settings_in, start_child, write_rows
from fuzz import checkpoints

import robustbn
from robustbn._rows.stream import lock
from robustbn._rows.stream.checkpoint import Checkpoint
from robustbn._rows.stream.lock import holding
from robustbn.exceptions import CheckpointError, DataError, InUseError

HOLDER = """
import sys, time
from pathlib import Path
from robustbn._rows.stream.lock import holding
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
    who = rf"it is in use by another run: process {child.pid} on {socket.gethostname()}, since 20"
    with pytest.raises(InUseError, match=who), holding(file, "it"):
        pass
    child.kill()
    child.communicate()
    assert file.exists()
    with holding(file, "it"):
        assert json.loads(file.read_text())["pid"] == os.getpid()
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


def test_a_forked_child_does_not_keep_a_lock(tmp_path):
    script = HOLDER.replace(
        'print("held", flush=True)',
        "import os\n    if not os.fork(): print(os.getpid(), flush=True)",
    )
    command = [sys.executable, "-c", script, str(tmp_path / ".lock")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    try:
        os.kill(child, 0)
        with holding(tmp_path / ".lock", "it"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


@pytest.fixture
def no_locks(monkeypatch):
    """A file system that knows of no locks."""
    monkeypatch.setattr(lock, "_try_lock", lambda held: False)


def test_where_there_are_no_locks_a_living_owner_keeps_others_out(tmp_path, no_locks):
    child = start_holder(tmp_path / ".lock")
    with pytest.raises(InUseError, match=str(child.pid)), holding(tmp_path / ".lock", "it"):
        pass
    child.kill()
    child.communicate()
    with holding(tmp_path / ".lock", "it"):
        pass


@pytest.mark.parametrize("knows_locks", [False, True])
def test_an_owner_elsewhere_is_dead_once_it_has_been_silent(tmp_path, monkeypatch, knows_locks):
    monkeypatch.setattr(lock, "_try_lock", lambda held: knows_locks)
    file = tmp_path / ".lock"
    owner = {"pid": 7, "began": "1", "host": "elsewhere", "since": "2026-01-01 00:00:00 +0000"}
    file.write_text(json.dumps(owner))
    with (
        pytest.raises(InUseError, match=r"process 7 on elsewhere, since 2026-01-01.*remove .*lock"),
        holding(file, "it"),
    ):
        pass
    silent = time.time() - lock.SILENT_SECONDS - 1
    os.utime(file, (silent, silent))
    with holding(file, "it"):
        pass


def test_an_owner_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "SIGN_SECONDS", 0.01)
    file = tmp_path / ".lock"
    with holding(file, "it"):
        os.utime(file, (0, 0))
        deadline = time.monotonic() + 20
        while file.stat().st_mtime < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert file.stat().st_mtime > 1


def test_what_cannot_be_locked_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CheckpointError, match=r"it cannot be written"),
        holding(tmp_path / "file/.lock", "it"),
    ):
        pass


# --- two runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("weights_to", ".weights_to.lock"),
        ("cache", "cache/.cache.lock"),
        ("checkpoint", "checkpoint/.checkpoint.lock"),
    ],
)
def test_a_second_run_is_refused_while_one_writes_there(name, file, given, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    child = start_holder(tmp_path / file)
    estimator = robustbn.RobustEstimator(NETWORK, random_state=0, **{name: tmp_path / name})
    try:
        with pytest.raises(InUseError, match=rf"{name} is in use by .* {child.pid} on"):
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


@pytest.mark.parametrize("back", [0, 2, 4, 8, 12, 16, 24, 32])
def test_a_run_killed_at_any_of_its_last_changes_goes_on_to_the_same(
    back, given, tmp_path, undisturbed, n_changes
):
    killed = start_child(given, settings_in(tmp_path), n_changes - back)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    if not (tmp_path / "checkpoint/run.json").exists():
        shutil.rmtree(tmp_path / "weights_to")  # all was done, and said so: a new run
    resumed = finish(start_child(given, settings_in(tmp_path), 0))
    assert digest_of(tmp_path, resumed) == undisturbed
    assert not list(tmp_path.rglob(".*"))


def test_weights_in_place_before_the_checkpoint_is_cleared_are_taken_for_done(given, tmp_path):
    settings, kept = settings_in(tmp_path), {"random_state": 0, "place": "stream"}
    first = robustbn.RobustEstimator(NETWORK, **kept, **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robustbn._rows.stream.checkpoint.Checkpoint.clear", interrupt)
        with pytest.raises(KeyboardInterrupt):
            first.fit(given / "rows")
    before = (tmp_path / "weights_to").stat()
    again = robustbn.RobustEstimator(NETWORK, **kept, **settings).fit(given / "rows")
    assert (tmp_path / "weights_to").stat().st_ino == before.st_ino
    assert list((tmp_path / "checkpoint").iterdir()) == []
    alone = robustbn.RobustEstimator(NETWORK, **kept).fit(given / "rows")
    np.testing.assert_array_equal(again.counts_, alone.counts_)


def test_weights_that_somebody_else_put_there_are_not_taken_for_done(given, tmp_path):
    settings, kept = settings_in(tmp_path), {"random_state": 0, "place": "stream"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robustbn._rows.stream.checkpoint.Checkpoint.clear", interrupt)
        with pytest.raises(KeyboardInterrupt):
            robustbn.RobustEstimator(NETWORK, **kept, **settings).fit(given / "rows")
    shutil.rmtree(tmp_path / "weights_to")
    (tmp_path / "weights_to").mkdir()
    with pytest.raises(DataError, match="weights_to exists already"):
        robustbn.RobustEstimator(NETWORK, **kept, **settings).fit(given / "rows")


def interrupt(*_):
    raise KeyboardInterrupt


def test_what_a_killed_run_left_beside_its_target_is_removed(given, tmp_path):
    (tmp_path / ".w.0badcafe.partial").mkdir()
    (tmp_path / ".w.0badcafe.partial/0.parquet").write_text("old")
    (tmp_path / ".other.0badcafe.partial").write_text("somebody's")
    estimator = robustbn.RobustEstimator(NETWORK, random_state=0, weights_to=tmp_path / "w")
    estimator.fit(given / "rows")
    assert sorted(f.name for f in tmp_path.iterdir()) == [".other.0badcafe.partial", "w"]


def test_a_changed_checkpoint_is_refused_or_goes_on_to_the_same():
    assert checkpoints.run(60, seed=0) == 0


def test_a_checkpoint_that_lacks_an_array_is_refused(tmp_path):
    Checkpoint(tmp_path / "c", {}).add("survey", 1, numbers=np.arange(3))
    (file,) = (tmp_path / "c").glob("*.npz")
    file.write_bytes(file.read_bytes().replace(b"numbers", b"nunbers"))
    (stored,) = Checkpoint(tmp_path / "c", {}).load("survey")
    with pytest.raises(CheckpointError, match="is damaged: it lacks 'numbers'"):
        stored["numbers"]


def test_a_checkpoint_that_says_to_be_encrypted_is_refused(tmp_path):
    Checkpoint(tmp_path / "c", {}).add("survey", 1, numbers=np.arange(3))
    (file,) = (tmp_path / "c").glob("*.npz")
    data = bytearray(file.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint(tmp_path / "c", {}).load("survey")
