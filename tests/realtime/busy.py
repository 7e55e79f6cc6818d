"""A thread that never lets go of the interpreter by itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_python() -> Iterator[None]:
    """While it lasts, such a thread runs beside."""
    over = threading.Event()

    def burn() -> None:
        while not over.is_set():
            sum(range(1000))

    burner = threading.Thread(target=burn)
    burner.start()
    try:
        yield
    finally:
        over.set()
        burner.join()
