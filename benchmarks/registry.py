"""The benchmarks by name."""

from collections.abc import Callable
from typing import Any

from palpo.benchmarks.hapco import hapco
from palpo.benchmarks.large_body import large_body
from palpo.benchmarks.latency import latency
from palpo.benchmarks.low_step import low_step
from palpo.benchmarks.memory import memory
from palpo.benchmarks.pictures import pictures
from palpo.benchmarks.realtime import realtime
from palpo.benchmarks.remote import remote
from palpo.benchmarks.servo import servo
from palpo.benchmarks.snap import snap
from palpo.benchmarks.soak import soak
from palpo.benchmarks.solve import solve
from palpo.benchmarks.stall import stall
from palpo.benchmarks.start import start
from palpo.benchmarks.suction import suction
from palpo.benchmarks.tables import print_bench

__all__ = ["BENCHES", "print_bench"]


def _robots() -> dict[str, Any]:
    """Steps a second of `palpo/Snap-v1` in a batch, of one environment, and of a batch on each processor."""
    from palpo.benchmarks.robots import robots  # Gymnasium is an extra

    return robots()


BENCHES: dict[str, Callable[..., dict[str, Any]]] = {
    "servo": servo,
    "slow-step": low_step,
    "large-body": large_body,
    "solve": solve,
    "hapco": hapco,
    "snap": snap,
    "robots": _robots,
    "suction": suction,
    "start": start,
    "memory": memory,
    "realtime": realtime,
    "latency": latency,
    "soak": soak,
    "stall": stall,
    "remote": remote,
    "pictures": pictures,
}
