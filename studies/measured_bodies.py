"""Measured bodies: silicone cylinders, strips, an elastomer that relaxes, a gel cube; ours beside each.

What is published and where it is from is in studies/curves/measured_bodies.toml. A measurement that does not
tell enough to be held against (friction, modulus, tool) is a figure, not a claim.
"""

from collections.abc import Sequence
from pathlib import Path

from palpo.studies import measured_cube, measured_cylinder, measured_relaxation, measured_strip
from palpo.studies.claims import Line
from palpo.studies.tables import save_figure, write_csv


def run(out: Path, quick: bool) -> Sequence[Line]:
    """Tables, pictures and claims; quick: one silicone, and one mesh of it and of the cube."""
    pressed, runs = measured_cylinder.rows(quick)
    write_csv(out / "cylinders.csv", pressed)
    save_figure(out / "cylinders.png", 5.5, lambda figure: measured_cylinder.draw(figure, pressed, runs))
    strips = measured_strip.strips(quick)
    save_figure(out / "strips.png", 4.0, lambda figure: measured_strip.draw(figure, strips))
    save_figure(out / "relaxation.png", 4.0, measured_relaxation.draw)
    beads, presses = measured_cube.rows(quick)
    write_csv(out / "cube.csv", beads)
    save_figure(out / "cube.png", 4.5, lambda figure: measured_cube.draw(figure, presses, beads))
    return [
        *measured_cylinder.lines(pressed, runs, quick),
        *measured_strip.lines(strips),
        *measured_relaxation.lines(),
        *measured_cube.lines(presses, quick),
    ]
