"""The benchmarks by name."""

from collections.abc import Callable
from typing import Any

from app.bench.hapco import hapco
from app.bench.latency import latency
from app.bench.low_step import low_step
from app.bench.memory import memory
from app.bench.realtime import realtime
from app.bench.servo import servo
from app.bench.snap import snap
from app.bench.soak import soak
from app.bench.solve import solve
from app.bench.stall import stall
from app.bench.start import start
from app.bench.suction import suction

BENCHES: dict[str, Callable[..., dict[str, Any]]] = {
    "servo": servo,
    "low-step": low_step,
    "solve": solve,
    "hapco": hapco,
    "snap": snap,
    "suction": suction,
    "start": start,
    "memory": memory,
    "realtime": realtime,
    "latency": latency,
    "soak": soak,
    "stall": stall,
}
