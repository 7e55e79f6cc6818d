"""What this process compiles, and when: whoever calls a kernel that is not compiled yet waits for it."""

from numba.core import event


class Compilations(event.Listener):
    """`names` of the kernels that were compiled, not loaded, in the order in which that began."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._open: list[str] = []

    @property
    def now(self) -> str:
        """The kernel that somebody waits for at this moment, or an empty string; any thread may ask."""
        return next(iter(tuple(self._open)), "")

    def on_start(self, event: event.Event) -> None:
        """numba begins to compile; a kernel that another one calls begins within it."""
        name = event.data["dispatcher"].py_func.__name__
        self.names.append(name)
        self._open.append(name)

    def on_end(self, event: event.Event) -> None:
        """It has ended, well or not."""
        self._open.pop()


COMPILATIONS = Compilations()
event.register("numba:compile", COMPILATIONS)
