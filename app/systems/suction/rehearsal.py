"""What a suction scene compiles ahead: a few steps of small cups call every compiled function."""

import numpy as np

from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.contact.problem import Stop
from palpo.physics.fem.material import Material
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.mesh import partners
from palpo.physics.mesh.cups import CUPS, GRIDS, POISSON_RATIO, cup
from palpo.physics.mesh.drawn_cups import DrawnShape, bellows_points
from palpo.physics.mesh.hex_cups import GRIDS as HEX_GRIDS
from palpo.physics.mesh.hex_cups import drawn_grid, hex_cup
from palpo.physics.suction.contact_search import Ground
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.folds import find_folds
from palpo.physics.suction.sides import FixedSide, RigidSide
from palpo.physics.systems.suction.step import Suction


def rehearse(cups: int = 1) -> None:
    """Flatten small cups on a block and pull them off: every compiled function of a step is called, of
    hexahedra; then those of a body of tetrahedra."""
    made = hex_cup(CUPS["small"].shape, HEX_GRIDS[76])
    material = Material(CUPS["small"].youngs_modulus, POISSON_RATIO, 1070.0)
    wall = np.union1d(made.underside, made.rim)
    bodies = [
        HeldBody(
            "cup",
            made.mesh.with_nodes(made.mesh.nodes + np.array([0.05 * k, 0.4e-3, 0.0])),
            material,
            made.held,
            wall,
        )
        for k in range(cups)
    ]
    block = partners.slab(0.2, 2, 0.02)
    volume, centre, inertia = block.mass_properties(1.0)
    rigid = RigidBody("block", 1.0, inertia / volume, centre)
    side = RigidSide(rigid, block.with_vertices(block.vertices - centre), 128)
    seal = seal_of(RoughSurface(1e-5, 5e-4), CUPS["small"].youngs_modulus)
    suction = Suction(
        [CupSpec(body, seal=seal) for body in bodies], side, thresholds(1e-4, 5e-4, 2e-3),
        OutsideAir(102e3, leak=1e-6), capacity=128, ground=Ground(-0.02, 0.6, np.arange(4)),
    )  # fmt: skip
    for way in (0.0, -1e-3, -4e-3, -8e-3, -10e-3, -10e-3, -6e-3, 0.0, 5e-3):
        for body in bodies:
            assert body.handle is not None
            body.handle.drive(body.handle.centre + np.array([0.0, way, 0.0]))
        suction.step()
    # one sweep is too few for any step: Newton's method is called, too
    suction.take_stop(Stop(0.0, 1))
    suction.step()
    suction.close()
    HeldBody("cup", cup(CUPS["small"].shape, GRIDS[76]).mesh, material).free_motion(0.01)
    _rehearse_folds(material)


def _rehearse_folds(material: Material) -> None:
    """A step of bellows that touch nothing, their folds within reach of each other."""
    points = bellows_points(13e-3, 8e-3, 14e-3, 1, 8e-3, 5e-3, 1e-3)
    shape = DrawnShape(points, (1e-3,) * len(points), 1.5e-3, 7e-3, 4e-3)
    made = hex_cup(shape, drawn_grid(shape, 4e-3, 16, 1))
    mesh = made.mesh.with_nodes(made.mesh.nodes + np.array([0.0, 5e-3, 0.0]))
    body = HeldBody("bellows", mesh, material, made.held, mesh.boundary_nodes)
    folds = find_folds(mesh.surface().compact())
    limits = thresholds(1e-4, 5e-4, 8e-3)
    side = FixedSide(partners.slab(0.2, 2, 0.02))
    suction = Suction([CupSpec(body, folds=folds)], side, limits, OutsideAir(102e3), capacity=1024)
    suction.step()
    suction.close()
