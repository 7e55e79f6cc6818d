"""What a learning robot plugs in: a snap scene with the errors that a real one would have, drawn by seed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Silent
from palpo.app.gym.drawn import require
from palpo.app.systems.snap.build import models_of
from palpo.app.systems.snap.connector import connector_of
from palpo.app.systems.snap.picture import SnapVisual
from palpo.config.load import load_scene
from palpo.config.schema.connector import FilesConnector
from palpo.config.schema.snap import SnapScene
from palpo.config.words import Refusal
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors.connector import GIVE, Connector
from palpo.physics.systems.snap.connectors.registry import KINDS
from palpo.physics.systems.snap.episode import make_episode
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.servo import make_servo

Floats = NDArray[np.float64]
QUICK = ("connector.mesh=coarse", "contact.spacing=0.002", "solver.name=gauss-seidel")
"""Overrides of a scene for learning: half as many candidate points along an edge halve the time of a step,
and the coarse mesh saves a fifth of it, as does the solver."""
TICKS = 10
"""Ticks of the servo in a step."""
SPEED, TURNING = 0.05, 0.5
"""Of the target at a full action [m/s], [rad/s]."""
AHEAD, ASIDE, TILT = 4e-3, 10e-3, 0.3
"""How far the target may go beyond the stroke or behind its start [m], aside [m], and turn [rad]."""
BACK = 2e-3
"""Where an episode starts, behind the scene's own start, which a plug askew would touch [m]."""
LATCHED = 0.98
"""Share of the stroke that latches the plug."""
BREAKING = 2.5
"""Force, in units of the reference force, at which something breaks."""
COST = 0.05
"""Of the reference force, in a step."""
BOUND = 10.0
"""Entries of an observation beyond it are cut off."""
TRIES = 100
"""Of drawing dimensions with which a connector can latch."""


@dataclass(frozen=True)
class InsertionVariation:
    """What differs from the scene, drawn evenly from both sides of nothing where it is not said otherwise.

    position [m]: of the plug in the gripper, along the axes across the push. tilt [rad]: about all axes.
    friction, modulus, geometry: share of the coefficient, of Young's modulus, and of each of the generator's
    dimensions. noise: standard deviation of all that is measured, in the observation's units. delay [s]: of
    what is measured, drawn evenly from zero on. variants: how many connectors are made, each with a modulus
    and dimensions of its own; an episode draws one.

    Raises Refusal for a negative entry, no variant, and a share of 1 or more.
    """

    position: float = 6e-3
    tilt: float = 0.15
    friction: float = 0.3
    modulus: float = 0.15
    geometry: float = 0.01
    noise: float = 0.01
    delay: float = 0.01
    variants: int = 8

    def __post_init__(self) -> None:
        require(self, ("friction", "modulus", "geometry"))


NONE = InsertionVariation(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1)
"""The scene as it is."""


class VariantRig:
    """One variant's model and servo, at rest after `restore`."""

    def __init__(self, spec: SnapScene, model: SnapModel, variant: int, latest: int) -> None:
        self.spec, self.model, self.variant = spec, model, variant
        servo, self.side = make_servo(model, spec.integration.substeps, turns=True)
        self.episode = make_episode(servo, self.side, model.start, model.connector.push, latest)
        self.handle = Handle(self.episode)
        parts = (self.episode, *model.prongs, *(probe.state for probe in model.probes))
        self._fresh = [(array, array.copy()) for part in parts for array in _state(part)]

    def visual(self) -> SnapVisual:
        """What there is to see of it."""
        return SnapVisual(self.spec, self.model, self.side)

    @property
    def tick(self) -> int:
        """Ticks done."""
        return int(self.side.ticks[0]["done"])

    def restore(self) -> None:
        """As it was made."""
        for array, fresh in self._fresh:
            array[...] = fresh


class Plant:
    """A scene's connectors, and rigs of them, made when they are first wanted.

    Raises ConfigError, InputError and Refusal for what cannot be built.
    """

    def __init__(self, scene: str, overrides: tuple[str, ...], errors: InsertionVariation) -> None:
        told = load_scene(scene, overrides)
        if not isinstance(told, SnapScene):
            raise Refusal(f'{scene}: system = "{told.system}"; this environment needs a snap scene')
        self.scene, self.errors = told, errors
        self.nominal = c = connector_of(told)
        self.latest = round(errors.delay / told.rates.dt)
        self._connectors = list(self._varied())
        self._models: list[Callable[[], SnapModel] | None] = [None for _ in self._connectors]
        self._idle: list[list[VariantRig]] = [[] for _ in self._connectors]
        along = c.push
        self.unit_force = float(along @ c.admittance.stiffness[:3, :3] @ along) * GIVE
        mass, _, inertia = c.plug.mass_properties(1.0)
        self.unit_torque = self.unit_force * float(np.sqrt(np.trace(inertia) / (3.0 * mass)))
        reach = np.abs(along) * (c.stroke + AHEAD) + (1.0 - np.abs(along)) * ASIDE
        behind = np.abs(along) * AHEAD + (1.0 - np.abs(along)) * ASIDE
        forward = along >= 0.0
        self.low = np.r_[np.where(forward, -behind, -reach), np.full(3, -TILT)]
        self.high = np.r_[np.where(forward, reach, behind), np.full(3, TILT)]
        self.rate = np.repeat([SPEED, TURNING], 3) * TICKS * told.rates.dt
        self.unit = np.repeat([c.stroke, TILT, GIVE, TILT, self.unit_force, self.unit_torque], 3)

    def _varied(self) -> Iterator[Connector]:
        """The connectors, all held as the scene's own is; drawn by their number, the same for every seed."""
        e, c, spec = self.errors, self.nominal, self.scene.connector
        for variant in range(e.variants if e.modulus or e.geometry else 1):
            rng = np.random.default_rng(variant)
            stiffer = 1.0 + e.modulus * rng.uniform(-1.0, 1.0)
            material = replace(c.material, youngs_modulus=stiffer * c.material.youngs_modulus)
            made = c
            if e.geometry and not isinstance(spec, FilesConnector):
                made = self._drawn(rng)
            yield replace(made, material=material, admittance=c.admittance)

    def _drawn(self, rng: np.random.Generator) -> Connector:
        """A connector whose dimensions differ, and that can latch."""
        spec = self.scene.connector
        usual = KINDS[spec.kind].dimensions()
        for _ in range(TRIES):
            own = {
                field.name: (getattr(spec, field.name) or getattr(usual, field.name))
                * (1.0 + self.errors.geometry * rng.uniform(-1.0, 1.0))
                for field in fields(usual)
            }
            varied = self.scene.model_copy(update={"connector": spec.model_copy(update=own)})
            try:
                return connector_of(varied)
            except InputError as why:
                said = why
        raise Refusal(f"errors: geometry is {self.errors.geometry}; of {TRIES} draws none can latch: {said}")

    @property
    def variants(self) -> int:
        """How many connectors there are."""
        return len(self._connectors)

    def take(self, variant: int) -> VariantRig:
        """A rig at rest that nobody else uses."""
        idle = self._idle[variant]
        rig = idle.pop() if idle else VariantRig(self.scene, self._model(variant), variant, self.latest)
        rig.restore()
        return rig

    def _model(self, variant: int) -> SnapModel:
        """One more of a connector; what all of them share is computed for the first."""
        made = self._models[variant]
        if made is None:
            made = self._models[variant] = models_of(self.scene, self._connectors[variant], Silent())
        return made()

    def give(self, rig: VariantRig) -> None:
        """It may be taken again."""
        self._idle[rig.variant].append(rig)


CONSTANT = (
    "model", "field", "scratch", "points", "settings", "picture", "prong", "prongs", "probe", "probes",
    "bodies", "batch", "problem", "acceleration",
)  # fmt: skip
"""Fields of the servo's and of its parts' state that no tick changes, or that none reads before it writes."""


def _state(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays of nested tuples that a run changes."""
    for name, field in value._asdict().items():
        if name in CONSTANT:
            continue
        if isinstance(field, np.ndarray):
            yield field
        elif hasattr(field, "_asdict"):
            yield from _state(field)
