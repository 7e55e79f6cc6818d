"""Processes that a study spreads its work over."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process
from threading import Thread


def processes(most: int | None = None) -> ProcessPoolExecutor:
    """So many, None for one on each core. They end with this process, however that ends."""
    return ProcessPoolExecutor(most or os.cpu_count(), get_context("spawn"), _end_with_the_study)


def _end_with_the_study() -> None:
    """A study that is killed says nothing to its processes, which would go on for hours."""
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    study = parent_process()
    if study is not None:
        connection.wait([study.sentinel])
        os._exit(1)
