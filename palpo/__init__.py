"""Palpo: feel soft bodies through a haptic device, a mouse or a recorded hand, at 1 kHz.

    import palpo

    scene = palpo.load("wire", friction={"default": 0.4})
    state = scene.build().start()
    ticks = state.step(hand=(0.12, 0.19, 0.0), ticks=500)     # where the hand goes in half a second
    print(state.force, state.positions["cylinder"].mean(axis=0))
    saved = state.copy()                                      # goes on from here, bit for bit

    tissue = palpo.Soft(name="tissue", geometry=palpo.Block(size=(0.1, 0.02, 0.1)), material="liver")
    ball = palpo.Rigid(name="ball", geometry=palpo.Sphere(radius=0.01), mass=0.05, rate="high")
    made = palpo.Scene(title="A ball", bodies=[tissue, ball], tool=palpo.Tool(body="ball"))

`load` and `scenes` give scenes, and `Scene` makes one of parts such as `Soft` and `Tool`; `Scene.build` gives
a model, `Model.start` a state; `run` runs a scene on a device in real time, `replay` repeats a recording,
`restore` goes on from a saved state, `solve` solves contact problems. `State.fields` and `State.mesh` tell
what a body feels inside, `export` writes a recording for other programs; `materials`, `sweep`, `converge`,
`snap`, `identify` and `lift` are the commands of these names.
Units are SI, axes right-handed with y up, quaternions (w, x, y, z). What cannot be used is refused with
`Refusal`, whose text says what and why. docs/tutorial.md leads through all of it.

Importing this module loads nothing else and changes nothing. The first use of one of its names loads Palpo,
which sets OMP_NUM_THREADS and its like to 1 in the environment: results are bit-equal only if BLAS sums in
one thread. If NumPy was imported before, its BLAS library is limited to one thread while a call of Palpo
lasts, and has its threads back afterwards.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from palpo.app.library.computing import Convergence as Convergence
    from palpo.app.library.computing import KnownMaterial as KnownMaterial
    from palpo.app.library.computing import converge as converge
    from palpo.app.library.computing import identify as identify
    from palpo.app.library.computing import identify_connector as identify_connector
    from palpo.app.library.computing import materials as materials
    from palpo.app.library.computing import snap as snap
    from palpo.app.library.computing import sweep as sweep
    from palpo.app.library.fields import Fields as Fields
    from palpo.app.library.gripping import CupLift as CupLift
    from palpo.app.library.gripping import lift as lift
    from palpo.app.library.model import Model as Model
    from palpo.app.library.model import restore as restore
    from palpo.app.library.runs import export as export
    from palpo.app.library.runs import replay as replay
    from palpo.app.library.runs import run as run
    from palpo.app.library.runs import solve as solve
    from palpo.app.library.runs import solvers as solvers
    from palpo.app.library.scene import Scene as Scene
    from palpo.app.library.scene import load as load
    from palpo.app.library.scene import scenes as scenes
    from palpo.app.library.state import Contacts as Contacts
    from palpo.app.library.state import HandReading as HandReading
    from palpo.app.library.state import Pose as Pose
    from palpo.app.library.state import State as State
    from palpo.app.library.state import Ticks as Ticks
    from palpo.app.report.outcome import Outcome as Outcome
    from palpo.config.parts import *  # noqa: F403 (its `__all__`)
    from palpo.config.words import Refusal as Refusal
    from palpo.physics.contact.problem import ContactProblem as ContactProblem
    from palpo.physics.contact.problem import ContactResult as ContactResult

_PLACES = {
    "config.words": ("Refusal",),
    "app.library.scene": ("Scene", "load", "scenes"),
    "app.library.model": ("Model", "restore"),
    "app.library.state": ("State", "Pose", "HandReading", "Contacts", "Ticks"),
    "app.library.fields": ("Fields",),
    "app.library.gripping": ("CupLift", "lift"),
    "app.library.runs": ("export", "replay", "run", "solve", "solvers"),
    "app.library.computing": (
        "Convergence", "KnownMaterial", "converge", "identify", "identify_connector", "materials", "snap",
        "sweep",
    ),
    "app.report.outcome": ("Outcome",),
    "physics.contact.problem": ("ContactProblem", "ContactResult"),
    "config.parts": (
        "ActiveGas", "AdmittanceSpec", "AirSpec", "AirtightGas", "Beam", "BellowsCup", "BladeSpec", "Block",
        "BodyFile",
        "BodyPoint", "Box", "BuckleConnector", "Bunny", "CableDrive", "CapConnector", "Capsule", "Contact",
        "Cues", "Cup", "CupFile", "CupLine", "CupModel", "Cylinder", "DrawnCup", "Elastic", "Ellipsoid",
        "ExactDistanceSpec", "FigureDrive", "FilesConnector", "FrameAttachment", "FreeDrive",
        "Friction", "FrictionPair", "GridDistanceSpec", "HalfCylinder", "HandSpec", "HapticDevice",
        "HexBlock", "HoldSpec", "IncisionSpec", "Integration", "Interface", "LanConnector",
        "LearnedDistanceSpec", "LineSpec", "Liver", "Manifold", "MaterialSpec", "Misalignment", "NeedleSpec",
        "OctopusArm", "OgdenTerm", "Oscillation", "PassiveGas", "Placement", "Plane", "Plate", "Plug",
        "PlugFile", "PointAttachment", "Polyline", "ProngFile",
        "ProngPart", "PronyTerm", "PumpSpec", "PumpedGas", "Quasistatic", "Rates", "Rayleigh", "Region",
        "RevolvedCup", "Rigid", "Robot", "Safety", "SameDrive", "ScriptedDrive", "SealSpec",
        "Segment", "SlideAttachment", "SnapModelSpec", "Soft", "SoftMaterial", "SolidFile", "SolverSpec",
        "Sphere", "SphereRegion", "Static", "StraightLine", "Stylus", "SurfaceFile", "SurfaceSpec", "Tool",
        "TunnelBlock", "TwoProngConnector", "Vent", "View", "VolumeFile", "WallRegionSpec", "WeldAttachment",
        "WorkspaceSpec", "Zoom",
    ),
}  # fmt: skip
_PLACE = {name: f"palpo.{module}" for module, names in _PLACES.items() for name in names}

__all__ = [
    "load", "scenes", "Scene", "Model", "State", "Pose", "HandReading", "Fields", "Contacts", "Ticks",
    "restore", "run", "replay", "export", "Outcome", "solve", "solvers", "materials", "KnownMaterial",
    "sweep", "converge", "Convergence", "snap", "identify", "identify_connector", "lift", "CupLift",
    "ContactProblem", "ContactResult", "Refusal", *_PLACES["config.parts"],
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        raise AttributeError(f"module palpo has no attribute {name!r}")
    import_module("palpo.app")  # settles the threads of BLAS before anything imports NumPy
    value = getattr(import_module(_PLACE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
