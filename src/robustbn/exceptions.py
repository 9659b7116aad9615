"""What a caller may catch.

Every error robustbn raises on purpose is a `RobustBNError` and also the built-in error a caller
would expect (`ValueError`, `MemoryError`, ...), so that both kinds of `except` work.
"""

from __future__ import annotations

import re

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


class RobustBNError(Exception):
    """Base of every error raised on purpose. Its message shows long names in part."""

    def __str__(self) -> str:
        said = super().__str__()
        return said if len(said) <= LONGEST_NAME else _LONG.sub(lambda m: shorten_name(m[0]), said)


class NetworkError(RobustBNError, ValueError):
    """The network is not a Bayesian network: a cycle, an unknown parent, a wrong table."""


class NetworkFileError(NetworkError, OSError):
    """The file cannot be read or written."""


class NetworkFileNotFoundError(NetworkFileError, FileNotFoundError):
    """There is no such file, or no such folder to write to."""


class NetworkPermissionError(NetworkFileError, PermissionError):
    """The file may not be read, or the folder may not be written to."""


class NetworkIsADirectoryError(NetworkFileError, IsADirectoryError):
    """A folder was given where a file was expected."""


class DataError(RobustBNError, ValueError):
    """The rows do not fit the network: wrong type, wrong width, a code out of range."""


class CodeRangeError(DataError):
    """A code is not the position of a state of its node.

    Attributes
    ----------
    row, column, value : where the first such code is, and what was found.
    is_holed : whether values may be missing in that column.
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
    """A setting or an argument has a value that it cannot have; the message names it."""


class UnknownSettingError(RobustBNError, TypeError):
    """An argument is of the wrong type, or there is no setting of that name."""


class ModelFileError(RobustBNError, ValueError):
    """A file is not a fitted estimator, is damaged, or is of another version."""


class CheckpointError(RobustBNError, ValueError):
    """A checkpoint or cache is damaged, or belongs to another run."""


class InUseError(RobustBNError, BlockingIOError):
    """Another run writes there now; the message says which process, where and since when."""


class NotFittedError(RobustBNError, ValueError, AttributeError):
    """A learned value was asked for before `fit`."""


class InsufficientMemoryError(RobustBNError, MemoryError):
    """The work needs more memory than can be had; the message says how much."""


class MissingDependencyError(RobustBNError, ImportError):
    """An optional library is needed for this and is not installed."""


class UnseenConfigurationWarning(UserWarning):
    """Some parent configurations never occur in the rows; their tables come from the prior."""


class ConstantColumnWarning(UserWarning):
    """A column has the same value in every row."""


class SlowBackendWarning(UserWarning):
    """The native kernels are not there; the NumPy kernels run instead, with the same results."""


class ConvergenceWarning(UserWarning):
    """The trusted rows still do not look like rows of the network; the message says what to do."""


class SmallSampleWarning(UserWarning):
    """There are too few rows for this network to tell good from bad."""


class ContextWarning(UserWarning):
    """A column beside the network cannot be read; it is left out of where bad rows come from."""


class StandInWarning(UserWarning):
    """A format cannot hold a name or label; other programs will see another one in its place."""
