"""From a scene to what can be started, any number of times."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
from numpy.lib.format import write_array
from numpy.typing import NDArray

from palpo.app.cli.compile_ahead import compile_ahead
from palpo.app.cli.progress import Silent
from palpo.app.devices.hands import Paths, chosen, further_hands
from palpo.app.devices.protection import device_spec, limits_of, workspace_of
from palpo.app.library.blas import single_threaded
from palpo.app.library.checkpoint import Checkpoint, less, put, take
from palpo.app.library.refusals import refusing
from palpo.app.library.scene import Scene, load
from palpo.app.library.seal import BODY, open_sealed, seal
from palpo.app.library.state import State
from palpo.app.runtime.options import Options
from palpo.app.runtime.rigs import Rig
from palpo.app.systems.system import check_kind, make_rig
from palpo.config.words import Refusal
from palpo.haptics.device import VirtualDevice
from palpo.haptics.errors import HapticsError

VERSION = version("palpo")
TOLD = "palpo"
"""Name of the table in a file of a state that says what the arrays are."""


class Stand(NamedTuple):
    """A rig at rest with the simulated hand that follows the scene's path."""

    rig: Rig
    path: Paths


class Model:
    """A scene, built: what `Scene.build` gives. It never changes; `start` as often as wanted.

    scene: what it was built from. interface: how its rates are joined. dt: period of a tick [s]. ratio: ticks
    in a slow period. held: where the hand holds the tool at rest [m], shape (3,). masses: of each moving body
    [kg]. triangles: of each body, (m, 3), rows of its positions. rest: positions of each body [m], (n, 3).
    """

    @refusing
    @single_threaded
    def __init__(self, scene: Scene, interface: str | None = None) -> None:
        """See `Scene.build`."""
        self.scene = scene
        self.interface = check_kind(scene.spec, interface, lock_step=True)
        compile_ahead(scene.spec, Silent())
        self._built: Stand | None = self._build()
        rig = self._built.rig
        self.dt, self.ratio = float(rig.dt), int(rig.ratio)
        self.held = _fixed(rig.held)
        self.masses = MappingProxyType(rig.masses())
        geometry = rig.visual.geometry
        shapes = geometry.drawables
        self.triangles = MappingProxyType({d.name: _fixed(d.triangles) for d in shapes})
        self.rest = MappingProxyType({d.name: _fixed(geometry.rest[d.span]) for d in shapes})

    def _build(self) -> Stand:
        """The scene at rest, once more."""
        spec, paths = self.scene.spec, Paths()
        options = Options(self.scene.name, device="mock", lock_step=True)
        devices = chosen(spec, options, ())

        def device_at(held: NDArray[np.float64]) -> VirtualDevice:
            device, path = devices[0].make(spec, held)
            paths.add(path)
            return device

        limits = limits_of(spec, device_spec(spec))
        others = further_hands(spec, devices, paths)
        rig = make_rig(
            spec, self.interface, device_at, workspace_of(spec), limits, threads=False, further=others
        )
        # frames carry where the servo has the bodies, from the first one on
        rig.visual.follow_servo()
        rig.visual.timed = True
        rig.visual.latest()
        return Stand(rig, paths)

    @single_threaded
    def start(self) -> State:
        """A state at rest, before the first tick."""
        built, self._built = self._built or self._build(), None
        return State(self, *built)

    @single_threaded
    def copy_of(self, state: State) -> State:
        """Another state that goes on from where `state` is, bit for bit as it does."""
        new = self.start()
        put(take(state.rig), new.rig)
        new.led = state.led
        return new

    @single_threaded
    def write(self, state: State, path: Path) -> None:
        """A state into a file: a sealed .npz archive, packed quickly, as most of it are zeros."""
        fresh = self.start()
        tree, arrays = less(take(state.rig), take(fresh.rig))
        fresh.close()
        told = {
            "version": VERSION, "tree": tree, "led": state.led, "interface": self.interface,
            "scene": self.scene.to_toml(), "folder": str(self.scene.spec.origin.path.resolve().parent),
            "name": self.scene.name,
        }  # fmt: skip
        with path.open("wb+") as sealed:
            sealed.write(bytes(BODY))
            with ZipFile(sealed, "w", ZIP_DEFLATED, compresslevel=1) as file:
                for name, array in {TOLD: np.array(json.dumps(told)), **arrays}.items():
                    with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        write_array(entry, array, allow_pickle=False)
            seal(sealed)

    @refusing
    def restore(self, path: str | Path) -> State:
        """The state that `State.save` wrote; Refusal for a file that holds none, or one of another scene."""
        told, arrays = _read(Path(path))
        if load(told["scene"], folder=told["folder"]) != self.scene or told["interface"] != self.interface:
            raise HapticsError(
                f"{path}: the state belongs to {told['name']} ({told['interface']}) with other values; "
                "palpo.restore starts from the file alone"
            )
        return self._restored(told, arrays, Path(path))

    @single_threaded
    def _restored(self, told: dict[str, Any], arrays: dict[str, NDArray[Any]], path: Path) -> State:
        new = self.start()
        try:
            put(Checkpoint(told["tree"], arrays), new.rig)
        except (KeyError, ValueError) as error:
            new.close()
            raise HapticsError(f"{path}: the state does not fit this version of palpo ({error})") from None
        new.led = bool(told["led"])
        return new

    def __repr__(self) -> str:
        return f"<palpo.Model of {self.scene.name}>"


@refusing
def restore(path: str | Path) -> State:
    """The state in a file that `State.save` wrote, with its scene; Refusal for a file that holds none."""
    told, arrays = _read(Path(path))
    scene = load(told["scene"], folder=told["folder"])
    interface = told["interface"]
    model = Model(Scene.of(scene.spec, told["name"]), None if interface == "none" else interface)
    return model._restored(told, arrays, Path(path))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What a file says of a state, and its arrays."""
    try:
        with path.open("rb") as sealed:
            open_sealed(sealed, path)
            with np.load(sealed, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files if name != TOLD}
                told = json.loads(str(file[TOLD]))
    except Refusal:
        raise
    except (KeyError, ValueError, EOFError, BadZipFile) as error:
        raise HapticsError(f"{path}: not a state that palpo saved ({error})") from None
    if told.get("version") != VERSION:
        was = told.get("version")
        raise HapticsError(
            f"{path}: saved by palpo {was}, and this is {VERSION}; build the scene and start again"
        )
    return told, arrays


def _fixed(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that cannot be written."""
    out = values.copy()
    out.flags.writeable = False
    return out
