"""What a measured force over depth tells of a material: each law's constants, what they miss, a picture."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

from palpo.app.cli.materials import stiffness
from palpo.app.cli.progress import Progress
from palpo.config.schema.units import Quantity
from palpo.config.words import Refusal, in_words
from palpo.physics.fem.laws import LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

DEPTHS = {"depth_m": 1.0, "depth_mm": 1e-3}
FORCES = {"force_N": 1.0, "force_mN": 1e-3}
LEAST, MOST = 5, 100_000
"""Measurements that a file may have."""
BYTES = 50_000_000
ENOUGH = 400
"""Measurements that are fitted: of more, so many that lie evenly among them."""
SHALLOW = 0.3
"""Depth over radius to which Hertz's law is taken: there it errs by some 5% on a deep, soft body."""


class Specimen(NamedTuple):
    """What was pressed or pulled."""

    kind: str
    """ball, cylinder or strip"""
    sizes: tuple[float, ...]
    """[m]: radius; diameter and height; width, thickness and length."""

    def force(self, material: Material, depths: Floats) -> Floats:
        """[N] at depths (k,) [m] of a material."""
        if self.kind == "ball":
            plane = material.youngs_modulus / (1.0 - material.poisson_ratio**2)
            return 4.0 / 3.0 * plane * math.sqrt(self.sizes[0]) * np.maximum(depths, 0.0) ** 1.5
        if self.kind == "cylinder":
            across, height = self.sizes
            return -0.25 * math.pi * across**2 * nominal_stress(material, 1.0 - depths / height)
        width, thickness, length = self.sizes
        return width * thickness * nominal_stress(material, 1.0 + depths / length)

    @property
    def deepest(self) -> float:
        """[m] beyond which nothing is computed."""
        return {"ball": SHALLOW * self.sizes[0], "cylinder": 0.98 * self.sizes[-1]}.get(self.kind, math.inf)


class Parameters(NamedTuple):
    """Of a law beside Young's modulus: where they begin, and their bounds."""

    names: tuple[str, ...]
    starts: tuple[tuple[float, ...], ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: Callable[[Floats], tuple[float, ...]]


PARAMETERS = {
    LINEAR: Parameters((), ((),), (), (), lambda p: ()),
    "neo-hookean": Parameters((), ((),), (), (), lambda p: ()),
    "mooney-rivlin": Parameters(("c01 / (c10 + c01)",), ((0.3,),), (0.0,), (1.0,), lambda p: (float(p[0]),)),
    "ogden": Parameters(
        ("exponent",), ((3.0,), (-4.0,), (12.0,), (-15.0,)), (-50.0,), (50.0,),
        lambda p: (1.0, float(p[0]) if abs(p[0]) > 0.05 else 0.05),
    ),
    "fung": Parameters(
        ("exponent",), ((0.02,), (0.5,), (5.0,)), (1e-3,), (1000.0,), lambda p: (float(p[0]),)
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """What was found of a law."""

    law: str
    material: Material
    names: tuple[str, ...]
    values: Floats
    """Young's modulus [Pa], and what names say."""
    errors: Floats
    """Standard errors of them; NaN of what the data do not tell."""
    residual: float
    """Root mean square of what it misses, over the largest force."""


def measured_force(path: Path) -> tuple[Floats, Floats]:
    """Depths [m] and forces [N] of a CSV file with a header: depth_m or depth_mm, force_N or force_mN.

    Lines that begin with # are passed over. Raises Refusal for a file that is none of these.
    """
    try:
        if path.stat().st_size > BYTES:
            raise Refusal(f"{path}: has more than {BYTES // 1_000_000} MB; a force over depth needs far less")
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(line for line in file if line.strip() and not line.startswith("#")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refusal(f"{path}: {error}") from error
    header = [name.strip() for name in rows[0]] if rows else []
    columns = []
    for known in (DEPTHS, FORCES):
        found = [name for name in header if name in known]
        if len(found) != 1:
            raise Refusal(f"{path}: its first line names no column {in_words(list(known))}, or both")
        columns.append((header.index(found[0]), known[found[0]]))
    out = []
    for number, row in enumerate(rows[1:], 1):
        try:
            values = [scale * float(row[column]) for column, scale in columns]
        except (ValueError, IndexError):
            said = f"measurement {number} is {','.join(row)!r}, where two numbers are needed"
            raise Refusal(f"{path}: {said}") from None
        if not all(map(math.isfinite, values)):
            raise Refusal(f"{path}: measurement {number} is {','.join(row)!r}, which is not finite")
        out.append(values)
    if not LEAST <= len(out) <= MOST:
        raise Refusal(f"{path}: has {len(out)} measurements; give {LEAST} to {MOST}")
    depths, forces = np.array(out).T
    return depths, forces


def specimen_of(ball: str | None, cylinder: list[str] | None, strip: list[str] | None) -> Specimen:
    """By the options of the command; Refusal unless exactly one is given, of positive lengths."""
    given = {
        kind: told
        for kind, told in (("ball", ball and [ball]), ("cylinder", cylinder), ("strip", strip))
        if told
    }
    if len(given) != 1:
        raise Refusal("say what was measured: one of --ball R, --cylinder D H and --strip W T L")
    ((kind, told),) = given.items()
    sizes = []
    for text in told:
        try:
            value: str | float = float(text)
        except ValueError:
            value = text
        try:
            sizes.append(Quantity("length").to_si(value))
        except ValueError as error:
            raise Refusal(f"--{kind} {text}: {error}") from None
        if not sizes[-1] > 0.0:
            raise Refusal(f"--{kind} {text}: give a positive length")
    return Specimen(kind, tuple(sizes))


def identify_material(
    path: Path, specimen: Specimen, laws: list[str], ratio: float, progress: Progress
) -> tuple[list[Fit], Floats, Floats]:
    """The best constants of each law for a measured force, the best law first; depths [m], forces [N] used.

    Raises Refusal for a file or options that cannot be used.
    """
    known = (LINEAR,) if specimen.kind == "ball" else tuple(PARAMETERS)
    for law in laws:
        if law not in known:
            why = "a ball tells a modulus alone, by Hertz" if law in PARAMETERS else "there is no such law"
            raise Refusal(f"--law {law}: {why}; choose {in_words(list(known))}")
    if not 0.0 <= ratio < 0.5:
        raise Refusal(f"--poisson-ratio {ratio:g}: give one from 0 to below 0.5")
    depths, forces = measured_force(path)
    used = (depths > 0.0) & (depths <= specimen.deepest)
    if np.count_nonzero(used) < LEAST:
        raise Refusal(
            f"{path}: {np.count_nonzero(used)} measurements are at depths above 0 and up to "
            f"{1e3 * min(specimen.deepest, depths.max()):.4g} mm; {LEAST} are needed"
        )
    depths, forces = depths[used], forces[used]
    some = np.unique(np.linspace(0, len(depths) - 1, min(len(depths), ENOUGH)).astype(int))
    depths, forces = depths[some], forces[some]
    if not np.median(forces) > 0.0:
        raise Refusal(
            f"{path}: most forces are not positive; turn their sign, so that resistance is positive"
        )
    fits = []
    for law in laws or known:
        with progress.stage(f"fitting {law}"):
            fits.append(fitted(specimen, law, ratio, depths, forces))
    return sorted(fits, key=lambda fit: fit.residual), depths, forces


def fitted(specimen: Specimen, law: str, ratio: float, depths: Floats, forces: Floats) -> Fit:
    """The constants of a law by least squares, from several starts."""
    about, size = PARAMETERS[law], np.abs(forces).max()

    def material(p: Floats) -> Material:
        return Material(math.exp(p[0]), ratio, 1000.0, law=law, shape=about.shape(p[1:]))

    def missed(p: Floats) -> Floats:
        try:
            out = (specimen.force(material(p), depths) - forces) / size
        except InputError:  # constants of no material
            out = np.full_like(forces, np.nan)
        return np.where(np.isfinite(out), out, 1e3)

    unit = specimen.force(Material(1.0, ratio, 1000.0), depths)
    modulus = math.log(max(float(forces @ unit) / float(unit @ unit), 1e-9))
    low, high = np.array([-50.0, *about.low]), np.array([50.0, *about.high])
    found = min(
        (least_squares(missed, [modulus, *start], bounds=(low, high), x_scale=1.0) for start in about.starts),
        key=lambda one: one.cost,
    )
    free = max(1, len(forces) - len(found.x))
    curvature = found.jac.T @ found.jac
    try:
        variance = np.diag(np.linalg.inv(curvature)) * 2.0 * found.cost / free
        errors = np.sqrt(np.where(variance >= 0.0, variance, np.nan))
    except np.linalg.LinAlgError:
        errors = np.full(len(found.x), np.nan)
    values, made = found.x.copy(), material(found.x)
    values[0], errors[0] = made.youngs_modulus, made.youngs_modulus * errors[0]
    residual = float(np.sqrt(np.mean(missed(found.x) ** 2)))
    return Fit(law, made, about.names, values, errors, residual)


def print_fits(fits: list[Fit], specimen: Specimen, count: int) -> None:
    """A line for each law, and the best one as a scene has it."""
    table = Table("law", "E at rest", "its other constants", "misses, of the largest force")
    for fit in fits:
        others = ", ".join(
            f"{name} {value:.4g} +- {error:.2g}"
            for name, value, error in zip(fit.names, fit.values[1:], fit.errors[1:], strict=True)
        )
        modulus = f"{stiffness(fit.values[0])} +- {100.0 * fit.errors[0] / fit.values[0]:.2g}%"
        table.add_row(fit.law, modulus, others, f"{100.0 * fit.residual:.2g}%")
    Console(highlight=False).print(table)
    print(f"{count} measurements; errors are standard errors of a fit whose law is right")
    print(f"material = {as_table(fits[0].material)}")
    if specimen.kind == "ball":
        print("by Hertz's law, on a body much deeper and wider than the ball, without friction")
    if specimen.kind == "cylinder":
        bonded = 1.0 + 2.0 * (0.25 * specimen.sizes[0] / specimen.sizes[1]) ** 2
        print(f"taken to slide on the plates; if it sticks to them, E is about {bonded:.2f} times too large")


def as_table(material: Material) -> str:
    """A material as scenes have it; its density is to be set."""
    mu = material.lame()[1]
    keys = [f"poisson_ratio = {material.poisson_ratio:g}", "density = 1000"]
    if material.law == "mooney-rivlin":
        share = material.shape[0]
        keys += [f"c10 = {0.5 * mu * (1.0 - share):.6g}", f"c01 = {0.5 * mu * share:.6g}"]
    elif material.law == "ogden":
        exponent = material.shape[1]
        keys.append(f"terms = [{{ modulus = {2.0 * mu / exponent:.6g}, exponent = {exponent:.6g} }}]")
    else:
        keys.insert(0, f"youngs_modulus = {material.youngs_modulus:.6g}")
        keys += [f"exponent = {one:.6g}" for one in material.shape]
    return "{ " + ", ".join([f'law = "{material.law}"', *keys]) + " }"


def draw_fits(path: Path, fits: list[Fit], specimen: Specimen, depths: Floats, forces: Floats) -> None:
    """Force over depth as measured, and of each law."""
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(1e3 * depths, forces, "k.", ms=3, label="measured")
    fine = np.linspace(0.0, float(depths.max()), 200)
    for fit in fits:
        label = f"{fit.law}, misses {100.0 * fit.residual:.2g}%"
        axes.plot(1e3 * fine, specimen.force(fit.material, fine), lw=1.2, label=label)
    axes.set(xlabel="depth [mm]", ylabel="force [N]")
    axes.legend()
    figure.savefig(path, dpi=150)
