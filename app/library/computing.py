"""What the commands that compute find out, for a script: the same functions, in SI units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palpo.app.cli.progress import Progress, Silent
from palpo.app.library.blas import single_threaded
from palpo.app.library.refusals import refusing
from palpo.app.library.scene import Scene, Values, load
from palpo.config.schema.material import SoftMaterial, library
from palpo.config.words import Refusal

if TYPE_CHECKING:
    from palpo.app.cli.converge import Limit, Press
    from palpo.app.cli.design import DesignResult
    from palpo.app.cli.identify import Identified
    from palpo.app.cli.identify_material import Fit

Told = Scene | str | Path | Values
"""A scene, or what `load` takes."""


class KnownMaterial(NamedTuple):
    """A material of the library."""

    material: SoftMaterial
    """As a scene has it: `Soft(material=...)` takes it."""
    source: str
    """Where its numbers are from."""
    sure: str
    """How sure they are."""


class Convergence(NamedTuple):
    """How a scene's press changes with its mesh."""

    presses: tuple[Press, ...]
    """On the scene's own mesh and on two finer ones."""
    limit: Limit
    """What they approach: force, order, and the error of each mesh."""


@refusing
def materials() -> dict[str, KnownMaterial]:
    """The materials that scenes can name, by name."""
    return {
        name: KnownMaterial(SoftMaterial.model_validate(name), entry["source"], entry["sure"])
        for name, entry in library().items()
    }


@refusing
@single_threaded
def sweep(
    scene: Told,
    values: Mapping[str, Sequence[Any] | ArrayLike],
    out: str | Path | None = None,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    device: str = "mock",
    duration: float | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Runs of a scene in lock-step for all combinations of these values; a row of the table for each.

    values: of each key, {"friction.default": [0.1, 0.3]}, the last key's the fastest. out: file for the
    table, .parquet or .csv; finished runs are kept beside it, so that the same call goes on after it was cut
    short. jobs: processes, by Dask where there are several, which a script starts below its
    `if __name__ == "__main__":`; scheduler: address of a Dask scheduler instead. device: "mock" or
    "replay:FILE".
    duration [s] of each run: as long as its path if not given. progress: print how far it has come.
    Raises Refusal for what cannot be run; a run that fails says so in its row, `exit_status`, `exit_reason`.
    """
    from rich.console import Console

    from palpo.app.cli.sweep import Axis, Sweep, run_sweep

    if jobs < 1:
        raise Refusal(f"jobs = {jobs}: give at least one process")
    axes = tuple(Axis(key, tuple(map(_text, np.asarray(some).tolist()))) for key, some in values.items())
    if not axes or not all(axis.values for axis in axes):
        raise Refusal('sweep: give the values of at least one key, as {"friction.default": [0.1, 0.3]}')
    with TemporaryDirectory() as empty:
        table = Path(empty) / "sweep.csv" if out is None else Path(out)
        with as_file(scene, table.parent, f"{table.stem}.toml") as file:
            asked = Sweep(file, axes, device=device, duration=duration)
            return run_sweep(asked, table, jobs, scheduler, Console(stderr=True, quiet=not progress))


@refusing
@single_threaded
def converge(
    scene: Told, *, duration: float = math.inf, seconds: float = 3600.0, progress: bool = False
) -> Convergence:
    """How far the scene's mesh is from converged, by its own press on two finer ones.

    duration [s]: of the scene's path. seconds: that a finer run may take. progress: print what is done.
    Raises Refusal for a scene without soft bodies of two rates or a press, for a mesh that cannot be made
    finer, and for runs that take more time, or memory, than there is.
    """
    from palpo.app.cli.converge import converge as converged

    if not duration > 0.0:
        raise Refusal(f"duration = {duration:g}: give seconds above 0")
    with as_file(scene) as file:
        presses, limit = converged(file, (), duration, seconds, _telling(progress))
    return Convergence(tuple(presses), limit)


@refusing
@single_threaded
def snap(
    scene: Told,
    values: Mapping[str, Sequence[Any] | ArrayLike] | None = None,
    *,
    tolerances: Mapping[str, float | str] | None = None,
    runs: int = 100,
    seed: int = 0,
    back: float | None = None,
    insertion_below: float | None = None,
    retention_above: float | None = None,
    strain_below: float | None = None,
    stress_below: float | None = None,
    progress: bool = False,
) -> DesignResult:
    """What a designer asks of a snap connector: force over travel, loads, what a change does, how many do.

    values: of one key or two, for a table or a map. tolerances: of keys that vary between parts, by three
    standard deviations, a number, or a share, "10%"; runs: number of random parts, seed: of them. back [m]:
    how far the plug is pulled back. insertion_below, retention_above [N], strain_below, stress_below [Pa]:
    limits that a good part keeps. progress: print what is done. Raises Refusal for what cannot be computed.
    """
    from palpo.app.cli.design import DesignRequest, Limits, investigate
    from palpo.app.cli.sweep import Axis

    axes = tuple(
        Axis(key, tuple(map(_text, np.asarray(some).tolist()))) for key, some in (values or {}).items()
    )
    limits = Limits(insertion_below, retention_above, strain_below, stress_below)
    varied = tuple(f"{key}={width}" for key, width in (tolerances or {}).items())
    with as_file(scene) as file:
        return investigate(
            DesignRequest(file, (), axes, varied, runs, seed, back, limits), _telling(progress)
        )


@refusing
@single_threaded
def identify(
    measured: str | Path,
    *,
    ball: float | str | None = None,
    cylinder: Sequence[float | str] | None = None,
    strip: Sequence[float | str] | None = None,
    laws: Sequence[str] = (),
    poisson_ratio: float = 0.49,
    progress: bool = False,
) -> list[Fit]:
    """The constants of each law for a measured force over depth, the best law first.

    measured: a CSV file with the columns depth_m or depth_mm and force_N or force_mN. What was measured is
    one of ball, its radius, pressed in; cylinder, diameter and height, between plates; strip, width,
    thickness and length, pulled; each [m], or a text with its unit. laws: to fit, all if none is told.
    Raises Refusal for a file that is none of these, and constants that cannot be.
    """
    from palpo.app.cli.identify_material import identify_material, specimen_of

    def texts(sizes: Sequence[float | str] | None) -> list[str] | None:
        return None if sizes is None else [str(size) for size in sizes]

    specimen = specimen_of(None if ball is None else str(ball), texts(cylinder), texts(strip))
    return identify_material(Path(measured), specimen, list(laws), poisson_ratio, _telling(progress))[0]


@refusing
@single_threaded
def identify_connector(
    scene: Told,
    measured: str | Path,
    *,
    speed: float | None = None,
    beside: Told | None = None,
    progress: bool = False,
) -> Identified:
    """Modulus, friction and how far the base gave way, of a scene's connector from a measured insertion.

    measured: a CSV file with the columns travel_m, or time_s where the speed [m/s] is told, and force_N.
    beside: the same connector on another mesh, to tell the mesh's error; shapes of the program have one.
    Raises Refusal for what cannot be used.
    """
    from palpo.app.cli.identify import identify as identified

    with as_file(scene) as file, as_file(beside if beside is not None else scene) as other:
        return identified(
            file, (), Path(measured), speed, None if beside is None else other, _telling(progress)
        )


@contextmanager
def as_file(scene: Told, folder: Path | None = None, name: str = "scene.toml") -> Iterator[str]:
    """The scene as a name or file that `load` takes; one made in Python is written, into a folder that goes
    away if none is told."""
    if isinstance(scene, str | Path) and "\n" not in str(scene) and "=" not in str(scene):
        yield str(scene)
        return
    with TemporaryDirectory() as empty:
        file = (Path(empty) if folder is None else folder) / name
        load(scene).save(file)
        yield str(file)


def _text(value: Any) -> str:
    """As `--set` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _telling(progress: bool) -> Progress:
    return Progress() if progress else Silent()
