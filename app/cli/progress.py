"""What a long start is doing: one line a stage, with its time, on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from palpo.app.cli.log import LOG

WIDTH = 46
EACH = 10.0
"""Seconds between two words on a stage, where there is no terminal to write over."""


class TimeLeft:
    """What is left of a stage's time, at the pace since it was first told how far it has come."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def words(self, share: float, even: bool = True) -> str:
        """That this share is done, from 0 to 1, and the time that is left if the pace is even."""
        now, done = self._clock(), f"{100.0 * share:.0f}%"
        begun, at = self._first = self._first or (now, share)
        if not even or share <= at:
            return done
        left = (now - begun) * (1.0 - share) / (share - at)
        return f"{done}, {left:.0f} s left" if left < 100.0 else f"{done}, {left / 60.0:.0f} min left"


class Progress:
    """Announces each stage when it begins, and its time when it ends; on a terminal with a running clock.

    Where a stage says how far it has come, the time that is left is told, too.
    """

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.console = console or Console(stderr=True, highlight=False, markup=False)
        self._clock = clock
        self._tell: Callable[[float, bool], None] | None = None

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """Show `what` while the block runs, then how long it took [s]."""
        start, pace = self._clock(), TimeLeft(self._clock)
        if self.console.is_terminal:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            with Bar(*columns, console=self.console, transient=True) as bar:
                task = bar.add_task(what, total=None)

                def write_over(share: float, even: bool) -> None:
                    bar.update(task, description=f"{what}: {pace.words(share, even)}")

                with self._telling(write_over):
                    yield
            self.console.print(f"  {what:<{WIDTH}}", style="dim", end="")
        else:
            self.console.print(f"  {what:<{WIDTH}}", end="")
            self.console.file.flush()
            told = start

            def go_on(share: float, even: bool) -> None:
                nonlocal told
                words = pace.words(share, even)
                if self._clock() - told >= EACH:
                    told = self._clock()
                    self.console.print(f" {words};", end="", soft_wrap=True)
                    self.console.file.flush()

            try:
                with self._telling(go_on):
                    yield
            except BaseException:
                self.console.print()
                raise
        seconds = self._clock() - start
        LOG.info("%s: %.1f s", what, seconds)
        self.console.print(f"{seconds:6.1f} s", style="dim")

    @contextmanager
    def _telling(self, tell: Callable[[float, bool], None]) -> Iterator[None]:
        self._tell = tell
        try:
            yield
        finally:
            self._tell = None

    def come_to(self, share: float, even: bool = True) -> None:
        """This share of the present stage is done, from 0 to 1: with the time left, if the pace is even."""
        if self._tell is not None:
            self._tell(share, even)

    def say(self, words: str) -> None:
        """One line."""
        LOG.info("%s", words)
        self.console.print(words, soft_wrap=True)


class Silent(Progress):
    """Says nothing: for tests and studies."""

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        yield

    def say(self, words: str) -> None:
        pass
