"""The worked example of docs/designing.md, from STL files to a chosen angle: writes its pictures."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from palpo.app.cli import design
from palpo.app.cli.progress import Progress
from palpo.app.report.design_export import export
from palpo.app.report.design_page import said, write_design
from palpo.app.report.gallery import keep_small

ANGLES = 25, 30, 35, 40, 45, 50
"""Of wedge and hook [degrees]."""
CHOSEN = 30
LIMITS = design.Limits(insertion_below=40.0, retention_above=60.0, strain_below=0.025)
TOLERANCES = "friction.default=30%", "material.youngs_modulus=15%", "connector.plug.grow=0.0001"
PARTS = 30


def main(pictures: Path) -> None:
    """Write `design-*.png` into a folder that exists, and say what was found."""
    progress = Progress()
    with TemporaryDirectory() as room:
        folder = Path(room)
        scenes = [
            str(export("snap", (f'connector.ramp="{angle} deg"',), folder / str(angle))) for angle in ANGLES
        ]
        chosen = scenes[ANGLES.index(CHOSEN)]
        asked = design.DesignRequest(
            chosen, axes=design.axes_of(scenes, ()), tolerances=TOLERANCES, runs=PARTS, limits=LIMITS
        )
        found = design.investigate(asked, progress)
        share = design.share_of(found.parts)
        out = folder / "out"
        out.mkdir()
        write_design(out, found, share)
        for name in ("force", "body", "quality", "sweep", "parts"):
            keep_small(out / f"{name}.png", pictures / f"design-{name}.png")
    design.print_found(found)
    print(said(share, PARTS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
