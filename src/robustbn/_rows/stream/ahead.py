"""Items made by a thread while the one before is worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE_S = 0.1  # how soon a thread that nobody listens to any more notices
GRACE_S = 2.0  # how long such a thread is waited for: what it reads from may be stuck


def make_ahead(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """Yield items that a thread makes, at most `depth` ahead; close it to end the thread.

    What is raised while they are made is raised here, in its place. With a `depth` of 0 they are
    made here, without a thread.
    """
    if not depth:
        yield from items
        return
    ready: Queue[tuple[bool, Any]] = Queue(depth)
    is_over = Event()

    def hand_over(is_item: bool, value: Any) -> bool:
        while not is_over.is_set():
            try:
                ready.put((is_item, value), timeout=PATIENCE_S)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not hand_over(True, item):
                    return
            hand_over(False, None)
        except BaseException as error:  # raised again by whoever listens
            hand_over(False, error)

    thread = Thread(target=work, name="robustbn-reader", daemon=True)
    thread.start()
    try:
        while True:
            is_item, value = ready.get()
            if is_item:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        is_over.set()
        thread.join(GRACE_S)
