"""The factor that ends with chosen nodes: their compliance, its solves, and no sway of their order."""

import numpy as np
import pytest
import scipy.sparse.linalg as sla
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.boundary import add_delassus, add_rows, gather_scratch
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.cholesky import LARGE, TOGETHER
from palpo.physics.fem.elimination import analyse
from palpo.physics.fem.material import Material
from palpo.physics.fem.trailing import TrailingFactor
from palpo.physics.mesh import generate
from palpo.physics.mesh.cups import CUPS
from palpo.physics.mesh.hex_cups import GRIDS, hex_cup
from palpo.physics.numerics.errors import InputError

pytestmark = pytest.mark.portable

H, ALPHA, BETA = 1e-2, 0.2, 1e-3
GRAVITY = (0.0, -9.81, 0.0)


def block(last="underside", fixed=True, bent=True) -> SoftBody:
    """A soft block with its end clamped, bent by its weight."""
    mesh = generate.block((0.06, 0.02, 0.04), (6, 2, 4))
    low = np.flatnonzero(mesh.nodes[:, 1] < mesh.nodes[:, 1].min() + 1e-9)
    end = np.flatnonzero(mesh.nodes[:, 0] < mesh.nodes[:, 0].min() + 1e-9) if fixed else ()
    chosen = {"underside": low, "every node": np.arange(len(mesh.nodes)), "one": low[-1:], "none": ()}[last]
    body = SoftBody("block", mesh, Material(2e4, 0.42, 1100.0, ALPHA, BETA), end, GRAVITY, last=chosen)
    for _ in range(10 if bent else 0):
        body.linearise()
        body.advance(body.free_velocity(body.factor(H), H), H)
    body.linearise()
    return body


def system(body: SoftBody):
    return ((1.0 + ALPHA * H) * body.M + H * (BETA + H) * body.K).tocsc()


@pytest.mark.parametrize("last", ["underside", "every node", "one"])
@pytest.mark.parametrize("fixed", [True, False], ids=["clamped", "free"])
def test_the_trailing_block_is_the_dense_inverse(last, fixed):
    body = block(last, fixed)
    a = system(body).toarray()
    dofs = body.dofs_of(body.last).ravel()
    expected = H * H * np.linalg.inv(a)[np.ix_(dofs, dofs)]
    factor = body.factor(H)
    found = factor.compliance(H * H).copy()
    # two ways of inverting a matrix of this condition
    assert np.abs(found - expected).max() < 1e-15 * np.linalg.cond(a) * np.abs(expected).max()
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(factor.compliance(1.0), found / (H * H), rtol=1e-15)


@pytest.mark.parametrize("resolution", [76, 125, 159, 203])
def test_a_factor_ends_with_all_the_nodes_that_may_touch_in_one_panel(resolution):
    """Of a cup, nearly all of whose nodes may: at each level, whatever was merged with the first of them."""
    made = hex_cup(CUPS["small"].shape, GRIDS[resolution])
    wall = np.union1d(made.underside, made.rim)
    nodes = wall[np.argsort(-made.mesh.nodes[wall, 1], kind="stable")]
    body = SoftBody("cup", made.mesh, Material(3e5, 0.42, 1100.0), made.held)
    for count in range(2, nodes.size, 3):
        last = body._pattern.slots[nodes[nodes.size - count :]]
        symbolic = analyse(body.free.size, body._pattern.rows, body._pattern.cols, last)
        assert symbolic.column[-1] - symbolic.column[-2] >= count


def test_solves_are_those_of_a_general_solver_and_of_any_order_of_elimination():
    body, other = block("underside"), block("none")
    load = np.random.default_rng(0).standard_normal((body.n_dof, 40))
    exact = sla.splu(system(body)).solve(load)
    size = 1e-11 * np.abs(exact).max()
    factor = body.factor(H)
    assert np.abs(factor.solve(load[:, 0]) - exact[:, 0]).max() < size
    assert np.abs(factor.solve_many(load) - exact).max() < size
    assert np.abs(other.factor(H).solve_many(load) - exact).max() < size
    half = factor.half_solve_many(load)
    assert np.abs(half.T @ half - load.T @ exact).max() < 1e-10 * np.abs(load.T @ exact).max()


def test_panels_of_lapack_give_the_solves_of_a_general_solver_and_refuse_a_pivot_by_its_node():
    """Of a mesh whose separators are wide, unlike that of the other tests."""
    mesh = generate.block((0.08, 0.05, 0.06), (11, 7, 9))
    low = np.flatnonzero(mesh.nodes[:, 1] < mesh.nodes[:, 1].min() + 1e-9)
    body = SoftBody("block", mesh, Material(2e4, 0.42, 1100.0, ALPHA, BETA), (), GRAVITY, last=low)
    factor = body.factor(H)
    panels = np.diff(factor.symbolic.panel)[:-1]
    large = np.flatnonzero(panels >= LARGE)
    below = np.diff(factor.symbolic.row_ptr)[:-1][large]
    assert (below > TOGETHER).any(), "or the test shows nothing"
    load = np.random.default_rng(0).standard_normal((body.n_dof, 3))
    exact = sla.splu(system(body)).solve(load)
    size = 1e-11 * np.abs(exact).max()
    assert np.abs(factor.solve_many(load) - exact).max() < size
    assert np.abs(factor.solve(load[:, 0]) - exact[:, 0]).max() < size
    # forces on a few nodes pass by most panels
    load[3:] = 0.0
    exact = sla.splu(system(body)).solve(load)
    assert np.abs(factor.solve(load[:, 0]) - exact[:, 0]).max() < 1e-11 * np.abs(exact).max()
    for wrong in (-1.0, np.nan):
        node = int(factor.symbolic.order[factor.symbolic.column[large[-1]] + 1])
        slots = body._pattern.rows, body._pattern.cols
        blocks = body._blocks.copy()
        blocks[np.flatnonzero((slots[0] == node) & (slots[1] == node))[0], 4] = wrong
        with pytest.raises(FloatingPointError, match=f"free node {node}"):
            factor.refactor(blocks, body._mass, H * (BETA + H), 1.0 + H * ALPHA)


def test_the_compliance_turns_with_the_order_of_the_nodes_and_is_the_same():
    body = block("underside")
    pattern, slots = body._pattern, body._pattern.slots[body.last]
    shuffle = np.random.default_rng(1).permutation(slots.size)
    factor = TrailingFactor(
        analyse(body.free.size, pattern.rows, pattern.cols, slots[shuffle]), slots.size
    )  # fmt: skip
    factor.refactor(body._blocks, body._mass, H * (BETA + H), 1.0 + H * ALPHA)
    dofs = (3 * shuffle[:, None] + np.arange(3)).ravel()
    expected = body.factor(H).compliance(1.0)[np.ix_(dofs, dofs)]
    assert np.abs(factor.compliance(1.0) - expected).max() < 1e-11 * np.abs(expected).max()


def test_w_of_contacts_on_the_last_nodes_is_j_a_inverse_j_transposed():
    """Contacts on a node, an edge and triangles; W from the trailing block, against solves with all of A."""
    rng = np.random.default_rng(2)
    body, n = block("underside"), 9
    slots = np.array([rng.choice(body.last.size, 3, replace=False) for _ in range(n)])
    weights = rng.dirichlet(np.ones(3), n)
    weights[0], weights[1] = (1.0, 0.0, 0.0), (0.3, 0.7, 0.0)
    axes = np.linalg.qr(rng.standard_normal((n, 3, 3)))[0]
    w = np.zeros((3 * n, 3 * n))
    add_delassus(
        body.factor(H).compliance(H * H), n, np.arange(n), slots, weights, axes,
        gather_scratch(body.last.size, n), w,
    )  # fmt: skip
    j = np.zeros((3 * n, body.n_dof))
    for k in range(n):
        for slot, weight in zip(slots[k], weights[k], strict=True):
            j[3 * k : 3 * k + 3, body.dofs_of([body.last[slot]])[0]] += weight * axes[k]
    expected = H * H * j @ sla.splu(system(body)).solve(j.T)
    assert np.abs(w - expected).max() < 1e-11 * np.abs(expected).max()
    # and a column of W_cp: J of the motion under a load that is no contact
    moved = H * H * body.factor(H).solve(rng.standard_normal(body.n_dof))
    column = np.zeros(3 * n)
    on_last = moved[body.dofs_of(body.last)]
    add_rows(on_last, n, np.arange(n), slots, weights, axes, column)
    np.testing.assert_allclose(column, j @ moved, atol=1e-14 * np.abs(moved).max())


def rotation(angle: float) -> np.ndarray:
    return Rotation.from_rotvec(angle * np.array([0.6, 0.0, 0.8])).as_matrix()


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.3, 3.0])
def test_a_body_turned_as_a_whole_has_turned_by_that_angle(angle):
    body = block(fixed=False, bent=False)
    body.factor(H)
    body.x[:] = body.x @ rotation(angle).T
    # element rotations are exact to rounding, which an angle's chord keeps
    assert body.turned(H) == pytest.approx(angle, abs=1e-12)
    body.linearise()
    assert body.turned(H) == pytest.approx(angle, abs=1e-12)
    body.factor(H)
    assert body.turned(H) < 1e-12


def test_a_factor_is_kept_up_to_the_turn_that_is_allowed_and_made_anew_past_it():
    body = block(fixed=False, bent=False)
    before = body.reused_factor(H, 0.02).compliance(H * H).copy()
    body.x[:] = body.x @ rotation(0.015).T
    np.testing.assert_array_equal(body.reused_factor(H, 0.02).compliance(H * H), before)
    body.x[:] = body.x @ rotation(0.015).T
    turn = np.kron(np.eye(body.last.size), rotation(0.03))
    after = body.reused_factor(H, 0.02).compliance(H * H)
    # the compliance of a turned body is the turned compliance
    assert np.abs(after - turn @ before @ turn.T).max() < 1e-9 * np.abs(before).max()


def test_a_step_with_a_kept_factor_is_off_in_proportion_to_the_turn():
    errors = []
    for angle in (0.04, 0.02, 0.01):
        body, fresh = block(), block()
        for each in (body, fresh):
            # bend on, about the clamped end, with the shape still going
            each.factor(H)
            each.v = np.random.default_rng(4).standard_normal(each.n_dof) * 0.05
            arm = each.x[:, 0] - each.x[:, 0].min()
            each.x[:, 1] -= 0.5 * angle / np.ptp(arm) * arm**2
        assert 0.4 * angle < body.turned(H) < 1.5 * angle
        fresh.linearise()
        kept = body.free_velocity(body.reused_factor(H, 1.0), H)
        errors.append(np.abs(kept - fresh.free_velocity(fresh.factor(H), H)).max())
    # first order: of the halves, up to the second order's share
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.05)


def test_nodes_that_are_fixed_are_none_of_the_last():
    body = block("every node")
    assert body.last.size == body.free.size
    assert not np.isin(body.fixed, body.last).any()


@pytest.mark.parametrize("factor", [np.nan, -1.0])
@pytest.mark.parametrize("last", ["one", "every node"], ids=["sparse panels", "dense panel"])
def test_a_system_that_is_not_positive_definite_is_reported_by_a_node_that_lost_its_pivot(last, factor):
    body = block(last, bent=False)
    body._blocks *= factor
    with pytest.raises(FloatingPointError, match="pivot at free node"):
        body.factor(H)


def test_a_node_that_the_mesh_does_not_have_is_refused():
    mesh = generate.block((1.0, 1.0, 1.0), (1, 1, 1))
    with pytest.raises(InputError, match="touched"):
        SoftBody("cube", mesh, Material(1e4, 0.3, 1000.0), last=[99])
