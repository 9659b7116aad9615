"""Errors and warnings of robustbn.

Every error robustbn raises on purpose is a `RobustBNError` and also the built-in error a caller
would expect (`ValueError`, `MemoryError`, ...), so that both kinds of `except` work.
"""

from __future__ import annotations

import re

__all__ = [
    "CacheError",
    "CodeRangeError",
    "ConstantColumnWarning",
    "ContextWarning",
    "ConvergenceWarning",
    "DataError",
    "InUseError",
    "InsufficientMemoryError",
    "MissingDependencyError",
    "ModelFileError",
    "NetworkError",
    "NetworkFileError",
    "NetworkFileNotFoundError",
    "NetworkIsADirectoryError",
    "NetworkPermissionError",
    "NotFittedError",
    "RepeatedHeaderWarning",
    "RobustBNError",
    "SettingError",
    "SlowBackendWarning",
    "SmallSampleWarning",
    "StandInWarning",
    "UnknownSettingError",
    "UnseenConfigurationWarning",
]

LONGEST_NAME = 1000  # that is shown whole
_LONG = re.compile(rf"'[^']{{{LONGEST_NAME},}}'|\"[^\"]{{{LONGEST_NAME},}}\"|\S{{{LONGEST_NAME},}}")


def shorten_name(text: str) -> str:
    """Return a name or label, shortened if it has more than 1,000 characters.

    >>> shorten_name("a" * 5000)[-26:]
    'aaaa... (5,000 characters)'
    """
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:60]}... ({len(text):,} characters)"


def shorten_names(message: str) -> str:
    """Return a message with its long names in part."""
    if len(message) <= LONGEST_NAME:
        return message
    return _LONG.sub(lambda m: shorten_name(m[0]), message)


class RobustBNError(Exception):
    """Base of every error raised on purpose. Its message shows long names in part.

    Catch it to catch all of ours and nothing else.

    Examples
    --------
    >>> import robustbn
    >>> from robustbn.exceptions import RobustBNError
    >>> try:
    ...     robustbn.example_network("nowhere")
    ... except RobustBNError as error:
    ...     print(error)
    No example network 'nowhere'; there are alarm.
    """

    def __str__(self) -> str:
        return shorten_names(super().__str__())


class NetworkError(RobustBNError, ValueError):
    """The network is not a Bayesian network: a cycle, an unknown parent, a wrong table.

    The message names the node, and the file and line it came from.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> BayesianNetwork({"wet": ["rain"]}, {"wet": ["no", "yes"]})
    Traceback (most recent call last):
    robustbn.exceptions.NetworkError: ...
    """


class NetworkFileError(NetworkError, OSError):
    """The file cannot be read or written.

    An `OSError` too. Check the disk, and what is at that path.
    """


class NetworkFileNotFoundError(NetworkFileError, FileNotFoundError):
    """There is no such file, or no such folder to write to.

    The message names the file beside it that was perhaps meant.

    Examples
    --------
    >>> import robustbn
    >>> robustbn.read_network("nowhere/alarm.bif")
    Traceback (most recent call last):
    robustbn.exceptions.NetworkFileNotFoundError: ...
    """


class NetworkPermissionError(NetworkFileError, PermissionError):
    """The file may not be read, or the folder may not be written to.

    Change its rights, or write to another folder.
    """


class NetworkIsADirectoryError(NetworkFileError, IsADirectoryError):
    """A folder was given where a file was expected.

    Name the file in it: a network is one file, only a table may be a folder.
    """


class DataError(RobustBNError, ValueError):
    """The rows do not fit the network: wrong type, wrong width, a code out of range.

    The message names column, row and value, and the setting that would read it.

    Examples
    --------
    >>> import robustbn
    >>> network = robustbn.BayesianNetwork({"rain": []}, {"rain": ["no", "yes"]})
    >>> robustbn.read_table({"rain": ["no", "maybe"]}, network)
    Traceback (most recent call last):
    robustbn.exceptions.DataError: ...
    >>> len(robustbn.read_table({"rain": ["no", "maybe"]}, network, on_unknown="drop"))
    1
    """


class CodeRangeError(DataError):
    """A code is not the position of a state of its node.

    Attributes
    ----------
    row : int
        The row of the first such code.
    column : int
        Its column.
    value : float
        The code that was found.
    n_states : int
        The number of states of the node.
    is_holed : bool
        Whether values may be missing in that column.

    Examples
    --------
    >>> import robustbn
    >>> network = robustbn.BayesianNetwork({"rain": []}, {"rain": ["no", "yes"]})
    >>> robustbn.read_table([[0], [7]], network)
    Traceback (most recent call last):
    robustbn.exceptions.CodeRangeError: Code 7 at row 1, column 0 ('rain') is out of range: ...
    """

    def __init__(
        self,
        row: int,
        column: int,
        value: float,
        n_states: int,
        name: str | None = None,
        *,
        is_holed: bool = False,
    ):
        where = f"column {column}" if name is None else f"column {column} ({name!r})"
        hole = f", and {n_states} where its value is missing" if is_holed else ""
        super().__init__(
            f"Code {value} at row {row}, {where} is out of range: that node has {n_states} "
            f"states, so its codes are 0 to {n_states - 1}{hole}."
        )
        self.row, self.column, self.value, self.n_states = row, column, value, n_states
        self.is_holed = is_holed


class SettingError(RobustBNError, ValueError):
    """A setting or an argument has an invalid value; the message names it.

    Examples
    --------
    >>> import robustbn
    >>> robustbn.RobustEstimator(contamination=10).fit([[0], [1]])
    Traceback (most recent call last):
    robustbn.exceptions.SettingError: ...
    """


class UnknownSettingError(RobustBNError, TypeError):
    """An argument is of the wrong type, or a setting is for something else.

    The message says what was expected.

    Examples
    --------
    >>> import robustbn
    >>> robustbn.fit(robustbn.example_network("alarm"), [[0] * 37], dates="dmy")
    Traceback (most recent call last):
    robustbn.exceptions.UnknownSettingError: dates applies only to an edge list, ...
    """


class ModelFileError(RobustBNError, ValueError):
    """A file is not a fitted estimator, is damaged, or is of another version.

    Write it again with `save`; a file of a network is read by `read_network`.
    """


class CacheError(RobustBNError, ValueError):
    """A cache of packed rows cannot be written, or has changed on disk.

    Choose a folder with more space, use no cache, or run again.
    """


class InUseError(RobustBNError, BlockingIOError):
    """Another run is writing to the same place; the message names the process.

    Wait for it, or write to another place.
    """


class NotFittedError(RobustBNError, ValueError, AttributeError):
    """An estimator was used before `fit`, or a model from a file was asked for its rows.

    Examples
    --------
    >>> import robustbn
    >>> try:
    ...     robustbn.RobustEstimator().moved()
    ... except robustbn.exceptions.NotFittedError as error:
    ...     print(error)
    This RobustEstimator is not fitted yet: call fit(X) first.
    """


class InsufficientMemoryError(RobustBNError, MemoryError):
    """More memory is needed than is available; the message says how much.

    Stream the table (`place="stream"`), or use a network with smaller tables.
    """


class MissingDependencyError(RobustBNError, ImportError):
    """An optional library is needed for this and is not installed.

    The message has the command that installs it.
    """


class UnseenConfigurationWarning(UserWarning):
    """Some parent configurations never occur in the rows; their tables come from the prior.

    `unseen_configurations_` lists them. Give a `prior`, or more rows. A network file may also have
    NaN for them; their states are then taken to be equally likely.
    """


class ConstantColumnWarning(UserWarning):
    """A column has the same value in every row.

    Check how the table was made: a filter in a query, a default that was never changed.
    """


class SlowBackendWarning(UserWarning):
    """The native kernels are not installed; the NumPy kernels run instead, with the same results.

    Install with a C++17 compiler, or from a wheel, for speed.
    """


class ConvergenceWarning(UserWarning):
    """The trusted rows still do not look like rows of the network; the message says what to do.

    Read `status_` and `missing_edges()` before using the tables.
    """


class SmallSampleWarning(UserWarning):
    """There are too few rows for this network to tell good from bad.

    The message says how many would do. Use a simpler network, or read the tables with care.
    """


class ContextWarning(UserWarning):
    """A column that is not a node cannot be read; it is not used to find where bad rows come from.

    Name the columns to look at with `context=[...]`, or none with `context=()`.
    """


class RepeatedHeaderWarning(UserWarning):
    """Lines of a text file repeat its header; they are left out.

    Check how the file was made: files may have been joined, and rows lost or duplicated.
    """


class StandInWarning(UserWarning):
    """A format cannot store a name or label; other programs will see a stand-in.

    `read_network` restores the true one. Write `.json` if names matter.
    """
