"""What several files of promises set up: those on tables that are read in stretches."""

from __future__ import annotations

import pytest

from tests.streams import CODES, in_memory


@pytest.fixture
def no_memory(monkeypatch):
    """No packed rows are held, so that every pass reads the files."""
    monkeypatch.setattr("robustbn._rows.stream.cache.MOST_BYTES", 0)


@pytest.fixture
def small_sample(monkeypatch):
    """Fewer rows are drawn than there are."""
    monkeypatch.setattr("robustbn._learn.conductor.SURVEYED", 9_000)
    monkeypatch.setattr("robustbn._core.config.LEAST_SAMPLE", 6_000)
    monkeypatch.setattr("robustbn._core.config.ROWS_A_PARAMETER", 1)


@pytest.fixture(scope="module")
def held():
    return in_memory(CODES)
