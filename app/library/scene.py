"""Scenes as a script has them: from a name, a file, a text or tables, changed as values are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from palpo.app.library.refusals import refusing
from palpo.config.files import files_of, with_files
from palpo.config.load import list_scenes, load_scene, parse_scene, put_value, scene_of, scene_tables
from palpo.config.parts import SceneKeys
from palpo.config.schema.scene import BaseScene
from palpo.config.toml import plain, write_toml
from palpo.config.words import ConfigError

if TYPE_CHECKING:
    from palpo.app.library.model import Model

Values = Mapping[str, Any]
"""Keys of a scene, "rates.low_hz" or tables of them, and their values."""


@dataclass(frozen=True, eq=False, init=False)
class Scene:
    """A validated scene that never changes, made of its parts, or by `load`.

    spec: its specification, frozen, with every key and default of docs/scenes.md. name: what it was loaded
    as.
    """

    spec: BaseScene
    name: str

    @refusing
    def __init__(self, **keys: Unpack[SceneKeys]) -> None:
        """The scene of these parts; they are the keys of docs/scenes.md, in SI units, [m], [N], [s].

        What is left out has the default of the system that the bodies' kinds make the scene one of. A part
        may be a table, too, and a quantity a text with its unit. Raises Refusal, with key, value and what
        would be right, for what cannot be used.
        """
        tables = {key: _plain(key, value) for key, value in keys.items() if value is not None}
        self._become(scene_of(tables, Path("scene")), str(keys.get("title")))

    def _become(self, spec: BaseScene, name: str) -> Scene:
        object.__setattr__(self, "spec", spec)
        object.__setattr__(self, "name", name)
        return self

    @classmethod
    def of(cls, spec: BaseScene, name: str) -> Scene:
        """The scene of a specification."""
        return cls.__new__(cls)._become(spec, name)

    @staticmethod
    def load(path: str | Path) -> Scene:
        """The scene of a TOML file, or a shipped one by its name; Refusal for what cannot be used."""
        return load(path)

    @refusing
    def save(self, path: str | Path) -> None:
        """Write the scene as a TOML file, which `load` gives back as it is and `palpo run` takes.

        Files of meshes that it names stay where they are: a file in another folder says their whole paths.
        Raises Refusal for a file that cannot be written.
        """
        origin, path = self.spec.origin, Path(path)
        files = dict(files_of(self.spec))
        if files and path.parent.resolve() != origin.path.parent.resolve():
            text = write_toml(with_files(scene_tables(origin), files))
        else:
            text = self.to_toml()
        path.write_text(text, "utf-8")

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
        return Scene.of(scene_of(tables, origin.path), self.name)

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

    def _repr_html_(self) -> str:
        from palpo.app.report.notebook import as_html, picture_of
        from palpo.app.visual.rest import rest_picture
        from palpo.physics.numerics.errors import InputError

        try:
            geometry, state = rest_picture(self.spec)
            picture = picture_of(geometry, [state], self.spec.view)
            rows: dict[str, object] = {"bodies": ", ".join(d.name for d in geometry.drawables)}
        except InputError as error:
            picture, rows = "", {"meshes": str(error)}
        rows = {"description": self.spec.description, "system": self.system, **rows}
        return as_html(self.title, rows | {"servo": f"{self.spec.rates.servo_hz:g} Hz"}, picture)

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
        return Scene.of(scene_of(tables, folder / "scene"), str(tables.get("title", "scene")))
    text = str(source)
    if isinstance(source, str) and ("\n" in text or "=" in text):
        spec = parse_scene(text, folder / "scene")
        return Scene.of(spec, spec.title)
    return Scene.of(load_scene(text), text)


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
