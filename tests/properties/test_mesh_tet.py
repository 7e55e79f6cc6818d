"""Tetrahedral meshes: invariance of volume and boundary, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.mesh.generate import block, sphere
from palpo.physics.mesh.tet import TetMesh, orient_tets, tet_qualities, validate_tets
from palpo.physics.numerics.errors import InputError

REGULAR = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_quality_is_one_for_the_regular_tetrahedron_of_any_size(scale):
    tets = orient_tets(REGULAR, np.array([[0, 1, 2, 3]], dtype=np.int32))
    assert tet_qualities(scale * REGULAR, tets) == pytest.approx(1.0, rel=1e-14)


def test_volume_of_the_unit_corner_is_a_sixth():
    corner = TetMesh(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 1, 2, 3]], dtype=np.int32))
    assert corner.volume == pytest.approx(1.0 / 6.0, rel=1e-15)
    normals = corner.surface().triangle_normals
    np.testing.assert_allclose(normals[0], np.full(3, 1.0 / math.sqrt(3.0)), atol=1e-15)
    np.testing.assert_allclose(normals[1:], -np.eye(3), atol=1e-15)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_volume_and_boundary_do_not_depend_on_numbering_or_node_order(seed):
    rng = np.random.default_rng(seed)
    mesh = sphere(1.0, 2)
    renumber = rng.permutation(len(mesh.nodes)).astype(np.int32)
    nodes = np.empty_like(mesh.nodes)
    nodes[renumber] = mesh.nodes
    tets = rng.permuted(renumber[mesh.tets][rng.permutation(len(mesh.tets))], axis=1)
    other = TetMesh(nodes, orient_tets(nodes, tets))
    validate_tets(other.nodes, other.tets, "renumbered")
    assert other.volume == pytest.approx(mesh.volume, rel=1e-13)
    assert other.surface().signed_volume == pytest.approx(mesh.volume, rel=1e-13)
    np.testing.assert_array_equal(np.sort(renumber[mesh.boundary_nodes]), other.boundary_nodes)


def test_boundary_nodes_of_a_block_are_those_on_its_faces():
    mesh = block((1.0, 1.0, 1.0), (3, 4, 5))
    on_face = np.isclose(np.abs(mesh.nodes), 0.5).any(axis=1)
    np.testing.assert_array_equal(mesh.boundary_nodes, np.flatnonzero(on_face))


def test_orienting_turns_only_negative_elements():
    mesh = block((1.0, 1.0, 1.0), (2, 2, 2))
    mixed = mesh.tets.copy()
    mixed[::3] = mixed[::3, [1, 0, 2, 3]]
    turned = orient_tets(mesh.nodes, mixed)
    assert (TetMesh(mesh.nodes, turned).volumes > 0.0).all()
    np.testing.assert_array_equal(turned[1::3], mixed[1::3])


def _two_blocks(shift):
    """Two single-cell blocks that share the nodes which coincide after the second is moved by `shift`."""
    one = block((1.0, 1.0, 1.0), (1, 1, 1))
    nodes = np.vstack([one.nodes, one.nodes + shift])
    merged, number = np.unique(nodes, axis=0, return_inverse=True)
    tets = number.reshape(-1)[np.vstack([one.tets, one.tets + 8])].astype(np.int32)
    return merged, orient_tets(merged, tets)


def _broken(change):
    mesh = block((1.0, 1.0, 1.0), (2, 2, 2))
    nodes, tets = mesh.nodes.copy(), mesh.tets.copy()
    return change(nodes, tets) or (nodes, tets)


def _invert(nodes, tets):
    tets[7] = tets[7, [1, 0, 2, 3]]


def _flatten(nodes, tets):
    nodes[tets[3, 0]] = nodes[tets[3, 1:]].mean(axis=0)


def _not_a_number(nodes, tets):
    nodes[4, 1] = np.nan


def _out_of_range(nodes, tets):
    tets[5, 2] = 27


@pytest.mark.parametrize(
    ("nodes_and_tets", "words"),
    [
        (_broken(_invert), r"element 7 \(counted from 0\) .* is inverted: its volume is -"),
        (_broken(_flatten), r"element \d+ \(counted from 0\) .* is degenerate"),
        (_broken(_not_a_number), r"node 4 \(counted from 0\) .* must be finite"),
        (_broken(_out_of_range), r"element 5 \(counted from 0\) .* nodes run from 0 to 26"),
        (
            _broken(lambda n, t: (np.vstack([n, [[9.0, 9, 9]]]), t)),
            r"node 27 \(counted from 0\) belongs to no element",
        ),
        (_broken(lambda n, t: (n, np.vstack([t, t[2]]))), "elements 2 and 40 .* overlap"),
        (_two_blocks([3.0, 0, 0]), "2 disconnected pieces, element 5 "),
        (_two_blocks([1.0, 1.0, 0.0]), "the edge of nodes .* is non-manifold"),
        (_two_blocks([1.0, 1.0, 1.0]), r"node \d+ .* is non-manifold"),
    ],
)
def test_a_mesh_unfit_for_simulation_is_refused_with_its_file_and_element(nodes_and_tets, words):
    with pytest.raises(InputError, match=r"^organ\.msh: .*" + words) as caught:
        validate_tets(*nodes_and_tets, "organ.msh")
    assert "\n" not in str(caught.value)
