"""Partitions on a cluster, and questions to all of them: sums over rows, one task a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import RowVector, Vector
from robustbn._rows.dask.partition import Partition
from robustbn.exceptions import DataError, MissingDependencyError

T = TypeVar("T")
FORGETTING_SECONDS = 0.5  # until the scheduler no longer holds what workers have died over
TRIES = 3  # of a pass whose tasks are lost; Dask itself has tried each on four workers by then
Sum = tuple[Vector, Vector]  # a sum, and what rounding has taken from it
Question = Callable[[Partition, Any], tuple[Vector | None, Any]]  # a sum over rows, and the rest
MakePartition = Callable[..., Any]  # (is_anew: bool): what makes a partition, not run yet
Progress = Callable[[str, int, int], None]  # what, done, of how many


@dataclass(eq=False)
class _Sent:
    """The row vector that was sent last, and where to: rounds ask about it again and again."""

    values: RowVector | None = None
    groups: Any = None
    futures: list[Any] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Partitions:
    """Partitions on a cluster, in order, and questions to all of them."""

    client: Any  # of the cluster, a `distributed.Client`
    # each returns what makes a partition, not run yet; anew, under names of its own: what the
    # cluster has forgotten, or given up, stays so under its name
    makers: tuple[MakePartition, ...]
    futures: list[Any]  # one a partition; replaced where the cluster has lost it for good
    sizes: tuple[int, ...]  # rows that are left in each
    progress: Progress  # is told how far a pass is
    sent: _Sent = field(default_factory=_Sent)

    @classmethod
    def make(cls, client: Any, makers: Sequence[MakePartition], progress: Progress) -> Partitions:
        """Have the workers make partitions, which stay there; their sizes are not known yet."""
        futures = client.compute([make(is_anew=False) for make in makers])
        made = cls(client, tuple(makers), futures, (0,) * len(makers), progress)
        made._persist("encoding partitions", made._wait)
        return made

    def _wait(self) -> None:
        for _ in as_they_come(self.futures, "encoding partitions", self.progress):
            pass

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first row of each, and N at the end."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return int(self.starts[-1])

    def ask(
        self,
        what: str,
        question: Question,
        *,
        weights: RowVector | None = None,
        given: Sequence[Any] | None = None,
    ) -> tuple[Vector, list[Any]]:
        """Return the sum over all partitions, and the rest of each; again if a worker is lost."""
        return self._persist(what, lambda: self._ask_once(what, question, weights, given))

    def _persist(self, what: str, work: Callable[[], T]) -> T:
        """Return what some work gives, done again if workers that died have taken tasks along."""
        distributed = load_distributed()
        for _ in range(TRIES - 1):
            try:
                return work()
            except (distributed.CancelledError, distributed.KilledWorker):
                pass  # whose frames hold the tasks that are to be forgotten
            self._make_lost_anew()
        try:
            return work()
        except distributed.CancelledError as error:
            on_one_line = " ".join(str(error).split())
            raise DataError(
                f"While {what}, the cluster lost the data of partitions ({on_one_line}), "
                f"{TRIES} times. Rows that were put into the memory of a worker are lost with it: "
                "give a frame that is read from files, or replicate what was persisted."
            ) from None

    def _make_lost_anew(self) -> None:
        self.sent.values = None
        lost = [k for k, f in enumerate(self.futures) if f.status in ("cancelled", "error")]
        for k in lost:
            self.futures[k] = None
        time.sleep(FORGETTING_SECONDS)
        for k in lost:
            self.futures[k] = self.client.compute(self.makers[k](is_anew=True))

    def _ask_once(
        self, what: str, question: Question, weights: RowVector | None, given: Sequence[Any] | None
    ) -> tuple[Vector, list[Any]]:
        import dask

        client, groups = self.client, self._group_by_worker()
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            asked = client.submit(hold, question, pure=False)
            handed: list[Any] = [None] * len(groups)
            if weights is not None:
                handed = self._send(weights, groups)
            elif given is not None:
                handed = [[given[k] for k in members] for _, members in groups]
            tasks = [
                client.submit(visit, asked, [self.futures[k] for k in members], mine, **_at(worker))
                for (worker, members), mine in zip(groups, handed, strict=True)
            ]
        total: Sum | None = None
        answers: list[Any] = [None] * len(self.futures)
        for k, task in as_they_come(tasks, what, self.progress):
            part, parts = task.result()
            total = total if part is None else add(total, part)
            for member, answer in zip(groups[k][1], parts, strict=True):
                answers[member] = answer
        return np.zeros(0) if total is None else total[0] + total[1], answers

    def _send(self, weights: RowVector, groups: list[tuple[str | None, list[int]]]) -> list[Any]:
        """Return what stands for each group's share of a row vector; it travels once."""
        sent = self.sent
        if sent.values is not weights or sent.groups != groups:
            sent.futures = [
                self.client.submit(
                    hold,
                    [weights[self.starts[k] : self.starts[k + 1]] for k in members],
                    **_at(worker),
                )
                for worker, members in groups
            ]
            sent.values, sent.groups = weights, groups
        return sent.futures

    def _group_by_worker(self) -> list[tuple[str | None, list[int]]]:
        """Return the workers that hold partitions, each with theirs."""
        held_by = self.client.who_has(list(self.futures))
        groups: dict[str | None, list[int]] = {}
        n_rows: dict[str | None, int] = {}
        orphans = []
        for k, future in enumerate(self.futures):
            holders = [*held_by.get(future.key, ())]
            if not holders:
                orphans.append(k)
                continue
            worker = min(holders, key=lambda w: n_rows.get(w, 0))
            groups.setdefault(worker, []).append(k)
            n_rows[worker] = n_rows.get(worker, 0) + self.sizes[k]
        for k in orphans:
            worker = min(n_rows, key=lambda w: n_rows[w], default=None)
            groups.setdefault(worker, []).append(k)
            n_rows[worker] = n_rows.get(worker, 0) + self.sizes[k]
        return list(groups.items())


def visit(
    question: Question, partitions: list[Partition], given: list[Any] | None
) -> tuple[Sum | None, list[Any]]:
    """Do one worker's share of a pass: return the sum, and the rest of each partition's answer."""
    total: Sum | None = None
    answers = []
    for k, partition in enumerate(partitions):
        table, answer = question(partition, None if given is None else given[k])
        if table is not None:
            total = add(total, (table, np.zeros_like(table)))
        answers.append(answer)
    return total, answers


def add(total: Sum | None, more: Sum) -> Sum:
    """Add with what rounding takes kept beside: the result does not depend on the order."""
    # For sums `s = a + b` the error is known exactly, as `(a - (s - b')) + (b - b')` where `b' = s
    # - a`; errors are summed on their own.
    if total is None:
        return more
    a, b = total[0], more[0]
    s = a + b
    from_b = s - a
    lost = (a - (s - from_b)) + (b - from_b)
    return s, total[1] + more[1] + lost


def hold(value: T) -> T:
    """Return what is given: a task for what a worker should have at hand."""
    return value


def _at(worker: str | None) -> dict[str, Any]:
    """Return what makes a task run where its rows are, or elsewhere if that worker is lost."""
    if worker is None:
        return {"pure": False}
    return {"pure": False, "workers": [worker], "allow_other_workers": True}


def as_they_come(tasks: list[Any], what: str, progress: Progress) -> Iterator[tuple[int, Any]]:
    """Yield the number of each task that is done, and the task; on an error, stop the others."""
    distributed = load_distributed()
    place = {task.key: k for k, task in enumerate(tasks)}
    progress(what, 0, len(tasks))
    try:
        for n_done, task in enumerate(distributed.as_completed(tasks), 1):
            if task.status in ("error", "cancelled"):
                task.result()
            yield place[task.key], task
            progress(what, n_done, len(tasks))
    except distributed.KilledWorker as error:
        error.add_note(
            f"While {what}: several workers died while computing the same partition. It may be "
            "larger than their memory: make partitions smaller, or give the workers more memory."
        )
        raise
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()


def load_distributed() -> Any:
    """Return the library that the cluster runs on."""
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingDependencyError(
            "Rows on a Dask cluster need distributed: pip install 'robustbn[dask]'."
        ) from None
