"""`palpo materials`: what the library has, and where its numbers are from."""

from rich.console import Console
from rich.table import Table

from palpo.app.cli.refusal import chosen_of
from palpo.app.library.computing import KnownMaterial, materials
from palpo.config.schema.material import SoftMaterial, library


def print_materials(name: str | None) -> None:
    """A line for each material; of one, its table as a scene has it, its source and how sure it is.

    Raises Refusal for a name that is not there.
    """
    console = Console(highlight=False, soft_wrap=True)
    if name is not None:
        entry: KnownMaterial = chosen_of(name, materials(), "material")
        console.print(told(name), markup=False)
        console.print(f"source: {entry.source}\nhow sure: {entry.sure}", markup=False)
        return
    table = Table("material", "E", "nu", "kg/m3", "law", "how sure")
    table.columns[0].no_wrap = True
    for key, (made, _, sure) in materials().items():
        table.add_row(
            key, stiffness(made.youngs_modulus), f"{made.poisson_ratio:g}", f"{made.density:g}", made.law,
            sure,
        )  # fmt: skip
    Console(highlight=False).print(table)
    print("palpo materials NAME tells a material's constants and their source; E is that at rest")


def told(name: str) -> str:
    """The table of a material, as a scene has it."""
    made, keys = SoftMaterial.model_validate(name), library()[name]
    lines = [f"{key} = {_toml(keys[key])}" for key in SoftMaterial.model_fields if key in keys]
    return "\n".join([f"[{name}]  # E at rest {stiffness(made.youngs_modulus)}", *lines])


def stiffness(pascal: float) -> str:
    """In the unit that suits it."""
    unit, scale = next(
        (u, s) for u, s in (("GPa", 1e9), ("MPa", 1e6), ("kPa", 1e3), ("Pa", 1.0)) if pascal >= s
    )
    return f"{pascal / scale:.3g} {unit}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"
