"""Segments joined by eliminated springs: exact energy, the whole body in the limit, and rigid motions."""

import numpy as np
import pytest

from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.reduction.balanced import balanced
from palpo.physics.reduction.joining import coupling_nodes, cut, join, nodal_map, unresolved_damping
from palpo.physics.reduction.linear_model import linear_model, vibration_modes
from palpo.physics.reduction.segments import (
    add_point_force,
    advance,
    apply,
    dissipated,
    energies,
    floor_force,
    free,
    make_state,
    make_work,
    point_compliance,
    point_value,
    surface_values,
)
from palpo.physics.reduction.static_modes import by_graph, by_nodes, static_modes, surface_and_inside
from palpo.studies.reference.modal import modal
from palpo.studies.reference.passive_midpoint import LinearBody

STEP = 1e-3
MESH = generate.block((0.02, 0.004, 0.008), (8, 3, 4))
CLAMPED = np.flatnonzero(MESH.nodes[:, 0] < -0.00999)
CONTACT = np.flatnonzero(MESH.nodes[:, 0] > 0.007)
PLASTIC = Material(164.76e6, 0.35, 1050.0)
DAMPED = Material(164.76e6, 0.35, 1050.0, 1.0, 1e-5)
TIP = MESH.nodes[:, 0] >= 0.004
PARTS = {
    "whole": np.zeros(len(MESH.tets), dtype=int),
    "tip and rest": by_nodes(MESH, ~TIP),
    "surface and inside": surface_and_inside(MESH, np.setdiff1d(MESH.boundary_nodes, CLAMPED)),
    "graph": by_graph(MESH, CONTACT, 4),
}
NODES, WEIGHTS = np.array([[0, 1, 2]]), np.array([[0.2, 0.3, 0.5]])


@kernel
def run(model, state, work, nodes, weights, forces, energy):
    """Steps under one contact force; (largest error of the books, largest energy, taken by damping)."""
    push = np.zeros_like(model.rest)
    done = lost = worst = most = 0.0
    start = energies(model, state, energy)
    vh = np.empty(3)
    for k in range(len(forces)):
        free(model, state, work)
        push[:] = 0.0
        add_point_force(nodes[0], weights[0], forces[k], push)
        apply(model, work, push)
        point_value(model, work.vh, nodes[0], weights[0], vh)
        done += model.step * (vh * forces[k]).sum()
        lost += dissipated(model, state, work)
        advance(model, state, work)
        now = energies(model, state, energy)
        most, worst = max(most, now), max(worst, abs(now - start - done + lost))
    return worst, most, lost


def tap(n: int) -> np.ndarray:
    """A push of 20 N for a tenth of a second, then nothing; shape (n, 3) [N]."""
    forces = np.zeros((n, 3))
    forces[:100] = np.sin(np.arange(100) * np.pi / 100)[:, None] * np.array([3.0, -20.0, 5.0])
    return forces


def joined(part: str, k_c=1e6, d_c=0.0, material=PLASTIC, orders=None, step=STEP, contact=CONTACT):
    models = cut(MESH, material, CLAMPED, PARTS[part])
    bases = [None] * len(models)
    if orders:
        modes = [vibration_modes(m) for m in models]
        bases = [modal(m, v, r) for m, v, r in zip(models, modes, orders, strict=True)]
    return join(MESH, models, contact, step, k_c, d_c, bases), models, bases


def balance(model, n=1500) -> tuple[float, float]:
    state, work = make_state(model), make_work(model)
    worst, most, lost = run(
        model, state, work, NODES, WEIGHTS, tap(n), np.zeros((len(model.segment_start), 2))
    )
    return worst / most, lost / most


@pytest.mark.parametrize("k_c", [1e2, 1e5, 1e8, 1e12])
@pytest.mark.parametrize(
    ("part", "orders"),
    [("tip and rest", None), ("graph", None), ("tip and rest", (6, 25)), ("surface and inside", (25, 30))],
)
def test_without_damping_the_work_of_contact_is_the_energy_to_1e_9_at_every_coupling_stiffness(
    part, orders, k_c
):
    error, lost = balance(joined(part, k_c, orders=orders)[0])
    assert error < 1e-9
    assert lost == 0.0


@pytest.mark.parametrize("orders", [None, (6, 25)])
def test_with_damping_energy_is_lost_and_booked(orders):
    error, lost = balance(joined("tip and rest", 1e6, 10.0, DAMPED, orders)[0])
    assert error < 1e-9
    # a slow push comes back but for one part in a thousand
    assert lost > 1e-3


def motion(model, models, bases, n=40, force=(0.0, -2.0, 1.0)):
    """Displacements (n_nodes, 3) after n steps under a constant contact force."""
    state, work = make_state(model), make_work(model)
    forces = np.tile(force, (n, 1))
    run(model, state, work, NODES, WEIGHTS, forces, np.zeros((len(models) + 1, 2)))
    return (nodal_map(models, bases, len(MESH.nodes)) @ state.x).reshape(-1, 3)


def test_one_segment_is_the_linear_body():
    model = linear_model(MESH, DAMPED, CLAMPED)
    body = LinearBody(model.M, model.D, model.K, STEP)
    f = np.zeros(model.n_dof)
    for node, weight in zip(CONTACT[NODES[0]], WEIGHTS[0], strict=True):
        f[model.dofs_of(node)] = weight * np.array([0.0, -2.0, 1.0])
    for _ in range(40):
        body.step(f)
    ours = motion(*joined("whole", material=DAMPED))[model.nodes].ravel()
    # the condition of Mh is 1e5
    assert np.abs(ours - body.x).max() < 1e-10 * np.abs(body.x).max()


@pytest.mark.parametrize("part", ["tip and rest", "surface and inside", "graph"])
def test_segments_tend_to_the_whole_body_as_the_inverse_of_the_coupling_stiffness(part):
    whole = motion(*joined("whole", material=DAMPED))
    errors = [
        np.abs(motion(*joined(part, k_c, 0.1 * STEP * k_c, material=DAMPED)) - whole).max()
        / np.abs(whole).max()
        for k_c in (1e7, 1e8, 1e9, 1e11)
    ]
    assert errors[0] > 5.0 * errors[1] > 25.0 * errors[2]
    assert errors[3] < 0.02 * errors[2]


def test_a_segment_of_all_its_modes_moves_as_the_unreduced_one():
    orders = [m.n_dof for m in joined("tip and rest")[1]]
    full, same = motion(*joined("tip and rest")), motion(*joined("tip and rest", orders=orders))
    # modes of 1e9 / s2 beside rigid ones: eight digits of an undamped phase after forty steps
    assert np.abs(full - same).max() < 1e-7 * np.abs(full).max()


@pytest.mark.parametrize("part", ["tip and rest", "surface and inside"])
def test_reduced_segments_do_not_lock_however_stiff_the_coupling(part):
    # a step far above the periods makes A the static compliance, times 2 / T
    whole = joined("whole", step=0.1)[0].compliance
    models = cut(MESH, PLASTIC, CLAMPED, PARTS[part])
    modes = [vibration_modes(m) for m in models]
    tip, foot = coupling_nodes(models)
    bases = [
        balanced(m, v, nodes, order)
        for m, v, nodes, order in zip(models, modes, (np.union1d(tip, CONTACT), foot), (12, 25), strict=True)
    ]
    for k_c in (1e6, 1e9, 1e12):
        reduced = join(MESH, models, CONTACT, 0.1, k_c, bases=bases).compliance
        # six elastic columns for the tip; joined node by node, a third of the compliance or none is left
        assert np.linalg.norm(reduced - whole) < 0.05 * np.linalg.norm(whole)


def test_a_floating_segment_has_six_rigid_motions_and_their_momentum():
    tip, foot = cut(MESH, PLASTIC, CLAMPED, PARTS["tip and rest"])
    modes = vibration_modes(tip)
    assert (modes.rigid, vibration_modes(foot).rigid) == (6, 0)
    basis = modal(tip, modes, 6)
    x = MESH.nodes[tip.nodes]
    for field in (np.tile([1.0, 2.0, 3.0], (len(x), 1)), np.cross([0.3, -0.2, 0.5], x)):
        kept = basis.vectors @ (basis.vectors.T @ (tip.M @ field.ravel()))
        assert np.abs(kept - field.ravel()).max() < 1e-9 * np.abs(field).max()


def test_a_reduced_floating_tip_without_coupling_flies_as_a_rigid_body():
    model, models, bases = joined("tip and rest", 1e-12, orders=(6, 10))
    moved = motion(model, models, bases, 20)[models[0].nodes]
    mass = models[0].M.diagonal()[::3]
    centre = mass @ moved / mass.sum()
    # constant force: the midpoint rule is exact on the parabola
    expected = 0.5 * np.array([0.0, -2.0, 1.0]) / mass.sum() * (20 * STEP) ** 2
    assert centre == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("orders", [None, (12, 25)])
def test_the_compliance_of_two_points_is_the_velocity_that_a_force_adds(orders):
    model, _, _ = joined("tip and rest", orders=orders)
    state, work = make_state(model), make_work(model)
    nodes, weights = np.array([[0, 1, 2], [7, 3, 5]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    block, vh = np.empty((3, 3)), np.empty(3)
    for i in range(3):
        forces = np.zeros((2, 3))
        forces[1, i] = 1.0
        free(model, state, work)
        push = np.zeros_like(model.rest)
        add_point_force(nodes[1], weights[1], forces[1], push)
        apply(model, work, push)
        for a in range(2):
            point_compliance(model, nodes[a], weights[a], nodes[1], weights[1], block)
            point_value(model, work.vh, nodes[a], weights[a], vh)
            # sums in two orders
            assert block[:, i] == pytest.approx(vh, rel=1e-9, abs=1e-12 * np.abs(vh).max())


def test_the_force_on_the_floor_is_the_contact_force_less_inertia_and_mass_damping():
    model, models, _ = joined("tip and rest", 1e6, 10.0, DAMPED)
    state, work = make_state(model), make_work(model)
    mass = np.concatenate([m.M.diagonal() for m in models])
    floor = np.empty(3)
    for f in tap(150):
        free(model, state, work)
        push = np.zeros_like(model.rest)
        add_point_force(NODES[0], WEIGHTS[0], f, push)
        apply(model, work, push)
        floor_force(model, state, work, floor)
        inertia = mass * (2.0 / STEP * (work.vh - state.v) + DAMPED.alpha * work.vh)
        # K x has rounding of 1e6 N/m times 1e-3 m
        assert floor == pytest.approx(f - inertia.reshape(-1, 3).sum(axis=0), abs=1e-8)
        advance(model, state, work)


def test_the_nodal_map_places_a_segment_by_its_basis():
    _, models, bases = joined("tip and rest", orders=(12, 25))
    z = np.zeros(37)
    z[:12] = np.random.default_rng(0).standard_normal(12)
    field = (nodal_map(models, bases, len(MESH.nodes)) @ z).reshape(-1, 3)
    # the tip's nodes are all its own, and V^T M V = 1
    back = bases[0].vectors.T @ (models[0].M @ field[models[0].nodes].ravel())
    assert back == pytest.approx(z[:12], abs=1e-10)


@pytest.mark.parametrize("orders", [None, (12, 25)])
def test_contact_nodes_are_seen_where_the_whole_body_has_them(orders):
    model, models, bases = joined("tip and rest", orders=orders)
    z = np.random.default_rng(0).standard_normal(model.segment_start[-1])
    seen = np.empty((len(CONTACT), 3))
    surface_values(model, z, seen)
    every = (nodal_map(models, bases, len(MESH.nodes)) @ z).reshape(-1, 3)
    assert seen == pytest.approx(every[CONTACT], rel=1e-12, abs=1e-12)
    assert np.array_equal(model.rest, MESH.nodes[CONTACT])


@pytest.mark.parametrize("part", ["tip and rest", "surface and inside", "graph"])
def test_segments_hold_all_of_the_mass_and_every_contact_node(part):
    models = cut(MESH, PLASTIC, (), PARTS[part])
    total = sum(m.M.diagonal().sum() for m in models) / 3.0
    assert total == pytest.approx(PLASTIC.density * MESH.volume, rel=1e-12)
    assert np.isin(CONTACT, models[0].nodes).all()
    for model, shared in zip(models, coupling_nodes(models), strict=True):
        assert 0 < shared.size < model.nodes.size or part != "tip and rest"


def test_parts_by_graph_have_equal_sizes_and_far_less_interface_than_random_ones():
    labels = by_graph(MESH, CONTACT, 4)
    size = np.bincount(labels)[1:]
    assert size.max() - size.min() <= 2
    shuffled = labels.copy()
    rest = np.flatnonzero(labels)
    shuffled[np.random.default_rng(0).permutation(rest)] = labels[rest]
    shared = [sum(s.size for s in coupling_nodes(cut(MESH, PLASTIC, CLAMPED, a))) for a in (labels, shuffled)]
    assert shared[0] < 0.5 * shared[1]
    with pytest.raises(InputError, match="into 1 segments, expected 2 to"):
        by_graph(MESH, CONTACT, 1)


def test_a_segment_without_free_nodes_is_refused():
    labels = PARTS["tip and rest"].copy()
    labels[labels == 1] = 2
    with pytest.raises(InputError, match=r"segment 1 has no free node \(0 elements\)"):
        cut(MESH, PLASTIC, CLAMPED, labels)
    with pytest.raises(InputError, match="segment 1 has no free node"):
        cut(MESH, PLASTIC, np.unique(MESH.tets[labels == 2]), PARTS["tip and rest"])


def test_bad_contact_nodes_couplings_and_bases_are_refused():
    with pytest.raises(InputError, match="contact node 0 is not a free node of segment 0"):
        joined("tip and rest", contact=np.array([0]))
    with pytest.raises(InputError, match="none may be negative nor both zero"):
        joined("tip and rest", 0.0)
    models = cut(MESH, PLASTIC, CLAMPED, PARTS["tip and rest"])
    with pytest.raises(InputError, match="1 bases are given for 2 segments"):
        join(MESH, models, CONTACT, STEP, 1e6, bases=[None])
    with pytest.raises(InputError, match="expected a whole number from 6 to"):
        modal(models[0], vibration_modes(models[0]), 5)


def test_couplings_that_let_a_segment_move_rigidly_are_refused():
    """Three shapes of the foot hold three of the tip's six rigid motions; six hold them all."""
    with pytest.raises(InputError, match=r"orders \[22, 3\] are joined so that 3 of their rigid motions"):
        joined("tip and rest", orders=(22, 3))
    joined("tip and rest", orders=(22, 6))
    # none clamped, the two may move as one but not apart
    models = cut(MESH, PLASTIC, (), PARTS["tip and rest"])
    join(MESH, models, CONTACT, STEP, 1e6)


def test_damping_of_what_a_step_cannot_follow_settles_it_and_leaves_the_rest():
    """y = (w T / 2)^2: x+ = x (1 + b - y) / (1 + b + y) with b = 2 beta y / T, from rest; within O(1 / y) of
    rest for a stiff vibration, whose sign the midpoint rule alone turns; zeta = y^1.5 / 2 for a slow one."""
    y = np.array([1e-4, 1e-2, 1e2, 1e4])
    stiffness = 4.0 * y / STEP**2
    beta = unresolved_damping(stiffness, STEP)
    assert (np.diff(beta) > 0.0).all() and beta[-1] < 0.5 * STEP
    Mh = 2.0 / STEP + (beta + 0.5 * STEP) * stiffness
    after = 1.0 - STEP * stiffness / Mh  # vh = -K x / Mh
    plain = 1.0 - STEP * stiffness / (2.0 / STEP + 0.5 * STEP * stiffness)
    np.testing.assert_allclose(after[2:], 0.0, atol=2.0 / y[2])
    assert (plain[2:] < -0.9).all()
    zeta = 0.5 * beta * np.sqrt(stiffness)
    np.testing.assert_allclose(zeta[:2], 0.5 * y[:2] ** 1.5, rtol=2.0 * y[1])


@pytest.mark.parametrize("settling", [0.0, 1.0])
def test_a_settled_body_only_loses_energy_and_yields_at_rest_as_before(settling):
    """E - E_0 = -losses to rounding without a load; under one it comes to rest at K x = f."""
    whole = linear_model(MESH, PLASTIC, CLAMPED)
    basis = static_modes(whole, CONTACT, 1e-3)
    model = join(MESH, [whole], CONTACT, STEP, bases=[basis], settling=settling)
    state, work, energy = make_state(model), make_work(model), np.zeros((2, 2))
    forces = np.zeros((len(CONTACT), 3))
    state.x[:] = np.random.default_rng(0).normal(size=state.v.size) / np.sqrt(basis.stiffness)
    first, lost = energies(model, state, energy), 0.0
    for _ in range(200):
        free(model, state, work)
        lost += dissipated(model, state, work)
        advance(model, state, work)
        assert energies(model, state, energy) + lost == pytest.approx(first, rel=1e-9)
    assert (lost > 0.5 * first) == bool(settling)
    if settling:
        forces[:, 1] = 0.1
        for _ in range(20000):
            free(model, state, work)
            apply(model, work, forces)
            advance(model, state, work)
        load = basis.vectors[whole.dofs_of(CONTACT)].T @ forces.ravel()
        np.testing.assert_allclose(state.x, load / basis.stiffness, atol=1e-3 * np.abs(state.x).max())
