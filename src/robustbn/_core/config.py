"""What a caller chooses, checked."""

from __future__ import annotations

import codecs
import math
import os
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from robustbn._core.advice import Advice, Either
from robustbn._core.layout import MOST_CODES, Layout
from robustbn.exceptions import SettingError

CEILING = 0.45  # more than this cannot be told from a majority
LEAST_SAMPLE = 50_000  # rows: of small networks, more cost next to nothing
ROWS_A_PARAMETER = 200  # O(m / eps^2) rows tell good from bad: more only cost time
LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Option:
    """How a setting is given on the command line."""

    flag: str  # how it is typed
    help: str
    # of its value: "text", "flag" (it is there or not), "share", "count", "whole", "path"
    kind: str = "text"
    metavar: str | None = None
    choices: tuple[str, ...] = ()  # all that it may be, on the command line and in Python
    is_list: bool = False  # whether it may be repeated


def _given(default: Any, flag: str, help: str, **about: Any) -> Any:
    """Return a field that is an option of the command line, too; see `Option`."""
    option = {"option": Option(flag, help, **about)}
    if default is dict:
        return field(default_factory=dict, metadata=option)
    return field(default=default, metadata=option)


def _check_choices(config: Any) -> None:
    """Refuse a setting that is none of its choices."""
    for each in fields(config):
        option, found = each.metadata.get("option"), getattr(config, each.name)
        if option is not None and option.choices and found not in option.choices:
            known = ", ".join(map(repr, option.choices))
            raise SettingError(f"{each.name} is one of {known}; found {found!r}.")


@dataclass(frozen=True)
class RobustConfig:
    """Settings of the robust fit; see `RobustEstimator`."""

    contamination: float | str = _given(
        "auto",
        "--contamination",
        "Largest share of bad rows to expect: 0.1, 10% or auto (estimate it).  [default: auto]",
        kind="share",
    )
    method: str = _given(
        "filter",
        "--method",
        "How bad rows are found; the others are the paper's methods and baselines.  "
        "[default: filter]",
    )
    schedule: str = _given(
        "joint",
        "--schedule",
        "joint: the default method; paper: Algorithm 1 of the paper, unchanged.  [default: joint]",
        choices=("joint", "paper"),
    )
    polish: bool = True
    misfit: str = _given(
        "allow",
        "--misfit",
        "allow: the network may be an approximation; none: good rows are assumed to come from "
        "exactly this network.  [default: allow]",
        choices=("allow", "none"),
    )
    copies: str = _given(
        "auto",
        "--copies",
        "How to treat repeated rows; auto: keep them if most rows repeat, otherwise distrust "
        "them.  [default: auto]",
        choices=("auto", "count", "distrust"),
    )
    cells: str = _given(
        "find",
        "--cells",
        "find: look for single wrong cells, and count their most likely true values.  "
        "[default: find]",
        choices=("find", "trust"),
    )
    sample_rows: int | None = None
    seed: int = _given(
        0, "--seed", "Random seed; the same seed gives the same result.  [default: 0]", kind="whole"
    )
    n_threads: int | None = _given(
        None, "--jobs", "Number of threads.  [default: all]", kind="count", metavar="N"
    )
    kernels: str | None = None

    def __post_init__(self) -> None:
        check_contamination(self.contamination)
        _check_choices(self)
        if self.sample_rows is not None and not (
            isinstance(self.sample_rows, Integral) and self.sample_rows >= 1
        ):
            raise SettingError(
                f"sample_rows must be a whole number of at least 1, or None; found "
                f"{self.sample_rows!r}."
            )

    @property
    def ceiling(self) -> float:
        """Largest share of the rows that may be distrusted: twice eps, if eps is given."""
        if isinstance(self.contamination, str):
            return CEILING
        return min(CEILING, 2 * float(self.contamination))

    def sample_size(self, layout: Layout) -> int:
        """Return how many rows to learn the verdict from."""
        if self.sample_rows is not None:
            return self.sample_rows
        return max(LEAST_SAMPLE, ROWS_A_PARAMETER * layout.n_free)


@dataclass(frozen=True)
class Streaming:
    """What to keep and write while a table is streamed.

    Parameters
    ----------
    on_error : {"raise", "skip"}, default="raise"
        What to do with a file that cannot be read: raise an error, or leave the file out and report
        it in `reading_`.
    cache : str, path-like or None, default=None
        A folder for packed rows, a few bytes each, so that a large table is parsed only once.
    weights_to : str, path-like or None, default=None
        A file or folder to which the trust in each row is written.

    Examples
    --------
    >>> from robustbn import RobustEstimator, Streaming
    >>> estimator = RobustEstimator(streaming=Streaming(cache="packed"))
    >>> estimator.get_params()["streaming__cache"]
    'packed'
    """

    on_error: str = _given(
        "raise",
        "--on-error",
        "What to do with a file that cannot be read.  [default: raise]",
        choices=("raise", "skip"),
    )
    cache: str | os.PathLike[str] | None = _given(  # noqa: RUF009
        None, "--cache", "Folder for the cache of a streamed table.", kind="path"
    )
    weights_to: str | os.PathLike[str] | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name, as scikit-learn expects.

        Parameters
        ----------
        deep : bool, default=True
            Ignored; there are no settings inside these.
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}


OTHER = "other"  # the state of rare labels, if states are found in a table
PERIODS = ("year", "quarter", "month", "day")
DATE_ORDERS = ("dmy", "mdy", "ymd")  # of day, month and year, where a date does not show it


@dataclass(frozen=True)
class NodeReading:
    """How the values of a node's column become states, where they are not the states themselves.

    Parameters
    ----------
    edges : inner ends of the intervals that numbers are cut into; the first states, in order.
    others : the state of every value that stands for no other.
    period : "year", "quarter", "month" or "day": what is taken of a date; "month dmy" says of
        dates such as 03/07/2024 what comes first.
    notation : of numbers that are cut and not written plainly: the mark before their decimals, and
        the unit that they carry: ".$" reads $1,234.50, "," reads 1.234,50.
    """

    edges: tuple[float, ...] | None = None
    others: Hashable = None
    period: str | None = None
    notation: str | None = None

    def __post_init__(self) -> None:
        if self.edges is not None:
            _check_bins(self.edges, "edges")
        _check_period(self.period)
        _check_notation(self.notation)


@dataclass(frozen=True)
class TableConfig:
    """How a table is read; see `read_table`."""

    on_unknown: str = _given(
        "error",
        "--unknown",
        "What to do with a value that is not a state of its node.  [default: error]",
        choices=("error", "drop", "missing"),
    )
    on_missing: str = _given(
        "use",
        "--missing",
        "How to treat missing values: use (infer them), observed (count only the values that are "
        "there), state (make missing a state), drop (the row), error; or a value that means "
        "missing: 999, or age=999 for one node. Can be repeated.  [default: use]",
        choices=("use", "observed", "state", "drop", "error"),
        metavar="HOW|VALUE|NODE=VALUE",
        is_list=True,
    )
    bins: Mapping[str, int | str | Sequence[float]] | int | str | None = _given(
        None,
        "--bins",
        "Cut numbers into intervals: age:18,65 (at these edges), age:4 (of equal width), age:q5 "
        "(with equally many rows). Without NODE, for all columns.",
        metavar="NODE:CUT",
        is_list=True,
    )
    rename: Mapping[str, str] = _given(
        dict,
        "--rename",
        "Read a column as the node of another name. Can be repeated.",
        metavar="COLUMN=NODE",
        is_list=True,
    )
    labels: Mapping[str, Mapping[Hashable, Hashable]] = _given(
        dict,
        "--labels",
        "Map values to states: smoker:0=no,1=yes; age:?= marks '?' as missing; '@FILE.json' reads "
        "the mapping from a file.",
        metavar="NODE:VALUE=STATE,...",
        is_list=True,
    )
    ignore_case: bool = _given(
        False, "--ignore-case", "Ignore case: 'Yes' is read as the state 'yes'.", kind="flag"
    )
    codes: bool | None = _given(
        None, "--codes", "Read whole numbers as positions of states, from 0.", kind="flag"
    )
    sep: str | None = _given(None, "--sep", "Column separator; 'tab' for a tab.", metavar="CHAR")
    encoding: str = _given(
        "utf-8", "--encoding", "Encoding of a text file.  [default: utf-8]", metavar="NAME"
    )
    others: Mapping[str, Hashable] = field(default_factory=dict)
    periods: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] | None = _given(
        None,
        "--context",
        "Other columns in which to look for where bad rows come from; 'none' for none. [default: "
        "columns with at most 1,000 values, numbers, times]",
        metavar="A,B",
    )
    id: str | None = _given(
        None, "--id", "Column with the identifier of each row.", metavar="COLUMN"
    )
    keep: tuple[str, ...] = _given(
        (), "--keep", "Other columns to show with each row.", metavar="A,B"
    )
    notations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _tidy_aside(self)
        _check_choices(self)
        if isinstance(self.bins, Mapping):
            for node, bins in self.bins.items():
                _check_bins(bins, f"bins[{node!r}]")
        elif self.bins is not None:
            _check_bins(self.bins, "bins")
        _check_names(self.rename, self.labels)
        _check_text(self.sep, self.encoding)
        for period in self.periods.values():
            _check_period(period)
        for notation in self.notations.values():
            _check_notation(notation)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that rows keep, the one that names them first, none twice."""
        return tuple(dict.fromkeys([*([] if self.id is None else [self.id]), *self.keep]))

    @property
    def keeps_holes(self) -> bool:
        """Whether a row without some of its values is kept."""
        return self.on_missing in ("use", "observed", "state")

    @property
    def drops_nothing(self) -> bool:
        """Whether every row that is read is kept, or else an error."""
        is_kept = self.on_unknown == "missing" and self.on_missing != "drop"
        return self.on_missing != "drop" and (self.on_unknown == "error" or is_kept)


def _tidy_aside(config: TableConfig) -> None:
    """Hold names of columns beside the network as tuples; refuse what is none."""
    for name in ("context", "keep"):
        given = getattr(config, name)
        if given is None and name == "context":
            continue
        names = (given,) if isinstance(given, str) else tuple(given or ())
        if not all(isinstance(column, str) for column in names):
            raise SettingError(f"{name} must be a list of column names; found {given!r}.")
        object.__setattr__(config, name, names)
    if config.id is not None and not isinstance(config.id, str):
        raise SettingError(f"id must be a column name; found {config.id!r}.")


def _check_names(rename: Any, labels: Any) -> None:
    if not isinstance(rename, Mapping):
        raise SettingError(f"rename is a mapping {{column: node}}; found {rename!r}.")
    if not isinstance(labels, Mapping):
        raise SettingError(f"labels is a mapping {{node: {{value: state}}}}; found {labels!r}.")
    for node, pairs in labels.items():
        if not isinstance(pairs, Mapping):
            raise SettingError(f"labels[{node!r}] is a mapping {{value: state}}; found {pairs!r}.")


def _check_period(period: Any) -> None:
    if period is None:
        return
    name, _, order = str(period).partition(" ")
    if name not in PERIODS or order not in ("", *DATE_ORDERS):
        raise SettingError(
            f"A period is one of {', '.join(PERIODS)}, optionally followed by one of "
            f"{', '.join(DATE_ORDERS)}; found {period!r}."
        )


def _check_notation(notation: Any) -> None:
    is_one = isinstance(notation, str) and notation[:1] in (".", ",") and len(notation) < 8
    if notation is not None and not is_one:
        raise SettingError(
            "A notation is a decimal mark, '.' or ',', optionally followed by a unit, such as "
            f"',€'; found {notation!r}."
        )


def _check_text(sep: Any, encoding: Any) -> None:
    if sep is not None and not (isinstance(sep, str) and len(sep) == 1):
        raise SettingError(f"sep is one character, such as ',', ';' or '\\t'; found {sep!r}.")
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise SettingError(
            f"encoding must be the name of a text encoding, such as 'utf-8', 'latin-1' or "
            f"'cp1252'; found {encoding!r}."
        ) from None


def _check_bins(bins: Any, where: str) -> None:
    """Refuse what does not say how to cut a line into intervals."""
    if isinstance(bins, str) and re.fullmatch(r"q[1-9][0-9]{0,4}", bins):
        return
    if isinstance(bins, Integral) and not isinstance(bins, bool) and 1 <= int(bins) <= MOST_CODES:
        return
    if not isinstance(bins, str | Integral) and hasattr(bins, "__iter__"):
        edges = list(bins)
        ordered = all(a <= b for a, b in pairwise(edges))
        if all(isinstance(e, Real) and math.isfinite(e) for e in edges) and ordered:
            return
    raise SettingError(
        f"{where} is a list of increasing inner edges, such as [18, 65] for three states; a number "
        f"of intervals of equal width; or 'q5' for five intervals with equally many rows. Found "
        f"{bins!r}."
    )


def check_contamination(value: float | str) -> None:
    """Refuse what is not a share of rows below one half."""
    if isinstance(value, str):
        if value != "auto":
            raise SettingError(f"contamination is a number or 'auto'; found {value!r}.")
        return
    if not isinstance(value, Real) or math.isnan(value) or not 0 < value < 0.5:
        hint: str | Either = ""
        if value == 0:
            python = " If every row can be trusted, use MaximumLikelihoodEstimator."
            hint = Either(python, " If every row can be trusted, use --method none.")
        elif isinstance(value, Real) and 1 <= value < 50:
            hint = f" Did you mean {value / 100:.2f}?"
        raise SettingError(
            Advice(
                "contamination is the share of bad rows: above 0, below 0.5 (a majority of the "
                f"rows must be good), or 'auto'; found {value!r}.",
                hint,
            )
        )


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; True and False are none."""
    return isinstance(value, Real) and not _is_truth(value) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, Integral) and not _is_truth(value)
    return is_whole and 1 <= value <= LARGEST_COUNT


KINDS_OF_SETTINGS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {  # by their annotation
    "bool": ("True or False", _is_truth),
    "str": ("a word", lambda value: isinstance(value, str)),
    "str | None": ("a word or None", lambda value: value is None or isinstance(value, str)),
    "float": ("a finite number", is_number),
    "float | str": ("a number or a word", lambda v: isinstance(v, str) or is_number(v)),
    "BayesianNetwork | str | float | None": (
        "a word, a number, a BayesianNetwork or None",
        lambda v: v is None or isinstance(v, str) or is_number(v) or hasattr(type(v), "given_cpts"),
    ),
    "int | None": ("a whole number from 1, or None", lambda v: v is None or _is_count(v)),
}


def check_setting(name: str, annotation: str, value: Any) -> None:
    """Refuse a setting of another kind than its annotation says, by its name."""
    if annotation not in KINDS_OF_SETTINGS:
        return
    kind, is_right = KINDS_OF_SETTINGS[annotation]
    if not is_right(value):
        raise SettingError(f"{name} is {kind}; found {value!r}, of type {type(value).__name__}.")


def is_same(value: Any, default: Any) -> bool:
    """Whether a setting is its default; never compares an array element by element."""
    return value is default or (
        type(value) is type(default) and not isinstance(value, np.ndarray) and value == default
    )
