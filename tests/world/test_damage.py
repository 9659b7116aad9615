"""Damaged and hostile tables are refused; none of them ends the process or becomes other states."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from fuzz import readers

from robustbn import BayesianNetwork, RobustEstimator, read_table
from robustbn.cli import main
from robustbn.exceptions import DataError, RobustBNError
from tests.tables import one_node

NETWORK = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["no", "yes"], "b": ["x", "y", "z"]})


def with_offset(values, place, offset):
    """Text of which one offset is another."""
    array = pa.array(values, pa.string())
    offsets = np.frombuffer(array.buffers()[1], np.int32).copy()
    text = pa.StringArray.from_buffers(len(array), pa.py_buffer(offsets), array.buffers()[2])
    offsets[place] = offset  # behind its back
    return text


def with_indices(indices, labels, kind="int32"):
    kind = pa.type_for_alias(kind)
    return pa.DictionaryArray.from_arrays(pa.array(indices, kind), pa.array(labels), safe=False)


def draw_frame(n=200):
    rng = np.random.default_rng(0)
    columns = {node: rng.choice(states, n) for node, states in NETWORK.states.items()}
    return pa.table({**columns, "c": rng.random(n), "l": [[1, 2]] * n})


# --- Arrow --------------------------------------------------------------------------------------


class OverTheBorder:
    """A table of a library that nobody knows, by the C interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


HANDED_OVER = {
    "table": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": lambda table: table.to_reader(),
    "dataset": lambda table: ds.dataset([table]),
    "C interface": OverTheBorder,
    "pandas": lambda table: pd.DataFrame({"a": pd.array(table["a"], pd.ArrowDtype(pa.string()))}),
}


@pytest.mark.parametrize("offset", [-1, -(2**31), 2**31 - 1, 100, 1])
@pytest.mark.parametrize("how", HANDED_OVER)
def test_text_with_an_offset_that_points_elsewhere_is_refused(offset, how):
    table = pa.table({"a": with_offset(["no", "yes", "no", "yes"] * 9, 2, offset)})
    with pytest.raises(DataError, match=r"(?s)column 'a' is damaged: the text of row \d ends"):
        read_table(HANDED_OVER[how](table), one_node("no", "yes"))


def test_text_that_is_no_text_is_refused():
    array = pa.array([b"no", b"\xff\xfe"]).view(pa.string())
    with pytest.raises(DataError, match="The table cannot be read"):
        read_table(pa.table({"a": array}), one_node("no", "yes"))


@pytest.mark.parametrize("index", [2, 7, 256, 257, -2, -128])
@pytest.mark.parametrize("kind", ["int16", "int32", "int64"])
@pytest.mark.parametrize("how", ["table", "reader", "C interface", "file", "stream"])
def test_an_index_outside_of_the_dictionary_is_told_with_row_and_column(index, kind, how, tmp_path):
    indices = [0, 1, 0, index, 1]
    table = pa.table({"a": with_indices(indices, ["no", "yes"], kind)})
    message = rf"column 'a', row 3: category number {index} is not there; there are 2"
    path, network = tmp_path / "t.arrow", one_node("no", "yes")
    feather.write_feather(table, path, compression="uncompressed")
    if how == "stream":
        with pytest.raises(DataError, match=message):
            RobustEstimator(network, place="stream").fit(path)
        return
    with pytest.raises(DataError, match=message):
        read_table(path if how == "file" else HANDED_OVER[how](table), network)


def test_a_category_of_arrow_in_a_far_stretch_is_told_with_its_row():
    indices = np.zeros(200_000, np.int32)
    indices[150_000] = 5
    table = pa.table({"a": with_indices(indices, ["no", "yes"])})
    with pytest.raises(DataError, match="row 150000: category number 5"):
        read_table(table, one_node("no", "yes"))


@pytest.mark.parametrize("code", [2, 5, -2, -100])
def test_tampered_codes_of_pandas_are_told_with_row_and_column(code):
    codes = np.array([0, 1, -1, code, 0], np.int8)
    tampered = pd.Categorical.from_codes([0, 1, -1, 0, 0], ["no", "yes"])
    tampered._ndarray[:] = codes
    with pytest.raises(DataError, match=rf"column 'a', row 3: category number {code} is not there"):
        read_table(pd.DataFrame({"a": tampered}), one_node("no", "yes"))


@pytest.mark.parametrize("n_spare", [0, 1, 3])
def test_a_buffer_with_bytes_to_spare_is_read(n_spare):
    def spare(values, dtype):
        return pa.py_buffer(np.array(values, dtype).tobytes() + b"?" * n_spare)

    indices = pa.Array.from_buffers(pa.int32(), 4, [None, spare([1, 0, 1, 0], "i4")])
    codes = pa.DictionaryArray.from_arrays(indices[1:], pa.array(["no", "yes"]))
    text = pa.StringArray.from_buffers(4, spare([0, 1, 2, 3, 4], "i4"), pa.py_buffer(b"xyzx"))
    rows = read_table(pa.table({"a": codes, "b": text[1:]}), NETWORK)
    np.testing.assert_array_equal(rows.codes, [[0, 1], [1, 2], [0, 0]])


def test_what_may_be_missing_is_no_damage():
    nothing = with_indices([None, None], [])
    read = read_table(pa.table({"a": nothing}), one_node("no", "yes"))
    assert read.reading.n_missing == {"a": 2}


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("kind", ["text", "categories", "views"])
def test_no_change_of_bytes_in_an_arrow_file_ends_the_process(kind, compression, tmp_path):
    table, path = draw_frame(), tmp_path / "t.arrow"
    kinds = {"categories": pa.dictionary(pa.int8(), pa.string()), "views": pa.string_view()}
    for k, node in enumerate(NETWORK.nodes):
        table = table.set_column(k, node, table[node].cast(kinds.get(kind, pa.string())))
    feather.write_feather(table, path, compression=compression, chunksize=64)
    check_mutations(path, 120)


def test_no_change_of_bytes_in_a_parquet_file_ends_the_process(tmp_path):
    pq.write_table(draw_frame(), tmp_path / "t.parquet", row_group_size=50)
    check_mutations(tmp_path / "t.parquet", 120)


def check_mutations(path, n):
    """Our error or a table, and never anything else, of whatever a file is changed into."""
    data = path.read_bytes()
    for seed in range(n):
        path.write_bytes(mutate(data, random.Random(seed)))
        keep = ("l",) if seed % 3 == 0 else ()
        try:
            read_table(path, NETWORK, keep=keep, on_unknown="missing")
        except RobustBNError:
            continue


def mutate(data, rng):
    """Bytes with one to five others, and now and then an end that is missing."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        k = rng.randrange(len(changed))
        odd = [0, 255, 127, 128, rng.randrange(256), changed[k] ^ (1 << rng.randrange(8))]
        changed[k] = rng.choice(odd)
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.05 else changed)


def test_a_damaged_column_that_nobody_reads_does_not_end_clean(tmp_path):
    table = draw_frame().select(["a", "b"])
    table = table.append_column("note", with_offset(["n"] * table.num_rows, 9, -(2**31)))
    feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed")
    NETWORK.write(tmp_path / "net.json")
    done = CliRunner().invoke(
        main,
        ["fit", str(tmp_path / "net.json"), str(tmp_path / "t.arrow"), "--context", "",
         "--clean", str(tmp_path / "out.arrow"), "--drop-distrusted"],
    )  # fmt: skip
    assert done.exit_code == 4
    assert "t.arrow cannot be read" in done.stderr
    assert not (tmp_path / "out.arrow").exists()


def test_a_changed_file_of_any_kind_is_refused_or_read():
    assert readers.run(300, seed=0) == 0
