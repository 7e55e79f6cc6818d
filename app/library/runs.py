"""Runs with a device, replays, and contact problems from a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palpo.app.cli.progress import Progress, Silent
from palpo.app.library.blas import single_threaded
from palpo.app.library.refusals import refusing
from palpo.app.library.scene import Scene, Values, load
from palpo.app.report.outcome import Outcome
from palpo.app.runtime import session
from palpo.app.runtime.options import Options
from palpo.config.words import Refusal
from palpo.physics.exchange.snapshot import SceneState

Watch = Callable[[SceneState], object]
"""Called with the newest picture of the scene, up to `rates.render_hz` times a second."""


@refusing
@single_threaded
def run(
    scene: Scene | str | Path | Values,
    device: str | Sequence[str] = "mock",
    *,
    duration: float | None = None,
    lock_step: bool = False,
    record: str | Path | None = None,
    interface: str | None = None,
    watch: Watch | None = None,
    progress: bool = False,
) -> Outcome:
    """Run a scene on a device until its time is over, and say what was measured.

    scene: a Scene, or what `load` takes. device: "mock", the simulated hand that follows the scene's path,
    "touch", or "replay:FILE", a recording or a table of a hand's motion; several, one for each hand of the
    scene, whose others are simulated. duration [s]: as long as the path
    if not given. lock_step: both rates in one thread without a clock, with a result that is bit-equal each
    time; else in real time. record: HDF5 file for all ticks, which `replay` takes. interface: as in
    `Scene.build`. watch: sees the scene while it runs, in this thread; an exception that it raises ends the
    run with a fading force. progress: print what is being done.

    Raises Refusal for what cannot be run. A run that failed on its way raises nothing: the outcome's
    `status` is not 0 and `result["exit_reason"]` says why. The outcome's `series` are arrays by name, of
    every tick, [s], [m], [N].
    """
    wanted = load(scene)
    first, *further = [device] if isinstance(device, str) else device
    options = Options(
        wanted.name, device=first, further=tuple(further), duration=duration, lock_step=lock_step,
        interface=interface, record=None if record is None else Path(record), baseline=False,
    )  # fmt: skip
    made = session.Session(options, Progress() if progress else Silent(), wanted.spec)
    made.prepare()

    def look(state: SceneState, fresh: bool) -> None:
        if fresh and watch is not None:
            watch(state)

    return made.run(None if watch is None else look)


@refusing
@single_threaded
def replay(recording: str | Path, scene: str | None = None) -> Outcome:
    """A recorded run again, bit for bit on one kind of machine; or another scene under its hand.

    `result["replay"]` says how the two compare. Raises Refusal for a file that cannot be repeated.
    """
    from palpo.app.runtime.replay import replay as repeated

    return repeated(Path(recording), scene)


@refusing
@single_threaded
def export(
    recording: str | Path,
    *,
    vtk: str | Path | None = None,
    usd: str | Path | None = None,
    gltf: str | Path | None = None,
    fps: float = 25.0,
    progress: bool = False,
) -> list[Path]:
    """Write a recorded run for other programs, metres and y up; the paths of what was written.

    vtk: a folder for a series of VTK files, a body each, for ParaView. usd: a .usda, .usdc or .usd file.
    gltf: a .glb or .gltf file, whose animation it is. fps: moments a second of the scene. Raises Refusal for
    what cannot be repeated or written.
    """
    from palpo.app.report.export import export as exported

    folder, stage, model = (None if path is None else Path(path) for path in (vtk, usd, gltf))
    return exported(Path(recording), folder, stage, model, fps, Progress() if progress else Silent())


@refusing
@single_threaded
def solve(
    problem: Any,
    b: ArrayLike | None = None,
    mu: ArrayLike | None = None,
    *,
    solver: str | None = None,
    tolerance: float = 1e-8,
    iterations: int = 5000,
    seconds: float = np.inf,
    warm: ArrayLike | None = None,
    each: bool = False,
    least_violation: bool = False,
    **options: Any,
) -> Any:
    """Contact forces r with u = W r + b, Signorini's and Coulomb's laws between r and u.

    problem: W (3 n, 3 n) [m/N], symmetric positive semidefinite, dense or sparse, with b (3 n,) [m] and mu
    (n,); or a ContactProblem, such as `State.problem` gives; or a file, FCLIB (.hdf5, .h5) or .npz with W, q
    and mu. Rows of a contact: normal, two tangents; a gap is positive. mu of shape (n, 2) is that of either
    tangent apart: anisotropic friction. solver: one of `solvers`,
    "portfolio" if not given; options: its own. tolerance: relative natural-map residual.
    seconds: wall time after which it gives back what it has. warm (3 n,) [N]: where it starts.
    each: whether each contact's error over its own force must be within the tolerance, too.
    least_violation: whether a problem that no forces solve is eased by the least that makes it solvable,
    result.infeasible.violation (n,) [m].

    Returns a ContactResult: r (3 n,) [N], residual, iterations, converged, reason, status (n,). Raises
    Refusal for arrays that are no contact problem and for names that are no solver.
    """
    from palpo.physics.contact import solving
    from palpo.physics.contact.io import read_problem
    from palpo.physics.contact.problem import ContactProblem, SparseProblem

    told: Any = problem
    if isinstance(problem, str | Path):
        told = read_problem(Path(problem))
    elif not isinstance(problem, ContactProblem | SparseProblem):
        if b is None or mu is None:
            raise Refusal("solve: beside W give b, of shape (3 n,), and mu, of shape (n,)")
        told = problem, b, mu
    return solving.solve(
        told,
        solver or "portfolio",
        tolerance=tolerance,
        max_iterations=iterations,
        seconds=seconds,
        guess=warm,
        each=each,
        least_violation=least_violation,
        **options,
    )


def solvers() -> dict[str, str]:
    """The contact solvers that `solve` knows: name -> method and source."""
    from palpo.physics.contact.solvers.registry import find_solver, solver_names

    return {name: find_solver(name).about for name in solver_names()}
