"""What a run of scene `wire` holds in memory, and whether a longer run holds more."""

from palpo.benchmarks.process import run_scene
from palpo.benchmarks.timing import Figures, bare_loop_us, within


def memory(short: float = 1.0, long: float = 8.0) -> Figures:
    """Largest memory of a short and of a long run in lock-step; their difference is the cost of results."""
    runs = [run_scene("wire", seconds, "--lock-step") for seconds in (short, long)]
    peaks = [run["memory_mb"] for run in runs]
    return {
        "runs that ended well": sum(run["exit_status"] == 0 for run in runs),
        "peak MB": {f"{short:g} s": peaks[0], f"{long:g} s": peaks[1]},
        "growth MB/s": (peaks[1] - peaks[0]) / (long - short),
        "target peak MB": within(max(peaks), 500.0),
        "bare loop us": bare_loop_us(),
    }
