"""From the command to the first tick of scene `probe`, in new processes."""

from palpo.benchmarks.process import run_scene
from palpo.benchmarks.timing import Figures, bare_loop_us, within


def start(seconds: float = 0.2) -> Figures:
    """Time from the command to the first tick, twice: the second start finds the compiled servo on disk."""
    runs = [run_scene("probe", seconds) for _ in range(2)]
    memory = max(run["memory_mb"] for run in runs)
    return {
        "runs that ended well": sum(run["exit_status"] == 0 for run in runs),
        "first tick s": {
            name: run["first_tick_s"] for name, run in zip(("first", "warm"), runs, strict=True)
        },
        "whole process s": {name: run["wall_s"] for name, run in zip(("first", "warm"), runs, strict=True)},
        "peak memory MB": memory,
        "target memory MB": within(memory, 500.0),
        "bare loop us": bare_loop_us(),
    }
