"""What a long start is doing: one line a stage, with its time, on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from palpo.app.cli.log import LOG

WIDTH = 46


class Progress:
    """Announces each stage when it begins, and its time when it ends; on a terminal with a running clock."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, markup=False)
        self._tell: Callable[[float], None] | None = None

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """Show `what` while the block runs, then how long it took [s]."""
        start = time.perf_counter()
        if self.console.is_terminal:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            with Bar(*columns, console=self.console, transient=True) as bar:
                task = bar.add_task(what, total=None)
                self._tell = lambda share: bar.update(task, description=f"{what}: {100.0 * share:.0f}%")
                try:
                    yield
                finally:
                    self._tell = None
            self.console.print(f"  {what:<{WIDTH}}", style="dim", end="")
        else:
            self.console.print(f"  {what:<{WIDTH}}", end="")
            self.console.file.flush()
            try:
                yield
            except BaseException:
                self.console.print()
                raise
        seconds = time.perf_counter() - start
        LOG.info("%s: %.1f s", what, seconds)
        self.console.print(f"{seconds:6.1f} s", style="dim")

    def come_to(self, share: float) -> None:
        """This share of the present stage is done, from 0 to 1: told where there is a terminal."""
        if self._tell is not None:
            self._tell(share)

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
