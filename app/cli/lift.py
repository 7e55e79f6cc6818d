"""`palpo lift CUP PARTNER`: what a cup holds of a load, as a report and as a law for other simulators."""

import argparse
import math
from pathlib import Path

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import check_folder
from palpo.config.words import Refusal

ROUGHNESSES = (2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5)
"""Of the map [m rms]; a load's own is added."""


def add_lift(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("cup", metavar="CUP", help="a cup of the thesis: small, large, round, S10, ...")
    parser.add_argument(
        "partner", metavar="PARTNER", help="what it is pressed on: plane, or cylinder:MM (diameter)"
    )
    for name, default, help_ in (
        ("mass", 50.0, "mass of the load [g]"), ("push", 1.0, "how far the cup is pressed on [mm]"),
        ("mu", 0.6, "friction"),
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
    """Write the report; 0 where the load is held, 1 where it is not."""
    diameter = diameter_of(options.partner)
    for name in ("mass", "push", "mu", "rms", "seconds"):
        value = getattr(options, name)
        if not 0.0 < value < math.inf:
            raise Refusal(f"--{name} {value:g}: give one above 0")
    if not 0.0 <= options.tilt <= 90.0:
        raise Refusal(f"--tilt {options.tilt:g}: give 0 to 90 degrees")
    if not (math.isfinite(options.offset) and math.isfinite(options.below)):
        raise Refusal("--offset and --below: give finite lengths")
    out = options.out or Path("out") / f"lift-{options.cup}"
    check_folder(out, "--out")
    with Progress().stage("simulating the cup as it is pulled off"):
        from palpo.app.report.lift_page import write_lift
        from palpo.physics.suction.reduced_cup import HeldLoad, margins, reduce_cup

        rms = 1e-6 * options.rms
        law = reduce_cup(options.cup, 1e-3 * options.push, options.mu, tuple({*ROUGHNESSES, rms}))
    load = HeldLoad(
        1e-3 * options.mass, math.radians(options.tilt), 1e-3 * options.offset, 1e-3 * options.below,
        diameter, rms, options.seconds,
    )  # fmt: skip
    page = write_lift(out, law, load)
    found = margins(law, load)
    name = min(found, key=lambda key: found[key])
    print(f"{'held' if found[name] > 1.0 else 'not held'}: least margin {found[name]:.3g} ({name}); {page}")
    return 0 if found[name] > 1.0 else 1
