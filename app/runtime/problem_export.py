"""`--export`: a run's contact problem, as it was at a tick or at the end, in a file."""

from pathlib import Path
from typing import Any

from palpo.app.report.outcome import FAILED
from palpo.app.runtime.rigs import Rig
from palpo.haptics.control import tick_count
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.physics.contact.io import write_fclib
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.numerics.errors import InputError


class ProblemExport:
    """Keeps a contact problem of a run, and writes it; HapticsError for a time that cannot be.

    path: the file, None for none. at: time of the problem [s], None for the end. lock_step: whether the run
    is one without a clock; only there can a tick be chosen. rate: ticks in a second.
    """

    def __init__(self, path: Path | None, at: float | None, lock_step: bool, rate: float) -> None:
        if at is not None and (path is None or not lock_step or not at > 0.0):
            raise HapticsError(
                f"--export-at {at:g}: give a positive time, with --export FILE and --lock-step; in threads "
                "the last tick's problem is exported, and --duration says when that is"
            )
        self.path, self.at = path, at
        self.tick = None if at is None else max(1, round(at * rate))
        """Ticks after which it is taken, None for the last."""
        self._kept: ContactProblem | InputError | None = None

    def take(self, rig: Rig) -> None:
        """Keep the contact problem as it is now, or why there is none."""
        try:
            self._kept = rig.problem()
        except InputError as refusal:
            self._kept = refusal

    def run(self, rig: Rig, n: int) -> int:
        """Make n ticks, the problem taken after the one that was asked for; how many were made."""
        done, wanted = 0, self.tick
        if wanted is not None and rig.lock.tick < wanted <= rig.lock.tick + n:
            done = servo_run(rig.servo, wanted - rig.lock.tick)
            self.take(rig)
        return int(done + servo_run(rig.servo, n - done))

    def take_last(self, rig: Rig) -> None:
        """Keep that of the end, where it is the one that is wanted."""
        if self.path is not None and self.tick is None:
            self.take(rig)

    def write(self, rig: Rig, scene: str, title: str, result: dict[str, Any]) -> None:
        """Write what was kept, and say so in the result; a run that has none has failed at that."""
        if self.path is None:
            return
        seconds = (self.tick or int(tick_count(rig.servo))) * rig.dt
        if isinstance(self._kept, ContactProblem):
            about = f"{scene} of Palpo at {seconds:g} s, rows n t1 t2; units m and N"
            write_fclib(self.path, self._kept, title, about)
            result["export"] = f"{self.path}: {self._kept.mu.size} contacts at {seconds:g} s"
            return
        why = self._kept or f"the run ended before {self.at:g} s"
        result["warnings"].append(f"--export {self.path}: {why}.")
        result["exit_status"] = result["exit_status"] or FAILED
