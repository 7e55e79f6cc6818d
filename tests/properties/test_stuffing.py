"""Tetrahedra inside a surface that is given as a function: closed, on the surface, of good shape."""

import numpy as np
import pytest

from palpo.physics.mesh.liver import liver
from palpo.physics.mesh.stuffing import stuffed
from palpo.physics.numerics.errors import InputError

BOX = np.array([[-1.2, -1.2, -1.2], [1.2, 1.2, 1.2]])


def ball(x: np.ndarray) -> np.ndarray:
    return 1.0 - np.linalg.norm(x, axis=1)


@pytest.mark.parametrize("spacing", [0.5, 0.23])
def test_every_boundary_node_lies_on_the_surface(spacing: float) -> None:
    mesh = stuffed(ball, BOX, spacing)
    assert np.abs(ball(mesh.nodes[mesh.boundary_nodes])).max() < 1e-9
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    assert (ball(mesh.nodes[inner]) > 0.0).all()


def test_elements_are_positive_and_of_good_shape() -> None:
    for mesh in (stuffed(ball, BOX, 0.23), liver(0.15, 0.0125), liver(0.15, 0.0075)):
        assert (mesh.volumes > 0.0).all()
        # Labelle & Shewchuk's smallest dihedral angle is ten degrees, which is a quality of about 0.2
        assert mesh.qualities.min() > 0.15


def test_the_surface_is_closed() -> None:
    """`surface` refuses open, pinched and inconsistent ones; Euler's formula for a ball's says the rest."""
    surface = liver(0.15, 0.0125).surface()
    edges = np.unique(np.sort(surface.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    vertices = len(np.unique(surface.triangles))
    assert vertices - len(edges) + len(surface.triangles) == 2


def test_the_volume_converges_at_second_order() -> None:
    exact = 4.0 / 3.0 * np.pi
    errors = [abs(stuffed(ball, BOX, h).volume - exact) for h in (0.4, 0.2)]
    assert errors[1] < errors[0] / 3.0
    assert errors[1] < 0.03 * exact


def test_the_same_call_gives_the_same_mesh() -> None:
    one, two = liver(0.15, 0.0125), liver(0.15, 0.0125)
    assert (one.nodes == two.nodes).all()
    assert (one.tets == two.tets).all()


def test_a_liver_grows_with_its_width() -> None:
    one, two = liver(0.15, 0.0125), liver(0.30, 0.025)
    assert len(one.tets) == len(two.tets)
    assert np.isclose(two.volume, 8.0 * one.volume, rtol=1e-6)
    assert 2.5e-4 < one.volume < 3.5e-4


@pytest.mark.parametrize(("width", "spacing", "said"), [
    (0.15, 0.03, "too coarse"), (0.15, 0.0, "positive"), (-1.0, 0.01, "positive"),
    (float("nan"), 0.01, "positive"),
])  # fmt: skip
def test_bad_lengths_are_refused(width: float, spacing: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        liver(width, spacing)
