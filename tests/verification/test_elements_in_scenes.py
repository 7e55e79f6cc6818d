"""Soft bodies of every element in a scene at two rates: the hand feels what it would with all at 1 kHz."""

from typing import get_args

import meshio
import numpy as np
import pytest

from palpo.config.schema.body import SoftElements
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.numerics.errors import InputError
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, resting, small_scene, straight

NAMES = [name for name in get_args(SoftElements) if name != "auto"]
ABOVE, PRESSED = (0.003, 0.0088, -0.002), (0.003, 0.0058, -0.002)


def felt(kind: str, *overrides: str) -> np.ndarray:
    """Force in the hand (n, 3) [N] while a ball is pressed into a block and rests."""
    run = lock_step(BALL_ON_BLOCK, "bodies.block.material.poisson_ratio=0.45", *overrides, kind=kind)
    trace = run.run(np.vstack([straight(ABOVE, PRESSED, 200), resting(PRESSED, 100)]))
    run.close()
    assert len(trace["force"]) == 300, run.broken
    return trace["force"]


@pytest.mark.parametrize("name", NAMES)
def test_both_rates_feel_as_one(name):
    """To 2% of the peak in motion and 0.2% at rest: the scheme's own error, of any element."""
    told = f'bodies.block.elements="{name}"'
    both, one = felt("krylov", told), felt("monolithic", told)
    peak = np.abs(one).max()
    assert peak > 0.2
    assert np.abs(both - one).max() < 0.02 * peak
    assert np.abs(both[-1] - one[-1]).max() < 2e-3 * peak


@pytest.mark.parametrize("name", NAMES)
def test_multigrid_solves_them_all(name):
    """The force is that of factors, to what is left of each solve."""
    told = f'bodies.block.elements="{name}"'
    factors, without = (felt("krylov", told, f'bodies.block.solver="{s}"') for s in ("direct", "multigrid"))
    assert np.abs(without - factors).max() < 5e-3 * np.abs(factors).max()


def test_forces_at_a_high_ratio_are_told_apart_by_the_element_alone():
    """Plain tetrahedra lock at 0.49; those that share their volume come near hexahedra of the same nodes, and
    ten-node ones, of nodes between them, are softer still, as these cells of 1 cm are coarse for the ball."""
    told = "bodies.block.material.poisson_ratio=0.49"
    force = {name: felt("krylov", told, f'bodies.block.elements="{name}"')[-1, 1] for name in NAMES}
    assert force["tet4"] > 1.35 * force["hex8"]
    assert force["tet10"] < force["hex8"] < force["tet4-patch"] < 1.2 * force["hex8"]


@pytest.mark.parametrize("name", NAMES)
def test_a_mesh_is_cut_as_told_and_held_at_the_same_place(name):
    spec = small_scene(BALL_ON_BLOCK, f'bodies.block.elements="{name}"')
    body = spec.members[0].body
    assert isinstance(body.mesh, ELEMENTS[name].mesh)
    low = np.flatnonzero(body.mesh.nodes[:, 1] < -0.0199)
    assert np.array_equal(body.fixed, low)


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (("bodies.block.material.poisson_ratio=0.39",), "tet4"),
        (("bodies.block.material.poisson_ratio=0.4",), "tet4-patch"),
        (("bodies.block.material.poisson_ratio=0.4", "bodies.block.solver='multigrid'"), "tet4"),
    ],
)
def test_what_a_body_is_made_of_where_nothing_is_said(overrides, name):
    body = small_scene(BALL_ON_BLOCK, *overrides).members[0].body
    told = small_scene(BALL_ON_BLOCK, *overrides, f'bodies.block.elements="{name}"').members[0].body
    assert type(body._elements) is type(told._elements) is ELEMENTS[name].moving


STRIP = "bodies.block.geometry.size=[0.06, 0.005, 0.02]"


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ((STRIP,), "hex8"),
        ((STRIP, "bodies.block.material.law='neo-hookean'"), "tet10"),
        ((STRIP, "bodies.block.geometry.divisions=[12, 3, 4]"), "tet4"),
        (("bodies.block.geometry.size=[0.06, 0.02, 0.02]",), "tet4"),
    ],
    ids=["slender", "slender, of another law", "three cells", "thick"],
)
def test_a_slender_block_of_two_cells_is_of_elements_that_bend_where_nothing_is_said(overrides, name):
    told = ("bodies.block.material.poisson_ratio=0.3", "bodies.block.fixed=[]", *overrides)
    body = small_scene(BALL_ON_BLOCK, *told).members[0].body
    assert isinstance(body.mesh, ELEMENTS[name].mesh)


@pytest.mark.parametrize(("kind", "fitting"), [("tetra", "tet4-patch"), ("hexahedron", "hex8")])
def test_files_bring_tetrahedra_or_hexahedra_and_say_so(kind, fitting, tmp_path):
    mesh = (block if kind == "tetra" else hex_block)((0.06, 0.02, 0.06), (2, 1, 2))
    meshio.Mesh(mesh.nodes, [(kind, mesh.cells)]).write(tmp_path / "mesh.vtu")
    told = f"bodies.block.geometry={{kind='file',path='{tmp_path / 'mesh.vtu'}'}}"
    for name in ("auto", fitting):
        body = small_scene(BALL_ON_BLOCK, told, f'bodies.block.elements="{name}"').members[0].body
        assert np.array_equal(body.mesh.cells, mesh.cells)
    other = "hex8" if kind == "tetra" else "tet10"
    with pytest.raises(InputError, match=r'bodies.block.elements is "\w+", but the file holds \w+: use'):
        small_scene(BALL_ON_BLOCK, told, f'bodies.block.elements="{other}"')
