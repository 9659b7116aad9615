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
from robustbn._rows.stream.weights import WeightFiles
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
        pytest.raises(
            CheckpointError, match=r"it cannot be locked: .*\.lock is no lock of robustbn"
        ),
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


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("weights_to", ".weights_to.lock"),
        ("checkpoint", "checkpoint/.checkpoint.lock"),
    ],
)
def test_a_second_run_is_refused_while_one_writes_there(name, file, given, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    child = start_holder(tmp_path / file)
    estimator = robustbn.RobustEstimator(
        NETWORK, random_state=0, streaming=robustbn.Streaming(**{name: tmp_path / name})
    )
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
    assert not list((tmp_path / "cache").iterdir())


def test_weights_in_place_before_the_checkpoint_is_cleared_are_taken_for_done(given, tmp_path):
    settings = {"streaming": robustbn.Streaming(**settings_in(tmp_path))}
    kept = {"random_state": 0, "place": "stream"}
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
    settings = {"streaming": robustbn.Streaming(**settings_in(tmp_path))}
    kept = {"random_state": 0, "place": "stream"}
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
    estimator = robustbn.RobustEstimator(
        NETWORK, random_state=0, streaming=robustbn.Streaming(weights_to=tmp_path / "w")
    )
    estimator.fit(given / "rows")
    assert sorted(f.name for f in tmp_path.iterdir()) == [".other.0badcafe.partial", "w"]


def test_what_only_looks_like_the_rest_of_a_killed_run_is_left_alone(given, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/0.parquet").write_text("mine")
    (tmp_path / ".w.notes.partial").write_text("mine, too")
    (tmp_path / ".w.0badcafe.partial").symlink_to(tmp_path / "precious")
    before = contents_of(tmp_path)
    robustbn.RobustEstimator(
        NETWORK, random_state=0, streaming=robustbn.Streaming(weights_to=tmp_path / "w")
    ).fit(given / "rows")
    found = contents_of(tmp_path)
    assert {name: found.get(name) for name in before} == before
    assert {name for name in found if not name.startswith("w/")} == {*before, "w"}


@pytest.mark.parametrize("link", [".w.0badcafe.partial", ".w.0badcafe.partial/a/0.parquet"])
def test_weights_are_not_written_through_links_that_a_killed_run_did_not_make(link, tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "precious")
    before = contents_of(tmp_path)
    with pytest.raises(DataError, match=r"partial.* is a link"):
        WeightFiles(tmp_path / "w", ["a/0.parquet", "b/0.parquet"], "0badcafe")
    assert contents_of(tmp_path) == before


def test_weights_do_not_replace_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "w").symlink_to(tmp_path / "later")
    with pytest.raises(DataError, match="w exists already"):
        WeightFiles(tmp_path / "w", ["0.parquet"])


PARTIAL = ".survey-000001.npz.0123456789abcdef0123456789abcdef.partial"


@pytest.mark.parametrize("why", ["other files", "another run", "no checkpoint"])
def test_a_folder_that_is_refused_as_a_checkpoint_loses_nothing(why, tmp_path):
    if why == "another run":
        Checkpoint(tmp_path, {"network": "another"})
        (tmp_path / PARTIAL).write_text("another's")
    if why == "other files":
        (tmp_path / "rows.csv").write_text("mine")
        (tmp_path / PARTIAL).write_text("perhaps mine")
    (tmp_path / ".notes.partial").write_text("mine")
    before = contents_of(tmp_path)
    with pytest.raises(CheckpointError, match=r"no checkpoint|belongs to another run"):
        Checkpoint(tmp_path, {"network": "n"})
    assert contents_of(tmp_path) == before


@pytest.mark.parametrize("has_label", [True, False])
def test_a_checkpoint_removes_only_what_it_made(has_label, tmp_path):
    (tmp_path / PARTIAL.replace("survey-000001.npz", "run.json")).write_text("ours")
    if has_label:
        Checkpoint(tmp_path, {"network": "n"}).add("survey", 1, a=np.arange(3))
        (tmp_path / PARTIAL).write_text("ours")
        for name in (".notes.partial", "survey-final.npz", ".survey.json.mine.partial"):
            (tmp_path / name).write_text("mine")
    checkpoint = Checkpoint(tmp_path, {"network": "n"})
    checkpoint.load("survey")
    checkpoint.clear()
    kept = [".notes.partial", ".survey.json.mine.partial", "survey-final.npz"] if has_label else []
    assert sorted(contents_of(tmp_path)) == kept


@pytest.mark.parametrize("name", ["run.json", "survey-000001.npz", "verdict.json", PARTIAL])
def test_a_checkpoint_with_a_link_in_it_is_refused_and_left_alone(name, tmp_path):
    checkpoint = Checkpoint(tmp_path / "run", {"network": "n"})
    checkpoint.add("survey", 1, a=np.arange(3))
    checkpoint.save_document("verdict", {})
    file = tmp_path / "run" / name
    file.touch()
    file.rename(tmp_path / "precious")
    file.symlink_to(tmp_path / "precious")
    before = contents_of(tmp_path)
    with pytest.raises(CheckpointError, match=f"{name} is damaged: it is a link"):
        Checkpoint(tmp_path / "run", {"network": "n"})
    assert contents_of(tmp_path) == before


@pytest.mark.parametrize("run", ["../../precious", "x", 7, ["0badcafe"]])
def test_a_checkpoint_names_no_other_place_for_weights(run, given, tmp_path):
    streaming = robustbn.Streaming(**settings_in(tmp_path))
    settings = {"streaming": streaming, "random_state": 0, "place": "stream"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robustbn._learn.places.CodeCache", interrupt)
        with pytest.raises(KeyboardInterrupt):
            robustbn.RobustEstimator(NETWORK, **settings).fit(given / "rows")
    label = tmp_path / "checkpoint/run.json"
    label.write_text(json.dumps(json.loads(label.read_text()) | {"run": run}))
    with pytest.raises(CheckpointError, match=r"run\.json is damaged: .*run"):
        robustbn.RobustEstimator(NETWORK, **settings).fit(given / "rows")


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
