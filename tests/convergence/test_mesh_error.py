"""The estimate of a mesh's error against what finer meshes say (palpo.physics.bodies.mesh_error)."""

import numpy as np
import pytest

from palpo.app.systems.multirate.build import build_scene
from palpo.app.systems.multirate.mesh_errors import mesh_errors
from palpo.config.load import load_scene
from palpo.physics.bodies.mesh_error import UNSURE, _hertz, _pressed, press_error
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block as block_of
from palpo.physics.mesh.tet import TetMesh

SIZE, CENTRE, RADIUS = (0.06, 0.03, 0.06), np.array([0.0025, 0.03, 0.001]), 0.007


def block(cells, elements="tet4", turn=None):
    """A block clamped below, its top at 30 mm, cut into so many cells, then turned about the origin."""
    mesh = block_of(SIZE, cells)
    nodes = mesh.nodes + np.array([0.0, 0.015, 0.0])
    fixed = np.flatnonzero(nodes[:, 1] < 1e-9)
    mesh = TetMesh(nodes if turn is None else nodes @ turn.T, mesh.tets)
    return SoftBody("block", mesh, Material(15e3, 0.45, 1000.0), fixed, elements=elements)


def yielding(body):
    """How far it yields to 1 N [m]."""
    load, _ = _hertz(body.mesh.nodes, body.mesh.surface().triangles, CENTRE, RADIUS)
    return float((load * _pressed(body, load)).sum())


@pytest.mark.parametrize("elements", ["tet4", "tet4-patch"])
def test_the_estimate_comes_near_the_error_as_cells_get_small(elements):
    """Energies of linear elements err by c h^2, so two fine meshes tell the limit; recovered stresses are of
    a higher order than elements' own, so that the estimate over the error tends to 1."""
    meshes = [block(tuple(n * k for k in (2, 1, 2)), elements) for n in (6, 10, 15)]
    yields = [yielding(body) for body in meshes]
    limit = yields[2] + (yields[2] - yields[1]) / (1.5**2 - 1.0)
    for body, own, off in zip(meshes[:2], yields[:2], (UNSURE, 0.2), strict=True):
        estimate, _ = press_error(body, body.mesh.surface().triangles, CENTRE, RADIUS, by_area=False)
        assert estimate == pytest.approx(limit / own - 1.0, rel=off)


def test_the_estimate_does_not_depend_on_where_a_body_is_turned():
    c, s = np.cos(0.7), np.sin(0.7)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    errors = [
        press_error(body, body.mesh.surface().triangles, centre, RADIUS, by_area=True)
        for body, centre in ((block((8, 4, 8)), CENTRE), (block((8, 4, 8), turn=turn), turn @ CENTRE))
    ]
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)  # conjugate gradients end at 1e-4


def test_a_plate_thinner_than_the_press_is_wide_is_pressed_on_one_side():
    """The force of a press on both sides at once would cancel, and a share of it would have no bound."""
    mesh = block_of((0.06, 0.002, 0.06), (12, 1, 12))
    edge = np.flatnonzero(np.abs(mesh.nodes[:, [0, 2]]).max(axis=1) > 0.0299)
    plate = SoftBody("plate", mesh, Material(15e3, 0.45, 1000.0), edge)
    triangles, centre = mesh.surface().triangles, np.array([0.0, 0.001, 0.0])
    load, _ = _hertz(mesh.nodes, triangles, centre, RADIUS)
    assert load.sum(axis=0) == pytest.approx([0.0, -1.0, 0.0], abs=1e-12)
    assert not load[mesh.nodes[:, 1] < 0.0].any()
    assert 0.0 < press_error(plate, triangles, centre, RADIUS, by_area=False)[0] < np.inf


def test_a_coarser_mesh_is_told_to_err_more():
    def said(*overrides):
        (found,) = mesh_errors(build_scene(load_scene("probe", overrides)))
        return found

    fine, own, coarse = (said(f"bodies.block.geometry.divisions=[{n}, {n // 4}, {n}]") for n in (20, 12, 6))
    assert fine.error < own.error < coarse.error
    assert "bodies.block" in str(own)
    assert "under a tip of 10 mm" in str(own)


def test_nothing_is_told_of_a_tool_with_edges():
    assert list(mesh_errors(build_scene(load_scene("mixed-press")))) == []
