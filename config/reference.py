"""docs/scenes.md, written from the specifications: `python -m palpo.config.reference docs/scenes.md`."""

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from palpo.config.load import list_scenes
from palpo.config.schema.base import Among, Default, Only, is_tagged, kind_of, mark_of
from palpo.config.schema.material import Elastic, library
from palpo.config.schema.scene import SceneSpec
from palpo.config.schema.units import UNITS, Quantity
from palpo.config.systems import SYSTEMS
from palpo.config.words import in_words

PREFACE = """\
# Scenes

A scene is a TOML file. `palpo scenes` lists those that come with the program, `palpo run SCENE`
takes such a name or the path of your own file, and `palpo scenes --schema` prints the JSON schema
for an editor. Start from a copy of one in `config/scenes`.

Lengths are in metres, y points up, gravity is along -y. A plain number is in the SI unit shown in
brackets; text may carry another unit: `radius = "5 mm"`, `youngs_modulus = "3 kPa"`,
`low_hz = "20 Hz"`. A unit of the wrong kind is an error, as is a key that does not exist. A shape
is made in its own frame, then scaled, rotated and moved by its `placement`; every other position in
a file is the scene's, with the bodies at rest.

Any key can be set for one run:

    palpo run wire --set rates.low_hz=25 --set bodies.wire.material.youngs_modulus="1 GPa"

Items of lists go by their number from 0, bodies by their name too: `friction.pairs.0.mu`,
`bodies.wire.rate`.

What computes a scene follows from what stands in it: two bodies of `kind = "quasistatic"` make a
HapCo scene, a body of `kind = "cup"` makes a suction scene, `[connector]` a snap scene; all else is
a multi-rate scene. The key `system`, `multirate`, `hapco`, `snap` or `suction`, may say so too; a
key of another system is refused, with what made the scene one of its own. A part of a scene, such
as a body, `tool` or `contact`, is the same in all of them: where only some have a key, they are
named before its meaning, and where a default is another one in some, that stands behind it.
Packages can bring further systems (CONTRIBUTING.md).

The same words make a scene in Python: a part is a class of `palpo`, named in its heading here, and
its keys are arguments of that name ([Palpo from Python](tutorial.md)).

A snap scene has no list of bodies: plug, socket, push and hold are made for each other, by one
generator or from one set of files, and one reduced model holds them all; `[connector]` names them as
the whole that they are. Among other bodies, as in `mixed-snap`, the plug and each part of the socket
are bodies of their own kinds.

A scene as it was written before all systems listed their bodies, with `[mobile]`, `[fixed]` and
`[hold]` or with `[[cups]]` and `[partner]`, is read as before.

This page is written by `make docs` from the specifications in `config/schema`; a test compares the
two.
"""


def schema_markdown() -> str:
    """The whole page: each key with its unit, default and meaning."""
    parts = [PREFACE, _scenes(), *_sections(), _materials(), _units()]
    return "\n".join(parts)


def _scenes() -> str:
    rows = [f"| `{name}` | {line} |" for name, line in list_scenes().items()]
    return "\n".join(
        ["## Scenes that come with the program", "", "| scene | what it is |", "|---|---|", *rows, ""]
    )


def _sections() -> Iterator[str]:
    """One section for each specification, under the outermost key that uses it, outer before inner."""
    paths: dict[type[BaseModel], str] = {}
    users: dict[type[BaseModel], list[str]] = {}
    for system, scene in SYSTEMS.items():
        known = len(paths)
        _collect("", scene, paths, users)
        for model, path in list(paths.items())[known:]:
            yield _section(path, model, users.get(model, []), "" if scene is SceneSpec else system)


def _collect(
    path: str,
    model: type[BaseModel],
    paths: dict[type[BaseModel], str],
    users: dict[type[BaseModel], list[str]],
) -> None:
    """Record the key under which each specification stands, and the kinds of body that use it."""
    if model in paths:
        if path.count(".") < paths[model].count("."):
            paths[model] = path
        return
    paths[model] = path
    for key, field in model.model_fields.items():
        many = ".*" if get_origin(field.annotation) is tuple else ""
        for inner in _models(field.annotation):
            if is_tagged(model):
                users.setdefault(inner, []).append(kind_of(model))
            _collect(f"{path}.{key}{many}".lstrip("."), inner, paths, users)


def _section(path: str, model: type[BaseModel], users: list[str], system: str) -> str:
    heading = "## The file"
    if path:
        kind = f', kind "{kind_of(model)}"' if is_tagged(model) else ""
        heading = f"## `{path}`{kind}" + (f" ({', '.join(users)})" if kind and users else "")
    if system:
        heading += f" ({system})"
    named = f" In Python `palpo.{model.__name__}`." if path else ""
    lines = [
        heading,
        "",
        cleandoc(model.__doc__ or "") + named,
        "",
        "| key | value | default | meaning |",
        "|---|---|---|---|",
    ]
    tag = "kind" if is_tagged(model) else None
    lines += [_row(key, field) for key, field in model.model_fields.items() if key != tag]
    return "\n".join([*lines, ""])


def _row(key: str, field: FieldInfo) -> str:
    annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    only, among = mark_of(field, Only), mark_of(field, Among)
    where = f"({in_words(list(only.systems), 'and')}) " if only else ""
    choices = (f" In {system}: {_quoted(names)}." for system, names in (among.names if among else {}).items())
    meaning = f"{where}{field.description}{''.join(choices)}"
    return f"| `{key}` | {_value(annotation)}{_bounds(field)} | {_default(field)} | {meaning} |"


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'`"{name}"`' for name in names)


def _value(annotation: Any) -> str:
    """The kind of value that an annotation stands for, in words."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        quantity = next((item for item in args[1:] if isinstance(item, Quantity)), None)
        if quantity is None:
            return _value(args[0])
        return f"{quantity.kind} [{quantity.unit}]" if quantity.unit else quantity.kind
    if origin is Literal:
        return ", ".join(f"`{_toml(arg)}`" for arg in args)
    if origin is tuple:
        return _list(args)
    if origin is dict:
        return f"table of names, each with {_value(args[1])}"
    models = list(_models(annotation))
    if len(models) > 1:
        return "table with kind " + in_words([f'`"{kind_of(model)}"`' for model in models])
    if models:
        return "name or table" if issubclass(models[0], Elastic) else "table"
    given = [arg for arg in args if arg is not type(None)]
    if given:
        return _value(given[0])
    return {str: "text", bool: "true or false", int: "whole number"}[annotation]


def _list(args: tuple[Any, ...]) -> str:
    """A tuple in words: equal items are counted, others are listed."""
    if args[-1] is Ellipsis:
        return f"list of ({_value(args[0])})"
    items = [_value(arg) for arg in args]
    if len(set(items)) == 1:
        return f"{len(items)} x ({items[0]})" if items[0][0].isdigit() else f"{len(items)} x {items[0]}"
    return ", ".join(items)


def _bounds(field: FieldInfo) -> str:
    signs = (("gt", "> "), ("ge", ">= "), ("lt", "< "), ("le", "<= "))
    found = [
        f"{sign}{getattr(item, name):g}"
        for item in _flat(field)
        for name, sign in signs
        if hasattr(item, name)
    ]
    return f", {' and '.join(found)}" if found else ""


def _flat(field: FieldInfo) -> Iterator[Any]:
    """A field's own constraints, and those that its annotation brings along."""
    for item in field.metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else [item]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The specifications inside an annotation, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not Literal:
        for arg in get_args(annotation):
            yield from _models(arg)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or field.default in ((), "", {}):
        return "none"
    if isinstance(field.default, BaseModel):
        return "as below"
    mark = mark_of(field, Default)
    others = (mark.values if mark else {}).items()
    return "; ".join(
        [f"`{_toml(field.default)}`", *(f"{system} `{_toml(value)}`" for system, value in others)]
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return (
        f"{value:g}" if isinstance(value, float) else f'"{value}"' if isinstance(value, str) else str(value)
    )


def _materials() -> str:
    keys = [*(key for key in Elastic.model_fields if key != "name"), "law", "terms", "sure"]
    rows = [
        f"| `{name}` | " + " | ".join(_constant(one.get(key, "")) for key in keys) + " |"
        for name, one in library().items()
    ]
    said = "`palpo materials NAME` tells a source. A linear body has the modulus that follows from terms."
    head = ["## Materials", "", said, ""]
    return "\n".join([*head, f"| name | {' | '.join(keys)} |", "|---" * (len(keys) + 1) + "|", *rows, ""])


def _constant(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(", ".join(map(str, term.values())) for term in value)
    return str(value)


def _units() -> str:
    rows = [f"| {kind} | {', '.join(units)} |" for kind, units in UNITS.items() if kind != "number"]
    return "\n".join(
        ["## Units", "", "| quantity | units in text, the SI unit first |", "|---|---|", *rows, ""]
    )


def gallery_markdown() -> str:
    """All scenes with their pictures, by system; those with a film in docs/pictures show it."""
    parts = [GALLERY]
    for heading, belongs in GROUPS.items():
        parts += [f"## {heading}", ""]
        scenes = {name: line for name, line in list_scenes().items() if belongs(name)}
        for name, line in scenes.items():
            film = f"pictures/{name}-moving.gif"
            picture = film if (DOCS / film).is_file() else f"../config/scenes/cards/{name}.png"
            group, _, rest = line.partition(": ")
            said = rest if group in NAMED else line
            parts += [f"### {name}", "", said[0].upper() + said[1:], "", f"![{name}]({picture})", ""]
            parts += [f"    palpo run {name}", ""]
    return "\n".join(parts)


DOCS = Path(__file__).resolve().parents[1] / "docs"
GALLERY = """# Gallery

All scenes that come with Palpo. Run one with `palpo run NAME`, or click on it in the window that `palpo`
opens. Without a person at the device, a simulated hand follows the scene's own path.
"""
NAMED = ("HapCo", "Snap", "Suction", "Suction by hand", "Any body on any body")
"""How the lines of scenes begin that name their group."""
STIFF = (
    "beams", "biopsy", "cut", "eye", "fold", "grooves", "incision", "needle", "organ", "probe", "stiffening",
    "three-rates", "two-hands", "wire",
)  # fmt: skip
GROUPS = {
    "Stiff tools on soft bodies": lambda name: name in STIFF,
    "One soft body on another": lambda name: name.startswith("hapco-"),
    "Connectors that click": lambda name: name.startswith("snap"),
    "Suction cups": lambda name: name.startswith("suction-"),
    "Several kinds of bodies in one scene": lambda name: name.startswith("mixed-"),
}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "scenes.md").write_text(schema_markdown(), "utf-8")
    (folder / "gallery.md").write_text(gallery_markdown(), "utf-8")
