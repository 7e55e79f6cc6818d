"""The studies by name. Each recomputes a figure or table and ends with its claims."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from palpo.studies.claims import Claim, Line, Skipped, claimed, print_claims, write_claims

Study = Callable[[Path, bool], Sequence[Line]]


def _lazy(module: str) -> Study:
    """The study of a module, imported when it is called: a study may need what others do without."""

    def run(out: Path, quick: bool) -> Sequence[Line]:
        study: Study = importlib.import_module(f"palpo.studies.{module}").run
        return study(out, quick)

    return run


STUDIES: dict[str, Study] = {
    "multirate-beams": _lazy("multirate_beams"),
    "multirate-wire": _lazy("multirate_wire"),
    "multirate-accuracy": _lazy("multirate_accuracy"),
    "speed-accuracy": _lazy("speed_accuracy"),
    "random-hands": _lazy("random_hands"),
    "random-cuts": _lazy("random_cuts"),
    "random-insertions": _lazy("random_insertions"),
    "large-accuracy": _lazy("large_accuracy"),
    "mixed-accuracy": _lazy("mixed_accuracy"),
    "indentation": _lazy("indentation"),
    "measured-bodies": _lazy("measured_bodies"),
    "compression": _lazy("compression"),
    "recorded-touch": _lazy("recording"),
    "zwidth": _lazy("zwidth"),
    "contact-bank": _lazy("contact_bank"),
    "hapco-solvers": _lazy("hapco_solvers"),
    "hapco-2008": _lazy("hapco_2008"),
    "hapco-contacts": _lazy("hapco_contacts"),
    "hapco-delassus": _lazy("hapco_delassus"),
    "hapco-strain": _lazy("hapco_strain"),
    "hapco-haptic": _lazy("hapco_haptic"),
    "snap-collision": _lazy("snap_collision"),
    "snap-solver": _lazy("snap_solver"),
    "snap-energy": _lazy("snap_energy"),
    "snap-stability": _lazy("snap_stability"),
    "snap-frequency": _lazy("snap_frequency"),
    "snap-accuracy": _lazy("snap_accuracy"),
    "snap-wedge": _lazy("snap_wedge"),
    "snap-clusters": _lazy("snap_clusters"),
    "snap-reduction": _lazy("snap_reduction"),
    "snap-haptic": _lazy("snap_haptic"),
    "snap-learning": _lazy("snap_learning"),
    "suction-gas": _lazy("suction_gas"),
    "suction-mass": _lazy("suction_mass"),
    "suction-curvature": _lazy("suction_curvature"),
    "suction-shapes": _lazy("suction_shapes"),
    "suction-seal": _lazy("suction_seal"),
    "suction-tunnel": _lazy("suction_tunnel"),
    "suction-active": _lazy("suction_active"),
    "suction-passive": _lazy("suction_passive"),
    "suction-axisymmetric": _lazy("suction_axisymmetric"),
    "suction-measured": _lazy("suction_measured"),
    "suction-learning": _lazy("suction_learning"),
}
"""Name -> run(out, quick): writes CSV and PNG into the folder `out`, which exists, and returns its lines."""

ABOUT = {
    "multirate-beams": "003, first experiment: two beams, one at each rate, bend alike and feel equal forces",
    "multirate-wire": "003, second experiment: a cylinder pulled, lifted and hung by a wire",
    "multirate-accuracy": "error of each interface kind against everything at 1 kHz",
    "speed-accuracy": "taps, strokes, shakes, let-goes at up to 0.5 m/s against everything at 1 kHz",
    "random-hands": "random paths of the hand over five scenes: what breaks, what comes back, and the energy",
    "random-cuts": "random blades in random bodies: what breaks, what is left behind, and the energy",
    "random-insertions": "random needles in random bodies: what breaks, what is left behind, and the energy",
    "large-accuracy": "a liver of 20,000 tetrahedra at 10 Hz against everything at 1 kHz",
    "mixed-accuracy": "bodies of several rates, and several hands, against everything at 1 kHz",
    "indentation": "a ball pressed into a block by each element, against another program's converged force",
    "measured-bodies": "published presses, pulls and relaxation of silicone and gel, ours beside each",
    "compression": "a cube pressed flat, bonded or frictionless, by each element, against another program",
    "recorded-touch": "a real hand's recording on the needle, the probe and a real liver's mesh",
    "zwidth": "largest stable coupling stiffness over damping, and its margin over delay, friction and grip",
    "contact-bank": "every contact problem that we have: is one unsolved, and which solver is the quickest",
    "hapco-solvers": "001, chapter 3: every contact solver on three pairs of materials and two paths",
    "hapco-2008": "004, figures 6 to 9: Uzawa local and global, both errors, one clamp or two",
    "hapco-contacts": "001, figures 3.43 to 3.46: time of a solve over 16 to 400 contacts, and its order",
    "hapco-delassus": "001, sections 4.2 and 4.3: contact forces with and without the Delassus operator",
    "hapco-strain": "how deep a linear body may be pressed, beside 001's law of large strains",
    "hapco-haptic": "001, section 4.4.3: the six steps of the haptic trials with a simulated hand",
    "snap-collision": "002, section IV-A: learned, grid and exact distance of the plugs, error and time",
    "snap-solver": "002, section IV-B: contact solvers on two-sided squeezes, residual against sweeps",
    "snap-energy": "002, proposition 1: energy of a whole snap without damping, over ten decades of k_c",
    "snap-stability": "002, V-A: undamped at E = 164.76 MPa, and a corotational prong at the same step",
    "snap-frequency": "002, table I and figure 5: steps per second of the four models",
    "snap-accuracy": "002, figures 7 and 8: insertion force of the four models against a finer one",
    "snap-wedge": "peak of an insertion over the ramp's angle and friction, beside a beam's closed form",
    "snap-clusters": "002, section IV-A: contacts with and without k-means, sweeps and noise of the force",
    "snap-reduction": "002, section III-B: balanced, modal and Craig-Bampton bases at equal order",
    "snap-haptic": "the click in a simulated hand at 1 kHz beside the model off line, and its energy",
    "snap-learning": "a policy learns to latch a plug that lies askew, beside one that pushes blindly",
    "suction-gas": "000, figure 5.16: pressure, volume and air of a cup that lifts a cube",
    "suction-mass": "000, figure 5.14: the mass that a cup lifts, over push depth, friction, mesh and step",
    "suction-curvature": "000, figure 5.12: lifting half cylinders, from flattened to round",
    "suction-shapes": "000, figure 5.13: a round, a straight and an asymmetric cup on a soft cube",
    "suction-seal": "000, figures 5.12 to 5.15: each lift with the air under the rim computed",
    "suction-tunnel": "000, figure 5.15: a cup on one hole of a tunnel, and on both",
    "suction-active": "000, section 5.1: force to detach a cup under a given pressure, and its shape",
    "suction-passive": "000, section 5.2.1: force to detach flattened cups from pipes",
    "suction-axisymmetric": "what a cup holds, its rim bonded or sliding, by a model of its own",
    "suction-measured": "published measurements of cups, each with its source and our figure beside it",
    "suction-learning": "a policy learns to set a cup so that it holds, beside one that presses blindly",
}


def run_study(name: str, out: Path, quick: bool = False, console: Console | None = None) -> list[Claim]:
    """Run a study, print its claims and figures and write them to out/claims.json; returns the claims.

    KeyError for an unknown name. A study that cannot run here says why and returns no claims.
    """
    study = STUDIES[name]
    console = console or Console()
    out.mkdir(parents=True, exist_ok=True)
    try:
        lines = study(out, quick)
    except Skipped as reason:
        console.print(f"{name} skipped: {reason}", soft_wrap=True, markup=False)
        return []
    write_claims(out / "claims.json", name, quick, lines)
    print_claims(f"{name}{' (quick)' if quick else ''}", lines, console)
    console.print(f"written to {out}", soft_wrap=True)
    return claimed(lines)
