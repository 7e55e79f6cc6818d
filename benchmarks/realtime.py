"""A run in threads beside a busy Python thread and beside the bare clock loop: who misses deadlines?"""

import threading

from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.benchmarks.timing import Figures, bare_loop_us, beside, within
from palpo.haptics.drivers import servo_baseline

ALLOWED = 1e-3
"""Share of missed deadlines that is allowed whatever the bare loop does."""


def realtime(seconds: float = 60.0) -> Figures:
    """Scene `needle` in threads. The bare loop runs at the same time, so that both meet the same machine."""
    session = Session(Options("needle", device="mock", duration=seconds, baseline=False))
    session.prepare()
    done = threading.Event()
    bare: list[dict] = []

    def busy() -> None:
        while not done.is_set():
            sum(range(1000))

    threads = [
        threading.Thread(target=busy, daemon=True),
        threading.Thread(target=lambda: bare.append(servo_baseline(round(1000 * seconds)))),
    ]
    for thread in threads:
        thread.start()
    try:
        result = session.run().result
    finally:
        done.set()
    threads[1].join()
    servo, missed = result["servo"], int(bare[0]["missed"])
    limit = max(1.5 * missed, ALLOWED * servo["steps"])
    return {
        "exit status": result["exit_status"],
        "servo steps": servo["steps"],
        "missed": {"servo": servo["missed"], "bare loop": missed},
        "late us": {"servo": servo["late_us"], "bare loop": bare[0]["clock_baseline_us"]},
        "late p99 us": beside(servo["late_us"]["p99"], bare[0]["clock_baseline_us"]["p99"], "bare clock"),
        "target missed": within(servo["missed"], limit),
        "slow steps": {name: result["slow"][name] for name in ("steps", "overruns")},
        "bare loop us": bare_loop_us(),
    }
