"""Rows on a Dask cluster give the tables that rows in memory give, whatever happens to workers."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import dask
import dask.bag as db
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustbn
from robustbn._core.config import RobustConfig, TableConfig
from robustbn._learn.completion import complete
from robustbn._learn.conductor import fit_robustly
from robustbn._rows.dask import load as loading
from robustbn._rows.dask import load_on_dask
from robustbn._rows.dask import partition as dask_partition
from robustbn._rows.dask.cluster import add, visit
from robustbn._rows.dask.partition import FoundInRows, Reader, _hold
from robustbn._rows.dask.rows import RowsOnDask
from robustbn._rows.memory import RowsInMemory, gather
from robustbn._rows.stream.find import is_on_dask
from robustbn._tables.coded import as_weights
from robustbn.adversary import corrupt
from robustbn.exceptions import DataError

N_ROWS = 15_000
NETWORK = robustbn.random_network("tree", 12, cards=2, random_state=0)
CONFIG = RobustConfig(seed=3, sample_rows=5000)


def draw_rows():
    """Rows of which a tenth come from elsewhere; some are copies."""
    rng = np.random.default_rng(0)
    codes = robustbn.sample(NETWORK, N_ROWS, random_state=1)
    bad = rng.permutation(N_ROWS)[: N_ROWS // 10]
    codes[bad] = rng.random((len(bad), 12)) < np.linspace(0.1, 0.9, 12)
    codes[bad[:300]] = 1
    return codes


CODES = draw_rows()


def frame_of(codes):
    states = {node: np.array(states, str) for node, states in NETWORK.states.items()}
    frame = pd.DataFrame({n: states[n][codes[:, k]] for k, n in enumerate(NETWORK.nodes)})
    frame.insert(3, "number", np.arange(len(codes)))
    return frame


FRAME = frame_of(CODES)


def fit(data, config=CONFIG, weights=None):
    return fit_robustly(NETWORK, data, weights, config, lambda done: None)[0]


@pytest.fixture(scope="module")
def in_memory():
    found = fit(RowsInMemory(NETWORK, CODES))
    assert found.removed > 0.05
    assert len(found.model.repeats.first)
    return found


def split(n_partitions, frame=FRAME):
    return dd.from_pandas(frame, npartitions=n_partitions, sort=False)


def load(table, config=None, **settings):
    return load_on_dask(NETWORK, table, config or TableConfig(), **settings)


def assert_same(found, expected):
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.plain_counts, expected.plain_counts)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.model.repeats.codes, expected.model.repeats.codes)


def test_without_a_client_it_is_told_how_to_start_one():
    code = "from tests.world.test_dask import FRAME, load; load(FRAME)"  # no cluster runs there
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert "DataError" in ran.stderr
    assert "client = Client()" in ran.stderr


def test_sums_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    parts = rng.random((64, 500)) * 10.0 ** rng.integers(-9, 9, (64, 500))

    def total(order, cut):
        sums = []
        for group in (order[:cut], order[cut:]):
            found = None
            for k in group:
                found = add(found, (parts[k], np.zeros(500)))
            sums.append(found)
        s, lost = add(*sums)
        return s + lost

    expected = total(np.arange(64), 32)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        np.testing.assert_array_equal(total(rng.permutation(64), rng.integers(1, 63)), expected)


@pytest.mark.parametrize("n_partitions", [1, 7, 64])
def test_a_dask_frame_gives_the_tables_of_rows_in_memory(cluster, in_memory, n_partitions):
    rows = load(split(n_partitions))
    assert rows.reading.n_rows == N_ROWS
    assert rows.reading.ignored == ("number",)
    assert is_on_dask(split(2))
    assert not is_on_dask(FRAME)
    assert_same(fit(rows), in_memory)


def test_the_estimator_takes_a_dask_frame_and_tells_of_its_rows(cluster):
    here = robustbn.RobustEstimator(NETWORK, random_state=0).fit(CODES)
    there = robustbn.RobustEstimator(NETWORK, random_state=0).fit(split(7))
    np.testing.assert_allclose(there.counts_, here.counts_, rtol=1e-9)
    np.testing.assert_array_equal(there.row_weights_, here.row_weights_)
    why = [list(fitted.rows()["why"]) for fitted in (here, there)]
    assert why[0] == why[1]
    assert there.reading_.n_rows == len(CODES)
    assert "<html" in there.report()


def test_rows_keep_their_numbers_and_are_counted_even_if_their_trust_stays_behind(
    cluster, monkeypatch
):
    frame = FRAME.copy()
    frame.loc[:40, NETWORK.nodes[0]] = None
    settings = {"random_state": 0, "on_missing": "drop"}
    here = robustbn.RobustEstimator(NETWORK, **settings).fit(frame)
    there = robustbn.RobustEstimator(NETWORK, **settings).fit(split(5, frame))
    assert there.repeats_ == here.repeats_
    monkeypatch.setattr("robustbn._rows.dask.rows.MOST_WEIGHTS_FETCHED", 100)
    behind = robustbn.RobustEstimator(NETWORK, **settings).fit(split(5, frame))
    assert not hasattr(behind, "row_weights_")
    assert behind.result_.judged.trust.n_distrusted == here.result_.judged.trust.n_distrusted > 0
    np.testing.assert_array_equal(behind.result_.judged.numbers, here.result_.judged.numbers)


def test_new_rows_of_a_fit_may_live_on_a_cluster(cluster):
    fit = robustbn.RobustEstimator(NETWORK, random_state=0).fit(FRAME)
    held, elsewhere = fit.update(FRAME[:3_000]), fit.update(split(3, FRAME[:3_000]))
    np.testing.assert_allclose(elsewhere.counts_, held.counts_, rtol=1e-6, atol=1e-6)
    assert elsewhere.reading_.n_rows == len(FRAME) + 3_000


def test_the_rows_drawn_are_those_drawn_in_memory(cluster):
    weights = np.random.default_rng(0).random(N_ROWS)
    rows, expected = load(split(7)), RowsInMemory(NETWORK, CODES)
    for n_most, given in ((1000, None), (N_ROWS, weights)):
        here, there = expected.survey(given, n_most, 5), rows.survey(given, n_most, 5)
        np.testing.assert_array_equal(there.numbers, here.numbers)
        np.testing.assert_array_equal(there.codes, here.codes)
        np.testing.assert_allclose(there.counts, here.counts, rtol=1e-12)
        assert there.n_rows == N_ROWS


def test_weighted_rows_give_the_tables_of_rows_in_memory(cluster):
    weights = np.random.default_rng(0).random(N_ROWS)
    expected = fit(RowsInMemory(NETWORK, CODES), weights=weights)
    found = fit(load(split(5)), weights=weights)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-9)


def test_files_are_read_by_the_workers(cluster, in_memory, tmp_path, monkeypatch):
    for k, start in enumerate(range(0, N_ROWS, 3000)):
        table = pa.Table.from_pandas(FRAME[start : start + 3000], preserve_index=False)
        pq.write_table(table, tmp_path / f"part-{k}.parquet", row_group_size=1000)
    monkeypatch.setattr(loading, "LEAST_ROWS", 1500)
    rows = load(tmp_path)
    assert rows.partitions.sizes == (2000, 1000) * 5
    assert rows.reading.kind == "file"
    assert_same(fit(rows), in_memory)
    assert load(str(tmp_path / "*-3.parquet")).partitions.sizes == (2000, 1000)


def test_columns_in_the_names_of_folders_are_read(cluster, tmp_path):
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    pq.write_to_dataset(table, tmp_path, partition_cols=[NETWORK.nodes[2]])
    counts = load(tmp_path).survey(None, 100, 0).counts
    np.testing.assert_array_equal(counts, RowsInMemory(NETWORK, CODES).rows.count())


def test_text_files_are_read_by_the_workers(cluster, tmp_path):
    FRAME[:300].to_csv(tmp_path / "a.csv", index=False)
    FRAME[300:900].to_csv(tmp_path / "b.csv", index=False)
    np.testing.assert_array_equal(load(tmp_path).fetch(None), CODES[:900])


def test_a_bag_of_batches_is_read(cluster, in_memory):
    frames = [FRAME[s : s + 2500] for s in range(0, N_ROWS, 2500)]
    batches = [pa.RecordBatch.from_pandas(f, preserve_index=False) for f in frames[:4]]
    arrays = [np.ascontiguousarray(CODES[10_000:])]
    rows = load(db.from_sequence([*batches, *arrays], npartitions=3))
    assert_same(fit(rows), in_memory)
    assert rows.reading.ignored == ("number",)


def test_a_bag_of_records_is_read(cluster):
    rows = load(db.from_sequence(FRAME[:500].to_dict("records"), npartitions=4))
    np.testing.assert_array_equal(rows.fetch(None), CODES[:500])


def test_rows_with_missing_and_unknown_values_are_left_out_and_counted(cluster):
    frame = FRAME[:3000].copy()
    a, b = NETWORK.nodes[:2]
    frame.loc[[5, 1700], a] = None
    frame.loc[[5, 2999], b] = "elsewhere"
    config = TableConfig(on_unknown="drop", on_missing="drop")
    rows = load(split(6, frame), config)
    expected = robustbn.read_table(frame, NETWORK, on_unknown="drop", on_missing="drop")
    assert (rows.reading.n_read, rows.reading.n_dropped) == (3000, 3)
    assert rows.reading.n_missing == expected.reading.n_missing == {a: 2}
    assert rows.reading.n_unknown == expected.reading.n_unknown == {b: 2}
    np.testing.assert_array_equal(rows.kept, expected.kept)
    np.testing.assert_array_equal(rows.fetch(None), expected.codes)
    values = np.arange(len(expected), dtype=float)
    np.testing.assert_array_equal(rows.spread(values), expected.spread(values))
    np.testing.assert_array_equal(as_weights(np.arange(3000.0), rows), rows.kept)


def test_errors_name_the_partition_and_the_row(cluster, tmp_path):
    frame = FRAME[:400].copy()
    frame.loc[250, NETWORK.nodes[1]] = "elsewhere"
    with pytest.raises(DataError, match=r"Partition 2, column .* first at row 50: 'elsewhere'"):
        load(split(4, frame))
    frame.loc[250, NETWORK.nodes[1]] = None
    refusing = TableConfig(on_missing="error")
    with pytest.raises(DataError, match=r"Partition 2, column .* first at row 50"):
        load(split(4, frame), refusing)
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"Partition 0 \(.*rows.parquet\), column .* at row 250"):
        load(tmp_path, refusing)
    with pytest.raises(DataError, match=r"Partition 1: Code 9 at row 0, column 0"):
        load(db.from_sequence([CODES[:5], np.full((5, 12), 9, np.uint8)], npartitions=2))
    with pytest.raises(DataError, match="The Dask frame lacks 1 of the network's columns"):
        load(split(2, FRAME[:20].drop(columns=NETWORK.nodes[4])))


def test_what_cannot_be_done_on_a_cluster_is_told(cluster):
    with pytest.raises(DataError, match="found pandas"):
        load(FRAME)
    for bins in ("q3", 3, {NETWORK.nodes[0]: "q3"}):
        with pytest.raises(DataError, match="Give their inner edges"):
            load(split(2), TableConfig(bins=bins))
    with pytest.raises(DataError, match="There are no rows"):
        load(split(1, FRAME[:0]))


def test_empty_partitions_do_no_harm(cluster):
    frame = split(8)
    rows = load(frame[frame["number"] < 6000])
    assert 0 in rows.partitions.sizes
    expected = RowsInMemory(NETWORK, CODES[:6000])
    assert_same(fit(rows), fit(expected))
    np.testing.assert_array_equal(rows.fetch(None), CODES[:6000])


def test_a_partition_travels_without_its_packed_rows(cluster):
    rows = load(split(1))
    held = rows.partitions.futures[0].result()
    assert "rows" not in held.__dict__
    before = held.__sizeof__()
    assert held.rows.n_rows == N_ROWS
    assert held.__sizeof__() > before > CODES.nbytes
    assert "rows" not in pickle.loads(pickle.dumps(held)).__dict__  # noqa: S301


def kill_at(cluster, *moments):
    """Return a `progress` that kills one worker at each moment, each time another process."""
    waiting, killed = list(moments), []

    def progress(what, done, total):
        if waiting and (what, done) == waiting[0]:
            waiting.pop(0)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                pids = [n.pid for n in cluster.workers.values() if n.pid not in (None, *killed)]
                if pids:
                    break
                time.sleep(0.05)
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    return progress, killed


@pytest.fixture(scope="module")
def undisturbed(cluster):
    return fit(load(split(12)))


@pytest.mark.parametrize(
    "moments",
    [
        [("encoding partitions", 3)],
        [("counting rows", 0)],
        [("fetching rows", 0)],
        [("judging rows", 0)],
        [("counting rows", 0), ("judging rows", 0)],
    ],
    ids=lambda moments: "+".join(what.split()[0] for what, _ in moments),
)
def test_a_killed_worker_does_not_change_the_tables(cluster, in_memory, undisturbed, moments):
    progress, killed = kill_at(cluster, *moments)
    found = fit(load(split(12), progress=progress))
    assert len(set(killed)) == len(moments)
    np.testing.assert_array_equal(found.counts, undisturbed.counts)
    assert_same(found, in_memory)


def test_a_worker_killed_while_it_judges_does_not_change_the_counts(cluster):
    def weigh(rows):
        time.sleep(0.1)
        return rows.score(table)

    table = np.random.default_rng(0).random((NETWORK.n_cells, 1))
    rows = load(split(8))
    first = rows.judge(lambda rows: rows.score(table), None)
    pid = next(iter(cluster.workers.values())).pid
    timer = threading.Timer(0.25, os.kill, (pid, signal.SIGKILL))
    timer.start()
    again = rows.judge(weigh, None)
    timer.join()
    assert pid not in [nanny.pid for nanny in cluster.workers.values()]
    np.testing.assert_array_equal(again.counts, first.counts)
    np.testing.assert_array_equal(again.trust, first.trust)


def test_partitions_that_the_cluster_has_forgotten_are_made_again(cluster):
    rows = load(split(6))
    wanted = rows.survey(None, 1000, 0).counts
    client = rows.partitions.client
    client.cancel(rows.partitions.futures[1:3], force=True)
    np.testing.assert_array_equal(rows.survey(None, 1000, 0).counts, wanted)
    weights = np.ones(N_ROWS)
    np.testing.assert_array_equal(rows.survey(weights, 1000, 0).counts, wanted)
    client.cancel(rows.partitions.sent.futures, force=True)
    np.testing.assert_array_equal(rows.survey(weights, 1000, 0).counts, wanted)


def test_partitions_forgotten_while_they_are_made_are_made_again(cluster, in_memory):
    forgotten = []

    def progress(what, done, total):
        if (what, done) == ("encoding partitions", 0) and not forgotten:
            client = distributed.default_client()
            forgotten.extend(client.futures)
            client.cancel([distributed.Future(key, client) for key in forgotten], force=True)

    assert_same(fit(load(split(6), progress=progress)), in_memory)
    assert forgotten


def test_rows_that_were_lost_with_a_worker_are_told_of(cluster):
    client = distributed.default_client()
    held = client.scatter([FRAME.iloc[:500], FRAME.iloc[500:1000]])
    table = dd.from_delayed([dask.delayed(future) for future in held], meta=FRAME.iloc[:0])
    rows = load(table)
    client.cancel([*held, *rows.partitions.futures], force=True)
    with pytest.raises(DataError, match=r"counting rows, the cluster lost .* from files") as e:
        rows.survey(None, 100, 0)
    assert "\n" not in str(e.value)


def test_rows_that_miss_values_are_learned_from_on_a_cluster(cluster):
    alarm = robustbn.example_network("alarm")
    bad, _ = corrupt(robustbn.sample(alarm, 6000, 0), alarm, "network", 0.1, 0)
    frame = pd.DataFrame({n: bad[:, i].astype(float) for i, n in enumerate(alarm.nodes)})
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    labels = {n: dict(enumerate(alarm.states[n])) for n in alarm.nodes}
    for node in alarm.nodes:
        frame[node] = frame[node].map(labels[node])
    settings = {"random_state": 0, "prior": "laplace", "pseudo_count": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = robustbn.RobustEstimator(alarm, **settings).fit(frame)
        there = robustbn.RobustEstimator(alarm, **settings).fit(
            dd.from_pandas(frame, npartitions=3)
        )
    assert here.reading_.n_holes == there.reading_.n_holes > 10_000
    assert there.inferred_.is_converged
    np.testing.assert_allclose(there.counts_, here.counts_, rtol=1e-4, atol=1e-2)


# --- rows that miss values, without a cluster -----------------------------------------------------


class PartitionsHere:
    """Partitions in this process, asked as a worker would ask those it holds."""

    def __init__(self, held):
        self.held, self.n_rows = held, sum(len(each.codes) for each in held)

    def ask(self, what, question, *, weights=None, given=None):
        total, answers = visit(question, self.held, given)
        return np.zeros(0) if total is None else total[0] + total[1], answers


@pytest.fixture
def holed_rows(monkeypatch):
    """Rows in three partitions that miss so many values that some questions are sampled."""
    monkeypatch.setattr("robustbn._rows.kernels.native.LARGEST_TABLE", 8)
    monkeypatch.setattr("robustbn._rows.kernels.native.SWEEPS", 128)
    network = robustbn.random_network("graph", 20, 100, random_state=0)
    codes = robustbn.sample(network, 600, random_state=0)
    codes[np.random.default_rng(0).random(codes.shape) < 0.4] = 2
    codes[200:400] = codes[:200]  # the same questions in two partitions
    table = robustbn.read_table(np.where(codes == 2, np.nan, codes), network)
    reader = Reader(network, table.reading.config, "native")
    parts = [robustbn.read_table(np.where(c == 2, np.nan, c), network) for c in np.split(codes, 3)]
    held = [_hold([part], k, reader) for k, part in enumerate(parts)]
    founds = tuple(each.found for each in held)
    found = FoundInRows.join(founds)
    there = PartitionsHere(held)
    rows = RowsOnDask(network, there, table.reading, founds, found, (), "native", None)
    return rows, RowsInMemory(network, codes, "native", 1, tuple(range(20)))


def trust_half(rows):
    return np.full(rows.n_rows, 0.5, np.float32)


def test_on_a_cluster_it_is_known_before_the_first_step_what_is_sampled(holed_rows):
    there, here = (rows.judge(trust_half, None, gathers=True).holes for rows in holed_rows)
    assert there.n_sampled == here.n_sampled > 50


def test_on_a_cluster_sampled_values_have_their_errors(holed_rows):
    there, here = (rows.judge(trust_half, None, gathers=True).holes for rows in holed_rows)
    q = holed_rows[0].network.probabilities
    found, expected = there.expect(q), here.expect(q)
    errors = np.hypot(found.standard_errors, expected.standard_errors)
    off = (found.counts - expected.counts)[errors > 0.01] / errors[errors > 0.01]
    assert 0.6 < np.sqrt(np.mean(off**2)) < 1.6
    assert found.standard_errors.sum() < expected.standard_errors.sum()  # drawn anew in each part
    np.testing.assert_array_equal(there.expect(q).counts, found.counts)


def test_on_a_cluster_no_step_is_stretched_where_values_are_sampled(holed_rows):
    rows = holed_rows[0]
    judged, layout = rows.judge(trust_half, None, gathers=True), rows.network.layout
    told = []

    found = complete(
        layout,
        0.5,
        judged.counts,
        judged.holes,
        tell=lambda n_steps, left: told.append(n_steps),
    )
    assert found.inferred.is_converged
    assert found.sampling_errors is not None
    assert told == list(
        range(2, found.inferred.n_steps + 1)
    )  # with stretched ones between: 2, 5, ...


def test_what_rows_with_holes_ask_is_gathered_once_a_verdict(holed_rows, monkeypatch):
    rows, gathered = holed_rows[0], []

    def counting(*given, **settings):
        gathered.append(settings["seed"])
        return gather(*given, **settings)

    monkeypatch.setattr(dask_partition, "gather", counting)
    holes = rows.judge(trust_half, None, gathers=True).holes
    q = rows.network.probabilities
    found = [holes.expect(q).counts for _ in range(3)]
    assert gathered == [0, 1, 2]
    rows.partitions.held[1] = pickle.loads(pickle.dumps(rows.partitions.held[1]))  # noqa: S301
    np.testing.assert_array_equal(holes.expect(q).counts, found[0])  # as if it had moved
    assert gathered == [0, 1, 2, 1]
    rows.judge(trust_half, None, gathers=True)
    assert [len(each.asked) for each in rows.partitions.held] == [1, 1, 1]
