"""The same work for each of several bodies, on two threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class SideBySide:
    """Calls a function with each of the numbers below n, and gives back what it returns in their order.

    The caller and one thread of its own take a number each as soon as they are through with the last one: who
    takes which is chance, so a function writes only what belongs to its number. Compiled code holds no
    interpreter lock, so the two run at once as far as the work is compiled. What a call raises is raised,
    after the other thread is through, too.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="palpo-suction")

    def __call__(self, work: Callable[[int], T], n: int) -> list[T]:
        if n < 2:
            return [work(i) for i in range(n)]
        out: dict[int, T] = {}
        numbers = count()

        def take() -> None:
            while (i := next(numbers)) < n:
                out[i] = work(i)

        other = self._pool.submit(take)
        try:
            take()
        finally:
            other.result()
        return [out[i] for i in range(n)]

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()
