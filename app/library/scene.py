"""Scenes as a script has them: from a name, a file, a text or tables, changed as values are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palpo.app.library.refusals import refusing
from palpo.config.load import list_scenes, load_scene, parse_scene, put_value, scene_of, scene_tables
from palpo.config.schema.scene import BaseScene
from palpo.config.toml import plain, write_toml
from palpo.config.words import ConfigError

if TYPE_CHECKING:
    from palpo.app.library.model import Model

Values = Mapping[str, Any]
"""Keys of a scene, "rates.low_hz" or tables of them, and their values."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A validated scene that never changes.

    spec: its specification, frozen, with every key and default of docs/scenes.md. name: what it was loaded
    as.
    """

    spec: BaseScene
    name: str

    @property
    def title(self) -> str:
        """The scene's name for people."""
        return self.spec.title

    @property
    def system(self) -> str:
        """Name of the system that computes it, "multirate", "hapco", "snap" or "suction"."""
        return str(self.spec.system)  # type: ignore[attr-defined]

    @property
    def dt(self) -> float:
        """Period of a tick [s]."""
        return float(self.spec.rates.dt)

    @refusing
    def with_(self, values: Values | None = None, /, **overrides: Any) -> Scene:
        """The scene with other values; Refusal for a key that it has not or a value that cannot be.

        values: by dotted key, as `--set` of the command line has it, {"bodies.wire.material": "steel"};
        overrides: tables, friction={"default": 0.4}, of which only the keys that are told change.
        """
        origin = self.spec.origin
        tables = _changed(scene_tables(origin), values, overrides)
        return Scene(scene_of(tables, origin.path), self.name)

    def to_toml(self) -> str:
        """The scene as the text of a file, which `load` takes; what is left to its default stays so."""
        origin = self.spec.origin
        return origin.text if not origin.overrides else write_toml(scene_tables(origin))

    def build(self, interface: str | None = None) -> Model:
        """The scene's model: meshes, matrices and compiled code, ready to start from.

        interface: how two rates are joined in a multi-rate scene, "krylov" (the default), "paper",
        "extrapolated" or "monolithic", the reference that computes everything at the servo's rate. Compiles
        for some minutes the first time on a machine. Raises Refusal for what only the meshes can tell.
        """
        from palpo.app.library.model import Model

        return Model(self, interface)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self.spec.model_dump() == other.spec.model_dump()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<palpo.Scene {self.name}: {self.title} ({self.system})>"


@refusing
def load(
    source: str | Path | Values | Scene, values: Values | None = None, /, *, folder: str | Path = ".",
    **overrides: Any,
) -> Scene:  # fmt: skip
    """A scene, checked: from a shipped scene's name, a TOML file's path, a TOML text, or tables.

    values, overrides: as `Scene.with_` takes them. folder: where the mesh files of a text or of tables are
    looked for. Raises Refusal, with file, key, value and what would be right, for what cannot be used.
    """
    scene = _loaded(source, Path(folder))
    return scene.with_(values, **overrides) if values or overrides else scene


def _loaded(source: str | Path | Values | Scene, folder: Path) -> Scene:
    if isinstance(source, Scene):
        return source
    if isinstance(source, Mapping):
        tables = _changed({}, None, source)
        return Scene(scene_of(tables, folder / "scene"), str(tables.get("title", "scene")))
    text = str(source)
    if isinstance(source, str) and ("\n" in text or "=" in text):
        spec = parse_scene(text, folder / "scene")
        return Scene(spec, spec.title)
    return Scene(load_scene(text), text)


def scenes() -> dict[str, str]:
    """The scenes that come with Palpo: name -> one line about it."""
    return list_scenes()


def _changed(tables: dict[str, Any], values: Values | None, overrides: Values) -> dict[str, Any]:
    """The tables with values put in by dotted keys, and tables laid over."""
    for key, value in (values or {}).items():
        put_value(tables, key, _plain(key, value), f"{key} = {value}")
    _lay_over(tables, {key: _plain(key, value) for key, value in overrides.items()})
    return tables


def _plain(key: str, value: Any) -> Any:
    try:
        return plain(value)
    except TypeError as error:
        raise ConfigError(f"{key}: {error}") from None


def _lay_over(tables: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        below = tables.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _lay_over(below, value)
        else:
            tables[key] = value
