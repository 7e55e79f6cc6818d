"""What a long start is doing: one line a stage, with its time, on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class Progress:
    """Announces stages: a spinner with the time so far on a terminal, a line at the end of each elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """Show `what` while the block runs, then how long it took [s]."""
        start = time.perf_counter()
        with self.console.status(what) if self.console.is_terminal else _nothing():
            yield
        self.console.print(f"  {what:<44} {time.perf_counter() - start:6.1f} s", style="dim")

    def say(self, words: str) -> None:
        """One line."""
        self.console.print(words, soft_wrap=True)


class Silent(Progress):
    """Says nothing: for tests and studies."""

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        yield

    def say(self, words: str) -> None:
        pass


@contextmanager
def _nothing() -> Iterator[None]:
    yield
