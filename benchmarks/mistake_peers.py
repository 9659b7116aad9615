"""Other ways to look for mistakes, judged on the same tables as `fit` by `benchmarks mistakes`.

`checks` are what profiling tools print, written with pandas and SciPy: duplicates, words among
numbers, far outliers, rare and look-alike labels, missing values, dates that cannot be read, and
each column compared between sites and between tenths of the file. `forest` is scikit-learn's
isolation forest; its rows are told with the place in which they gather. `labels` is confident
learning, the method of cleanlab, for every column of words: it counts the rows whose predicted
class is another one with more than that class's usual confidence. cleanlab itself is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from benchmarks.mistake_tables import RawTable
from robustbn._core.findings import Finding

LEVEL = 1e-3  # chance of any false alarm of a comparison, over all comparisons of a table
FAR = 3.0  # interquartile ranges beyond the quartiles: Tukey's "far out"
RARE = 0.01  # share of the rows below which a label is rare
MANY_MISSING = 0.05
STRETCHES = 10  # of the file
LEAST_ISSUES = 0.01  # share of the rows of a column that look mislabelled, to be told
MOST_CLASSES = 20


def _tell(kind: str, columns: tuple[str, ...], where: dict[str, str], cause: str = "") -> Finding:
    return Finding(kind, "warning", cause, 0.5, columns, where, cause=cause)


def check(table: RawTable, frame: pd.DataFrame) -> list[Finding]:
    """Return what simple checks of each column say."""
    found = []
    nodes = [c for c in table.nodes if c in frame]
    if frame.drop(columns="id").duplicated().any():
        found.append(_tell("repeated rows", (), {}, "duplicates"))
    if frame["id"].duplicated().any():
        found.append(_tell("repeated ids", ("id",), {}))
    if pd.to_datetime(frame["day"], format="%Y-%m-%d", errors="coerce").isna().any():
        found.append(_tell("unreadable values", ("day",), {}))
    for name in nodes:
        found += _check_column(name, frame[name])
    found += _compare(frame, nodes)
    return found


def _check_column(name: str, column: pd.Series) -> Iterator[Finding]:
    if column.isna().mean() > MANY_MISSING:
        yield _tell("missing values", (name,), {})
    numbers, given = as_numbers(column), column.dropna()
    if numbers is None:
        counts = given.map(str).value_counts(normalize=True)
        lower = counts.index.str.strip().str.casefold()
        if len(counts) <= MOST_CLASSES and (counts < RARE).any():
            yield _tell("unreadable values", (name,), {}, "rare labels")
        elif lower.duplicated().any():
            yield _tell("unreadable values", (name,), {}, "labels alike")
        return
    if numbers.isna().sum() > column.isna().sum():
        yield _tell("unreadable values", (name,), {}, "words among numbers")
    low, high = numbers.quantile([0.25, 0.75])
    width = FAR * (high - low)
    if ((numbers < low - width) | (numbers > high + width)).any() and width > 0:
        yield _tell("wrong cells", (name,), {}, "far outliers")


def as_numbers(column: pd.Series) -> pd.Series | None:
    """Return a column as numbers, NaN for words; None if it is one of words."""
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if numbers.notna().mean() > 0.5 else None


def _compare(frame: pd.DataFrame, nodes: list[str]) -> Iterator[Finding]:
    """Yield the columns that differ at a site, or in a tenth of the file, from all others."""
    from scipy import stats

    tenth = pd.Series(np.arange(len(frame)) * STRETCHES // len(frame)).astype(str)
    places = {"site": frame["site"].astype(str), "row number": tenth}
    n_tests = len(nodes) * sum(values.nunique() for values in places.values())
    for name in nodes:
        numbers = as_numbers(frame[name])
        for place, values in places.items():
            for value in values.unique():
                here = (values == value).to_numpy()
                if numbers is not None:
                    sides = [numbers[here].dropna(), numbers[~here].dropna()]
                    if min(map(len, sides)) < 5:
                        continue
                    p = stats.ks_2samp(*sides).pvalue
                else:
                    counts = pd.crosstab(frame[name].map(str), here)
                    p = stats.chi2_contingency(counts).pvalue if len(counts) > 1 else 1.0
                if p < LEVEL / n_tests:
                    yield _tell("column differs", (name,), {place: value})


def encode(frame: pd.DataFrame, nodes: list[str]) -> np.ndarray:
    """Return columns as numbers: words by the rank of their frequency, missing ones as -1."""
    columns = []
    for name in nodes:
        numbers = as_numbers(frame[name])
        if numbers is None:
            text = frame[name].map(str)
            rank = {label: k for k, label in enumerate(text.value_counts().index)}
            columns.append(text.map(rank).to_numpy(float))
        else:
            columns.append(numbers.fillna(numbers.min() - 1).to_numpy(float))
    return np.column_stack(columns)


def isolate(table: RawTable, frame: pd.DataFrame) -> list[Finding]:
    """Return the rows that an isolation forest sets apart, with the places where they gather."""
    from scipy import stats
    from sklearn.ensemble import IsolationForest

    nodes = [c for c in table.nodes if c in frame]
    is_odd = IsolationForest(random_state=0).fit_predict(encode(frame, nodes)) < 0
    if not is_odd.any():
        return []
    found = [_tell("rows", (), {}, "isolation forest")]
    tenth = pd.Series(np.arange(len(frame)) * STRETCHES // len(frame)).astype(str)
    places = {"site": frame["site"].astype(str), "row number": tenth}
    n_tests = sum(values.nunique() for values in places.values())
    for place, values in places.items():
        for value in values.unique():
            here = (values == value).to_numpy()
            p = stats.binomtest(int(is_odd[here].sum()), int(here.sum()), is_odd.mean(), "greater")
            if p.pvalue < LEVEL / n_tests:
                found.append(_tell("rows", (), {place: value}, "isolation forest"))
    return found


def doubt_labels(table: RawTable, frame: pd.DataFrame) -> list[Finding]:
    """Return the columns of words in which many labels look wrong, given the other columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict

    found, nodes = [], [c for c in table.nodes if c in frame]
    for name in nodes:
        text = frame[name].map(str)
        classes, y = np.unique(text, return_inverse=True)
        counts = np.bincount(y)
        if as_numbers(frame[name]) is not None or not 1 < len(classes) <= MOST_CLASSES:
            continue
        if counts.min() < 3:
            continue
        model = HistGradientBoostingClassifier(max_iter=30, random_state=0)
        others = encode(frame, [c for c in nodes if c != name])
        p = cross_val_predict(model, others, y, cv=3, method="predict_proba")
        usual = np.array([p[y == k, k].mean() for k in range(len(classes))])
        confident = np.where(p >= usual, p, 0)
        likely = np.where(confident.any(axis=1), confident.argmax(axis=1), y)
        if (likely != y).mean() >= LEAST_ISSUES:
            found.append(_tell("wrong cells", (name,), {}, "confident learning"))
    return found


PEERS: dict[str, Callable[[RawTable, pd.DataFrame], list[Finding]]] = {
    "checks": check,
    "forest": isolate,
    "labels": doubt_labels,
}
