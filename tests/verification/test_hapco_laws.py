"""Two quasi-static bodies in contact: action and reaction, friction's history, objectivity."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contact.problem import Stop
from palpo.physics.fem.material import Material
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.hapco.detection import Detection
from palpo.studies.reference.conjugate_gradient_body import ConjugateGradientBody
from palpo.studies.reference.interaction import FIXED, MOBILE, Interaction
from palpo.studies.reference.large_strain import LargeStrainBody
from tests.verification.hapco_bench import BELOW, STIFF, TISSUE, bodies, bottom, meshes, side

EXACT = Stop(1e-12, 100000)
"""Contact forces to rounding, so that what is left is the scheme's own."""
EVERY = math.inf


def pressed(mu=0.5, tolerance=EVERY, kind="hexes", stop=EXACT, gravity=(0.0, 0.0, 0.0), **options):
    """The two blocks, every vertex of the bottom a contact."""
    above, below = bodies(kind, gravity=gravity)
    detection = Detection(bottom(kind), tolerance=tolerance, edges=False)
    return Interaction(above, below, detection, mu, stop=stop, **options)


def at(interaction, x=0.0, depth=0.0, z=0.0):
    return interaction.mobile.centre + np.array([x, -depth, z])


def nodal_sum(H, r):
    return H.forces(r).sum(axis=0)


def test_bodies_apart_feel_nothing():
    hapco = pressed(tolerance=1e-3)
    far = hapco.step(at(hapco, depth=-2e-3))
    assert far.n_contacts == 0 and not far.force.any() and not far.torque.any()
    near = hapco.step(at(hapco, depth=-5e-4))
    assert near.n_contacts == 9 and near.n_open == 9 and not near.force.any()
    # nor does a body that has been pressed and let go keep anything of it
    hapco.step(at(hapco, depth=2e-3))
    gone = hapco.step(at(hapco, depth=-2e-3))
    assert not gone.force.any() and np.abs(hapco.fixed.u).max() == 0.0


def test_action_is_reaction_and_the_force_is_the_sum_of_the_nodal_forces():
    hapco = pressed()
    for step in range(5):
        s = hapco.step(at(hapco, x=3e-4 * step, depth=1e-3))
    action, reaction = (nodal_sum(H, s.result.r) for H in s.maps)
    size = np.linalg.norm(s.force)
    assert size > 0.05
    np.testing.assert_allclose(action, s.force, atol=1e-14 * size)
    np.testing.assert_allclose(reaction, -s.force, atol=1e-14 * size)
    # and the same about any point: the two forces of a contact act where the bodies meet
    meet = [np.einsum("kc,kci->ki", H.weights, b.positions(H.nodes.ravel()).reshape(-1, 3, 3))
            for H, b in zip(s.maps, (hapco.mobile, hapco.fixed), strict=True)]  # fmt: skip
    touching = s.result.status != OPEN
    gap = np.einsum("ki,ki->k", s.frames[:, 0], meet[MOBILE] - meet[FIXED])
    assert np.abs(gap[touching]).max() < 1e-12
    np.testing.assert_allclose(s.points, meet[MOBILE], atol=1e-16)
    moments = np.cross(meet[MOBILE] - hapco.mobile.position, s.forces).sum(axis=0)
    np.testing.assert_allclose(s.torque, moments, atol=1e-15)


def test_nothing_penetrates_beyond_the_solvers_tolerance():
    """On the flat face the gap along the normal is the gap: -r_n u_n / |r| of a residual e is at most e."""
    hapco = pressed(stop=Stop(1e-6, 10000))
    for depth in (5e-4, 1e-3, 2e-3):
        s = hapco.step(at(hapco, depth=depth))
        u = (s.problem.w @ s.result.r + s.problem.b).reshape(-1, 3)
        size = np.linalg.norm(s.result.r) * s.problem.w.diagonal().mean()
        assert u[:, 0].min() > -2e-6 * size and size > 1e-4


def test_one_contact_is_as_stiff_as_one_over_its_compliance():
    above, below = bodies()
    hapco = Interaction(above, below, Detection(bottom()[4:5], tolerance=EVERY, edges=False), 0.0, stop=EXACT)
    depth = 1e-6
    s = hapco.step(at(hapco, depth=depth))
    w = s.problem.w
    assert s.n_contacts == 1
    assert np.linalg.norm(s.force) == pytest.approx(depth / w[0, 0], rel=1e-12)
    own = [b.compliance([n])[1, 1] for b, n in zip((above, below), (bottom()[4], _below(s)), strict=True)]
    assert w[0, 0] == pytest.approx(sum(own), rel=1e-12)


def _below(s):
    """The one node of the fixed body that carries the contact."""
    H = s.maps[FIXED]
    return H.nodes[0, int(np.argmax(H.weights[0] == 1.0))]


def test_a_symmetric_press_gives_a_symmetric_force():
    """Two planes of symmetry: hexahedra have no direction, and the diagonals of the faces, which have one,
    carry no contact, since nodes stand on nodes."""
    hapco = pressed(mu=0.3)
    s = hapco.step(at(hapco, depth=1e-3))
    size = s.force[1]
    assert size > 0.05
    assert np.abs(s.force[[0, 2]]).max() < 1e-9 * size
    assert np.abs(s.torque).max() < 1e-9 * size * 0.01
    grid = s.forces.reshape(3, 3, 3)
    np.testing.assert_allclose(grid[::-1, :, 1], grid[:, :, 1], atol=1e-9 * size)
    np.testing.assert_allclose(grid[:, ::-1, 1], grid[:, :, 1], atol=1e-9 * size)
    np.testing.assert_allclose(grid[::-1, :, 0], -grid[:, :, 0], atol=1e-9 * size)


@pytest.mark.parametrize("mu", [0.1, 0.4])
def test_sliding_contacts_pull_with_mu_times_their_normal_force_against_the_slip(mu):
    hapco = pressed(mu=mu)
    hapco.step(at(hapco, depth=1e-3))
    for step in range(1, 16):
        s = hapco.step(at(hapco, x=4e-4 * step, depth=1e-3))
    r = s.result.r.reshape(-1, 3)
    slip = s.result.status == SLIP
    assert slip.any() and not (s.result.status == STICK).any()
    tangential = np.linalg.norm(r[slip, 1:], axis=1)
    np.testing.assert_allclose(tangential, mu * r[slip, 0], rtol=1e-9)
    assert s.force[0] < 0.0
    u = (s.problem.w @ s.result.r + s.problem.b).reshape(-1, 3)[slip, 1:]
    along = np.einsum("ki,ki->k", r[slip, 1:], u)
    np.testing.assert_allclose(along, -tangential * np.linalg.norm(u, axis=1), rtol=1e-6)


def test_a_closed_tangential_loop_costs_work_and_then_repeats():
    """Friction's hysteresis: the work of a cycle is positive, that of the second and third cycle equal."""
    hapco = pressed(mu=0.3)
    hapco.step(at(hapco, depth=1e-3))
    phase = np.linspace(0.0, 2.0 * np.pi, 41)[1:]
    way = 2e-3 * np.sin(phase)
    work, ends = [], []
    for _ in range(4):
        before, f_before, total = 0.0, None, 0.0
        for x in way:
            f = hapco.step(at(hapco, x=x, depth=1e-3)).force[0]
            if f_before is not None:
                total -= 0.5 * (f + f_before) * (x - before)
            before, f_before = x, f
        work.append(total)
        ends.append(f_before)
    assert work[1] > 1e-5
    assert work[2] == pytest.approx(work[1], rel=5e-2)
    assert ends[3] == pytest.approx(ends[2], rel=5e-2)


def test_what_sticks_for_ever_never_drifts():
    """100 cycles with friction enough to stick: each comes back to the same force, however often.

    Anchors are material points: only rounding and the solver's tolerance are left, and do not add up.
    """
    hapco = pressed(mu=5.0)
    first = hapco.step(at(hapco, depth=1e-3))
    loop = [(1e-4 * math.cos(a), 1e-4 * math.sin(a)) for a in np.linspace(0.0, 2.0 * np.pi, 6)]
    forces = []
    for _ in range(100):
        for x, z in loop:
            s = hapco.step(at(hapco, x=x, depth=1e-3, z=z))
        assert s.n_slip == 0 and s.n_stick > 4
        forces.append(s.force)
    spread = np.ptp(np.array(forces), axis=0).max()
    assert spread < 1e-9 * np.linalg.norm(first.force)
    assert abs(forces[0][0]) > 1e-3


def test_forces_turn_with_the_whole_setup():
    """Objectivity: frames and gravity turned together turn the forces, along a path with friction."""
    turn = Rotation.from_rotvec((0.4, -1.1, 0.7))
    gravity, shift = np.array([0.0, -9.81, 0.0]), np.array([0.1, -0.2, 0.05])
    straight, turned = pressed(gravity=gravity), pressed(gravity=turn.apply(gravity))
    q = np.roll(turn.as_quat(), 1)
    turned.fixed.place(turn.apply(turned.fixed.centre) + shift, q)
    turned.mobile.place(turn.apply(turned.mobile.centre) + shift, q)
    turned.fixed.displace((), ())
    turned.mobile.displace((), ())
    turned.reset()
    for step in range(6):
        p = at(straight, x=3e-4 * step, depth=1e-3, z=1e-4 * step)
        one, other = straight.step(p), turned.step(turn.apply(p) + shift, q)
        size = np.linalg.norm(one.force)
        # the tangents are others, and with them the sweeps' roundings
        np.testing.assert_allclose(other.force, turn.apply(one.force), atol=1e-8 * size)
        np.testing.assert_allclose(other.torque, turn.apply(one.torque), atol=1e-8 * size)
        np.testing.assert_array_equal(other.result.status, one.result.status)


def test_rotating_the_mobile_body_in_place_twists_the_fixed_one():
    hapco = pressed(mu=1.0)
    hapco.step(at(hapco, depth=1e-3))
    q = np.roll(Rotation.from_rotvec((0.0, 0.02, 0.0)).as_quat(), 1)
    s = hapco.step(at(hapco, depth=1e-3), q)
    assert s.torque[1] < -1e-5 and np.abs(s.force[[0, 2]]).max() < 1e-3 * s.force[1]


@pytest.mark.parametrize("name", ["gauss-seidel", "uzawa-global-bipotential-rho_min", "newton-bipotential"])
def test_every_solver_gives_the_same_path(name):
    """Forces may not be unique, but their sum is: W couples the contacts through bodies that yield."""
    reference, other = pressed(stop=Stop(1e-10, 50000)), pressed(stop=Stop(1e-10, 50000), solver=name)
    for step in range(4):
        p = at(reference, x=4e-4 * step, depth=1e-3)
        one, two = reference.step(p), other.step(p)
        assert two.result.converged
        np.testing.assert_allclose(two.force, one.force, atol=1e-7 * np.linalg.norm(one.force))


def test_bodies_that_are_only_asked_give_the_forces_of_w():
    """A conjugate-gradient body, once through its compliance and once asked, against the direct one."""
    direct = pressed(stop=Stop(1e-8, 20000))
    above, _ = bodies()
    _, below = bodies(body=_conjugate)
    detection = Detection(bottom(), tolerance=EVERY, edges=False)
    columns = Interaction(above, below, detection, 0.5, stop=Stop(1e-8, 20000))
    asked = Interaction(*bodies(), detection, 0.5, stop=Stop(1e-8, 20000), assembled=False)
    for step in range(4):
        p = at(direct, x=4e-4 * step, depth=1e-3)
        one, two, three = direct.step(p), columns.step(p), asked.step(p)
        size = np.linalg.norm(one.force)
        np.testing.assert_allclose(two.force, one.force, atol=1e-5 * size)
        np.testing.assert_allclose(three.force, one.force, atol=1e-5 * size)


def _conjugate(*arguments):
    return ConjugateGradientBody(*arguments, tolerance=1e-10)


def test_the_contact_solver_does_not_depend_on_the_bodies_law():
    """Pressed by ten micrometres, a body of another law is its own tangent at rest: same stiffness."""
    below = meshes("tets")[1]
    fixed = LargeStrainBody("below", below, TISSUE, side(below, 1, -1.0), (0.0, 0.0, 0.0))
    mobile, _ = bodies("tets")
    hapco = Interaction(
        mobile, fixed, Detection(bottom("tets"), tolerance=EVERY, edges=False), 0.3, stop=EXACT,
        newton_tolerance=1e-10,
    )  # fmt: skip
    s = hapco.step(at(hapco, depth=1e-5))
    assert s.increments.converged and 1 < s.increments.increments < 8
    one = np.linalg.norm(s.force)
    two = np.linalg.norm(hapco.step(at(hapco, depth=2e-5)).force)
    # strains of 1e-3: the next term of the law is that much smaller
    assert two == pytest.approx(2.0 * one, rel=5e-3)
    # large: Newton-Raphson still ends in equilibrium, and with contact nothing sinks in
    deep = hapco.step(at(hapco, depth=3e-3))
    assert deep.increments.converged and deep.increments.increments > 2
    reached = np.einsum("ki,ki->k", deep.frames[:, 0], deep.points - _on(fixed, deep.maps[FIXED]))
    assert np.abs(reached[deep.result.status != OPEN]).max() < 1e-8


def _on(body, H):
    return np.einsum("kc,kci->ki", H.weights, body.positions(H.nodes.ravel()).reshape(-1, 3, 3))


def test_detection_at_every_increment_follows_a_large_slide():
    """Figure 2.12, dashed: a slide over several triangles in one step leads where fifty small ones lead.

    The small ones are of first order, and err themselves by 2e-4 of the force.
    """
    once, again = pressed(mu=0.1), pressed(mu=0.1, newton_tolerance=1e-9, max_increments=30)
    again.detection = Detection(bottom(), tolerance=EVERY, edges=False, when="increment")
    fine = pressed(mu=0.1)
    for hapco in (once, again):
        hapco.step(at(hapco, depth=1e-3))
    for x in np.linspace(0.0, 5e-3, 51):
        truth = fine.step(at(fine, x=x, depth=1e-3))
    errors = []
    for hapco in (once, again):
        s = hapco.step(at(hapco, x=5e-3, depth=1e-3))
        errors.append(np.linalg.norm(s.force - truth.force) / np.linalg.norm(truth.force))
    assert s.increments.increments > 1
    assert errors[0] > 0.1 and errors[1] < 1e-3


def test_a_finer_path_does_not_change_where_it_leads():
    """Sliding is history dependent, but its steps are integrated: halving them halves what they change."""
    ends = []
    for steps in (8, 16, 32):
        hapco = pressed(mu=0.4)
        for k in range(steps + 1):
            s = hapco.step(at(hapco, depth=1e-3 * k / steps))
        for k in range(1, steps + 1):
            s = hapco.step(at(hapco, x=4e-3 * k / steps, depth=1e-3))
        ends.append(s.force)
    size = np.linalg.norm(ends[2])
    assert np.linalg.norm(ends[2] - ends[1]) < 0.05 * size


def test_a_rigid_indenter_is_the_limit_of_stiff_ones():
    detection = Detection(bottom(), tolerance=EVERY, edges=False)
    forces = []
    for modulus in (1e8, 1e9, None):
        above, below = bodies(materials=(Material(modulus or 1e9, 0.3, 1000.0), TISSUE))
        if modulus is None:
            above = QuasistaticBody("stone", above.mesh, STIFF, np.arange(len(above.mesh.nodes)), (0, 0, 0))
        hapco = Interaction(above, below, detection, 0.3, stop=EXACT)
        forces.append(hapco.step(above.centre - [0.0, 1e-3, 0.0]).force[1])
    errors = [abs(f - forces[2]) for f in forces[:2]]
    # what is left is the indenter's own compliance: a tenth of it for ten times the modulus
    assert errors[1] == pytest.approx(0.1 * errors[0], rel=1e-2)


def test_edges_hold_what_hangs_over_a_rim():
    """Crossed rims: no vertex of the mobile block stands on the fixed one, and yet it cannot sink."""
    above, below = bodies()
    x = 0.5 * BELOW[0]
    wide = HexMesh(above.mesh.nodes * [4.0, 1.0, 0.5], above.mesh.hexes)
    mobile = QuasistaticBody("bar", wide, STIFF, side(wide, 1, 1.0), (0.0, 0.0, 0.0))
    chosen = side(wide, 1, -1.0)
    for edges in (True, False):
        hapco = Interaction(mobile, below, Detection(chosen, tolerance=1e-3, edges=edges), 0.3, stop=EXACT)
        start = mobile.centre + np.array([x + 0.006, 0.0, 0.0])
        for depth in np.linspace(0.0, 5e-4, 6):
            s = hapco.step(start - np.array([0.0, depth, 0.0]))
        if edges:
            assert s.force[1] > 1e-4
            with_edges = s.force[1]
    assert with_edges > s.force[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vertices": [10**6]}, "contact vertices must be among its nodes 0 to"),
        ({"tolerance": -1.0}, "collision tolerance -1.0 m must not be negative"),
        ({"normals": "soft"}, "choose smooth or faceted"),
        ({"when": "now"}, "choose step or increment"),
    ],
)
def test_bad_detection_is_refused_in_words(options, words):
    with pytest.raises(InputError, match=words):
        Interaction(*bodies(), Detection(**options))


def test_a_vertex_inside_and_an_unknown_solver_are_refused_in_words():
    above, below = bodies()
    inside = np.flatnonzero(above.slot < 0)
    assert inside.size
    with pytest.raises(InputError, match=f"contact vertex {inside[0]} lies inside"):
        Interaction(above, below, Detection(inside))
    with pytest.raises(InputError, match="no such solver; did you mean"):
        Interaction(above, below, solver="gaus-seidel")
    with pytest.raises(InputError, match="no contact problem yet"):
        Interaction(above, below).problem()
