"""`palpo lift CUP PARTNER`: what a cup holds of a load, as a report and as a law for other simulators."""

import argparse
import math
from pathlib import Path

from palpo.app.cli.refusal import check_folder
from palpo.config.words import Refusal

SPEEDS = (0.01, 0.1, 0.5)
"""At which masses are told that are lifted off the ground [m/s]."""


def add_lift(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "cup", metavar="CUP", help="a cup of the thesis (small, large, round, S10, ...), or a suction scene"
    )
    parser.add_argument(
        "partner", metavar="PARTNER", help="what it is pressed on: plane, or cylinder:MM (diameter)"
    )
    parser.add_argument("--cup", dest="which", metavar="NAME", help="the cup of the scene that is asked")
    parser.add_argument("--mu", type=float, help="friction; default 0.6, of a scene its own")
    for name, default, help_ in (
        ("mass", 50.0, "mass of the load [g]"), ("push", 1.0, "how far the cup is pressed on [mm]"),
        ("tilt", 0.0, "angle of the cup's axis from the vertical [degrees]"),
        ("offset", 0.0, "distance of the centre of mass from the axis [mm]"),
        ("below", 0.0, "depth of the centre of mass under the rim [mm]"),
        ("rms", 1.0, "roughness of the surface, rms [um]"), ("seconds", 10.0, "how long it has to hold"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=float, default=default, help=f"{help_}; default {default:g}")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: out/lift-CUP")
    parser.set_defaults(command=lift)


def diameter_of(partner: str) -> float:
    """Diameter [m] of the cylinder, infinite for a plane; Refusal for anything else."""
    if partner == "plane":
        return math.inf
    kind, _, size = partner.partition(":")
    try:
        diameter = 1e-3 * float(size)
    except ValueError:
        diameter = math.nan
    if kind != "cylinder" or not 0.0 < diameter < math.inf:
        raise Refusal(
            f"PARTNER {partner}: give plane, or cylinder:MM with a diameter above 0, as cylinder:120"
        )
    return diameter


def lift(options: argparse.Namespace) -> int:
    """Write the report and the models; 0 where the load is held, 1 where it is not."""
    diameter = diameter_of(options.partner)
    for name in ("mass", "push", "mu", "rms", "seconds"):
        value = getattr(options, name)
        if value is not None and not 0.0 < value < math.inf:
            raise Refusal(f"--{name} {value:g}: give one above 0")
    if not 0.0 <= options.tilt <= 90.0:
        raise Refusal(f"--tilt {options.tilt:g}: give 0 to 90 degrees")
    if not (math.isfinite(options.offset) and math.isfinite(options.below)):
        raise Refusal("--offset and --below: give finite lengths")
    out = options.out or Path("out") / f"lift-{Path(options.cup).stem}"
    check_folder(out, "--out")
    from palpo.app.library.gripping import lift as lifted

    found = lifted(
        options.cup, which=options.which, mass=1e-3 * options.mass, push=1e-3 * options.push, mu=options.mu,
        tilt=math.radians(options.tilt), offset=1e-3 * options.offset, below=1e-3 * options.below,
        diameter=diameter, rms=1e-6 * options.rms, seconds=options.seconds, progress=True,
    )  # fmt: skip
    page = found.report(out)
    found.export(out)
    name = min(found.margins, key=lambda key: found.margins[key])
    said = "held" if found.holds else "not held"
    print(f"{said}: least margin {found.margins[name]:.3g} ({name}); {page}")
    masses = ", ".join(f"{1e3 * found.lifted(v):.3g} g at {v:g} m/s" for v in SPEEDS)
    print(f"off the ground it lifts {masses}")
    print(f"for MuJoCo, Drake and USD: {out / 'lift.xml'}, {out / 'lift.sdf'}, {out / 'lift.usda'}")
    return 0 if found.holds else 1
