"""Values in another form than their column: what is rewritten, and what is left as it is."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from robustbn._learn.rewriting import rewrite_column, rewrite_table, split_joined
from robustbn._tables.date_forms import decide_days, read_day
from robustbn._tables.number_forms import find_number_form, read_numbers

RNG = np.random.default_rng(0)
PRICES = [f"{x:.2f}" for x in RNG.lognormal(7, 1, 500)]
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(int(k)) for k in RNG.integers(0, 900, 500)]
PHONES = [f"{a}-{b}-{c}" for a, b, c in RNG.integers(200, 999, (500, 3))]
CITIES = ["New York", "Boston", "Los Angeles", "Salt Lake City", "Denver"] * 100
TAILS = [f"N{x}{'QX' if x > 400 else 'W'}" for x in range(300, 560, 13)] * 25
WHOLE = [f"{x}" for x in RNG.integers(10000, 99999, 500)]
DEPARTMENTS = [f"{a}{b}XY" for a in "ABCDEFGH" for b in "KLMNOPQR"] * 10
NAMES = [f"SHOP {a} OF {b}" for a, b in zip(PHONES, "ABCDE" * 100, strict=True)]


def rewritten(column, **options):
    """Return what a column becomes at a probability of 0.9."""
    return rewrite_table({"x": column}, 0.9, **options).columns["x"]


def spoil(column, write):
    """Return a column of which every eleventh value is written in another way."""
    return [write(value) if k % 11 == 0 else value for k, value in enumerate(column)]


def iso(days):
    return [day.isoformat() for day in days]


@pytest.mark.parametrize(
    ("column", "write"),
    [
        (PRICES, lambda x: f"${float(x):,.2f}"),
        (PRICES, lambda x: f"{float(x):,.2f} USD"),
        (PRICES, lambda x: f"US$ {x}"),
        ([f"-{x}" for x in PRICES], lambda x: f"$-{x[1:]}"),
        (PRICES, lambda x: x.replace(".", ",")),
        ([f"€{x}" for x in PRICES], lambda x: f"{x[1:]} €"),
        ([f"{float(x):.0f} mi" for x in PRICES], lambda x: x.replace("mi", "Miles")),
        ([f"{float(x):.0f}" for x in PRICES], lambda x: f"{x}.00"),
        (iso(DAYS), lambda x: f"{x[5:7]}/{x[8:]}/{x[:4]}"),
        (iso(DAYS), lambda x: dt.date.fromisoformat(x).strftime("%d %b %Y")),
        ([f"{day:%d.%m.%Y}" for day in DAYS], lambda x: f"{x[6:]}-{x[3:5]}-{x[:2]}"),
        (PHONES, lambda x: x.replace("-", ".")),
        (PHONES, lambda x: x.replace("-", "")),
        (PHONES, lambda x: "({}) {}-{}".format(*x.split("-"))),
        ([x.replace("-", "") for x in PHONES], lambda x: f"{x[:3]} {x[3:6]} {x[6:]}"),
        (CITIES, str.upper),
        (CITIES, lambda x: f" {x}"),
        (NAMES, str.title),
        (TAILS, str.lower),
        ([*PRICES, *["NA"] * 50], lambda x: {"NA": "n/a"}.get(x, x)),
    ],
)
def test_values_that_say_the_same_are_written_as_most_of_their_column(column, write):
    dirty = spoil(column, write)
    assert dirty != column
    assert rewritten(dirty) == column
    assert rewritten(column) == column


@pytest.mark.parametrize(
    "column",
    [
        spoil([f"{x:.0f} kg" for x in RNG.normal(70, 9, 500)], lambda x: f"{int(x[:2]) * 2} lb"),
        spoil(PRICES, lambda x: f"{float(x) / 1000:.2f}k"),
        [f"${x}" if k % 3 else f"€{x}" for k, x in enumerate(PRICES)],
        spoil([f"{x}" for x in RNG.integers(1, 5, 500)], lambda _: "1OT"),
        spoil([f"{x}" for x in RNG.integers(1, 5, 500)], lambda _: ">4"),
        spoil([f"{x:.0f}" for x in RNG.normal(70, 9, 500)], lambda x: f"{int(x) * 1.4:.0f} lb"),
        spoil(WHOLE, lambda x: f"<{x}"),
        spoil(WHOLE, lambda x: f"{x}+"),
        spoil(WHOLE, lambda x: f"{x[:2]}.{x[2:]}"),
        spoil([f"{x[0]}-{x[1]}" for x in WHOLE], lambda x: x.replace("-", "")),
        [*(f"{x / 10}" for x in range(40, 80)), "25,500", "14,600", "11111"],
        ["15A" if k == 0 else "65A" if k == 1 else str(k) for k in range(50)],
        [f"{x}{y}" for x, y in zip("ABCDE" * 100, RNG.integers(1, 99, 500), strict=True)],
        spoil([f"{x}-{y}-{z}" for x, y, z in zip(*RNG.integers([111, 11, 1111], [999, 99, 9999],
              (500, 3)).T, strict=True)], lambda x: f"{x[:2]}-{x[2:].replace('-', '')}"),
        [str(x) for x in np.r_[RNG.normal(size=400), RNG.integers(0, 9, 100)]],
        [f"{day:%m/%d/%Y}" for day in DAYS if day.day < 13] + ["2020-05-06"],
        ["A", "A", "a"] * 100,
        ["CO2", "NO2", "SO2", "PM10"] * 100 + ["Pb"] * 20,
        [*NAMES, "Pb", "Fe", "iPhone 4"],
        [*DEPARTMENTS, *["Graduate"] * 10],
        ["Alpha", "Beta", "Gamma", "May"] * 100 + ["NATO"] * 20 + ["MAY"] * 2,
        ["JAMA", "Jama", *(f"Journal {k}" for k in range(98))],
        [f"the {x} of  {y}" for x, y in zip(PHONES, PRICES, strict=True)],
        ["", "*", "*", "*", *PRICES],
        ["NA", "n/a", "US", "DE", "FR"] * 50,
        [],
        ["", ""],
    ],
)  # fmt: skip
def test_a_form_that_may_say_something_is_left(column):
    assert rewritten(column) == column


def test_a_column_without_a_common_form_is_left_unless_plain_forms_are_asked_for():
    sizes = [f"{x:g}.0" for x in RNG.integers(8, 33, 600)]
    column = [f"{x}{unit}" for x, unit in zip(sizes, [" oz", " oz.", " ounce"] * 200, strict=True)]
    column[:3] = ["N/A"] * 3
    assert rewritten(column) == column
    assert rewritten(column, is_plain=True)[3:] == [x[:-2] for x in sizes[3:]]
    assert rewritten(column, is_plain=True)[:3] == ["", "", ""]
    two = [f"{x} kg" if k % 2 else f"{x} lb" for k, x in enumerate(sizes)]
    assert rewritten(two, is_plain=True) == two
    assert rewritten(["33.0"] * 4, is_plain=True) == ["33.0"] * 4
    one = [f"{x} oz" for x in sizes]
    assert rewritten(one, is_plain=True) == one
    assert rewritten(spoil(one, str.upper), is_plain=True) == one


def test_noise_of_binary_fractions_goes_with_the_unit_and_stays_without():
    column = ["0.05", "0.06", "0.07", "0.08", "0.09", "0.04"] * 20 + ["0.055999999999999994"] * 2
    column += [f"0.0{k}%" for k in range(5, 9)]
    column += ["0.057999999999999996%", "0.05123456789123456%"]
    changed = rewrite_column(column)
    assert changed["0.05123456789123456%"].likely == "0.05123456789123456"
    assert changed["0.057999999999999996%"].likely == "0.058"
    assert "0.055999999999999994" not in changed


def test_a_number_with_decimals_is_no_code_with_a_point_in_it():
    column = [f"{x[:2]}-{x[2:]}" if k % 9 == 0 else x for k, x in enumerate(WHOLE)]
    column[1] = "12.345"
    changed = rewrite_column(column)
    assert changed[column[0]].likely == WHOLE[0]
    assert "12.345" not in changed


def test_the_probability_is_that_of_the_evidence():
    few, many = (rewrite_column([*PRICES, *(f"${x}" for x in PRICES[:n])]) for n in (2, 50))
    text = f"${PRICES[0]}"
    assert few[text].probability < 0.9 < many[text].probability <= 1
    found = rewrite_table({"x": [*PRICES, f"${PRICES[0]}"]}, 0.9)
    assert (found.changes, found.n_doubtful) == ({}, 1)


def test_a_value_that_holds_that_of_an_empty_column_is_split():
    states = ["NY", "MA", "CA", "UT", "CO"] * 100
    cities, left = CITIES.copy(), states.copy()
    for k in range(0, 500, 50):
        cities[k + k % 7], left[k + k % 7] = f"{CITIES[k + k % 7]}, {states[k + k % 7]}", ""
    found = rewrite_table({"city": cities, "state": left}, 0.9)
    assert found.columns == {"city": CITIES, "state": states}
    assert len(found.changes) == 20
    left[300:340] = states[300:340] = [""] * 40  # missing without a trace, but for one
    found = rewrite_table({"city": cities, "state": left}, 0.9)
    assert found.columns["city"] == CITIES
    assert found.columns["state"].count("") == 39


def test_one_text_that_ends_with_a_label_may_do_so_by_chance():
    states = ["NY", "MA", "CA", "UT", "CO"] * 100
    cities, states[:20] = CITIES.copy(), [""] * 20
    cities[0] = "New York NY"
    assert all(0.5 < each.probability < 0.9 for each in split_joined({"x": cities, "y": states}))


def test_a_remark_that_ends_with_a_label_is_not_split():
    remarks = [f"seen {k} near the coast of CA" if k < 40 else f"remark {k}" for k in range(500)]
    anywhere = [["CA", "NY", ""][k % 3] for k in range(500)]
    missing = ["" if k % 5 == 0 or k < 40 else "CA" for k in range(500)]  # told in the remark
    for states in (anywhere, missing):
        splits = list(split_joined({"x": remarks, "y": states}))
        assert splits
        assert all(split.probability < 0.9 for split in splits)


def test_a_day_in_two_orders_is_told_by_its_kind_and_else_left():
    common = next(iter(read_day("2024-03-17")))
    texts = ["03/07/2024", "03/17/2024", "2024/05/06"]
    days = decide_days([read_day(text) for text in texts], common)
    assert [str(day) for day in days] == ["2024-03-07", "2024-03-17", "2024-05-06"]
    assert decide_days([read_day(texts[0])], common) == [None]
    padded = next(form for form in read_day("17/03/2024") if form.is_padded)
    assert decide_days([read_day("3/7/2024")], padded) == [dt.date(2024, 7, 3)]
    assert not read_day("31/06/2024")
    assert not read_day("1/2/24")


def test_the_decimal_mark_is_the_one_that_reads_more():
    texts = ["1.234,50", "12,5", "7", "1234.50"]
    numbers = read_numbers(texts)
    assert [numbers[text].value for text in texts] == [1234.5, 12.5, 7, 1234.5]
    assert find_number_form(numbers, dict.fromkeys(numbers, 3)).mark == ","
    assert find_number_form(numbers, dict.fromkeys(numbers, 1)).mark is None  # too few
    assert read_numbers(["007", "1e5", "5*", "a5", "$5/kg", "5 - 7"]) == {}
